"""The table of `./dev coverage`: what is part of the product, sums and shares, and what it says where there is nothing to count."""
import subprocess
import sys

from installed import SOURCE

sys.path.insert(0, str(SOURCE / "tests"))
import coverage  # noqa: E402

FOLDERS = {
    "vm/src/vm/run/stack.h": "vm", "vm/tests/wait_test.cpp": None, "jit/src/front/cache.cpp": "jit/src/front", "jit/src/shared/image.cpp": None,
    "tools/common/npy.cpp": "tools/common", "tools/vm-run/main.cpp": "tools", "base/benchmarks/loop.cpp": None, "fuzz/target_run.cpp": None,
    "build/coverage/schemas/x.h": None, "bindings/c/src/device.cpp": "bindings/c", "elsewhere.cpp": None,
}


def summary(branches, covered):
    return {"branches": {"count": branches, "covered": covered}, "lines": {"count": 10, "covered": 5}}


def main(checks, folder):
    for path, expected in FOLDERS.items():
        found = coverage.folder_of(path)
        checks.check(f"the folder of {path}", None if found == expected else f"it is {found}")
    exported = {"data": [{"files": [
        {"filename": str(SOURCE / "vm/src/a.cpp"), "summary": summary(10, 9)}, {"filename": str(SOURCE / "vm/src/b.cpp"), "summary": summary(30, 21)},
        {"filename": str(SOURCE / "base/src/c.h"), "summary": summary(0, 0)}, {"filename": str(SOURCE / "vm/tests/d.cpp"), "summary": summary(9, 0)},
        {"filename": "/usr/include/c++/12/vector", "summary": summary(9, 0)}]}]}
    files = coverage.counts(exported)
    rows = {row["folder"]: row for row in coverage.table(files)}
    checks.check("the rows", None if sorted(rows) == ["base", "vm"] else f"they are {sorted(rows)}")
    checks.check("sums", None if rows["vm"]["branches"] == {"count": 40, "covered": 30} and rows["vm"]["files"] == 2 else f"{rows['vm']}")
    checks.check("shares", None if coverage.share(rows["vm"]["branches"]) == 75 and coverage.share(rows["base"]["branches"]) == 100 else "wrong")
    order = [row["file"] for row in coverage.file_rows(files)]
    checks.check("files with most untaken branches first", None if order == ["vm/src/b.cpp", "vm/src/a.cpp", "base/src/c.h"] else f"{order}")
    checks.check("files of a folder", None if len(coverage.file_rows(files, "base/")) == 1 else "others")
    text = coverage.text_of(list(rows.values()))
    checks.check("the text", None if "vm" in text and "75.0" in text and "50.0" in text else text)

    def run(*arguments):
        return subprocess.run([sys.executable, SOURCE / "tests/coverage.py", *arguments], capture_output=True, text=True, timeout=60)

    empty = run(folder)
    checks.check("no build", None if empty.returncode == 1 and "nothing in" in empty.stderr and "Traceback" not in empty.stderr else "", empty)
    wrong = run(folder, "--jsn")
    checks.check("a wrong flag", None if wrong.returncode == 1 and "usage" in wrong.stderr else "", wrong)
    wrong = run()
    checks.check("no folder", None if wrong.returncode == 1 and "usage" in wrong.stderr else "", wrong)
