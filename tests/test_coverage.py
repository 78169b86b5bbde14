"""The table of `./dev coverage`: what is part of the product, sums and shares, and what it says where there is nothing to count."""
import pathlib
import re
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


SAMPLE = """\
Result<int> sum(int a, int b) {
  if (a > 0 && b > 0) return a;
  while (true) {
    const int c = HALYARD_TRY(checked(a));
    assert(c != 0);
    if constexpr (sizeof(int) == 4) return c;
  }
}
"""
TRY, ASSERT = "    if (!halyard_try_##counter) [[unlikely]]\n", "     (static_cast <bool> (expr)\n"


def function(*branches):
    """A function of vm/src/a.cpp that ran: files 1 and 2 of it are the uses of HALYARD_TRY and assert."""
    return {"filenames": [str(SOURCE / "vm/src/a.cpp"), str(SOURCE / "base/src/status.h"), "/usr/include/assert.h"], "branches": list(branches),
            "regions": [[1, 32, 8, 2, 7, 0, 0, 0], [4, 19, 4, 30, 7, 0, 1, 1], [5, 5, 5, 11, 7, 0, 2, 1]]}


def counted(branches=(0, 0), failures=(0, 0)):
    return {kind: {"count": both[0], "covered": both[1], "argued": 0} for kind, both in
            (("branches", branches), ("failures", failures))} | {"lines": {"count": 10, "covered": 5}}


def check_branches(checks):
    """What is a branch, of what the compiler's map has."""
    conditions = [[2, 7, 2, 12, 3, 0, 0, 0, 4], [2, 16, 2, 21, 0, 3, 0, 0, 4], [3, 10, 3, 14, 0, 0, 0, 0, 4], [1, 9, 1, 31, 0, 4, 1, 0, 4],
                  [1, 6, 1, 30, 4, 0, 2, 0, 4], [6, 19, 6, 35, 0, 0, 0, 0, 4]]
    again = [[2, 7, 2, 12, 0, 0, 0, 0, 4], [2, 16, 2, 21, 1, 0, 0, 0, 4]]  # another instance of a template, where b > 0

    class Sample(coverage.Sources):
        def text(self, file, line, column):
            self.files[file] = (SAMPLE if "a.cpp" in file else TRY if "status.h" in file else ASSERT).splitlines()
            return super().text(file, line, column)

    real, coverage.Sources = coverage.Sources, Sample
    try:
        found = coverage.branches([function(*conditions), function(*again)])
    finally:
        coverage.Sources = real
    seen = sorted((branch.kind, branch.line, branch.column, branch.outcome, branch.taken) for branch in found)
    expected = [("branches", 2, 7, False, False), ("branches", 2, 7, True, True), ("branches", 2, 16, False, True), ("branches", 2, 16, True, True),
                ("failures", 4, 19, True, False)]
    checks.check("branches, but no constants and no assertions", None if seen == expected else f"they are {seen}")
    files = coverage.counts([{"filename": str(SOURCE / "vm/src/a.cpp"), "summary": {"lines": {"count": 10, "covered": 5}}},
                             {"filename": str(SOURCE / "vm/tests/d.cpp"), "summary": {"lines": {"count": 9, "covered": 0}}},
                             {"filename": "/usr/include/c++/12/vector", "summary": {"lines": {"count": 9, "covered": 0}}}], found)
    checks.check("what is counted", None if files == {"vm/src/a.cpp": counted((4, 3), (1, 0))} else f"{files}")


def check_arguments(checks):
    """Branches that tests cannot take."""
    first = pathlib.Path(__file__).read_text().splitlines()[0]
    key = f"tests/test_coverage.py: `{first}` at 3: never "
    arguments = coverage.unreached(f"# comment\nwhy: because\n{key}true\nwhy (on some machines): other\n{key}false\n")
    checks.check("arguments", None if arguments == {key + "true": ("because", False), key + "false": ("other", True)} else f"{arguments}")

    def branch(outcome, taken):
        made = coverage.Branch("branches", "tests/test_coverage.py", 1, 4, outcome)
        made.taken = taken
        return made

    untaken = [branch(True, False), branch(False, False)]
    wrong = coverage.argue(untaken, arguments)
    checks.check("they hold", None if not wrong and all(one.argued for one in untaken) else f"{wrong}")
    taken = [branch(True, True), branch(False, True)]
    wrong = coverage.argue(taken, arguments)
    checks.check("a branch that was taken", None if len(wrong) == 1 and "1: was taken" in wrong[0] and not any(one.argued for one in taken) else f"{wrong}")
    wrong = coverage.argue([branch(False, False)], arguments)
    checks.check("a branch that is gone", None if wrong == [f"no such branch: {key}true"] else f"{wrong}")
    part = {"count": 10, "covered": 6, "argued": 2}
    checks.check("the share", None if coverage.share(part) == 75 else f"it is {coverage.share(part)}")
    for key, (reason, _) in coverage.unreached(coverage.UNREACHED.read_text()).items():
        match = re.fullmatch(r"([\w./+-]+): `(.*)` at \d+: never (?:true|false)", key)
        there = match and any(line.strip() == match[2] for line in (SOURCE / match[1]).read_text().splitlines())
        checks.check(f"unreached.txt: {key}", None if there and len(reason.split()) > 3 else "its line is gone, or it has no reason")


def main(checks, folder):
    check_arguments(checks)
    for path, expected in FOLDERS.items():
        found = coverage.folder_of(path)
        checks.check(f"the folder of {path}", None if found == expected else f"it is {found}")
    check_branches(checks)
    files = {"vm/src/a.cpp": counted((10, 9), (10, 1)), "vm/src/b.cpp": counted((30, 21)), "base/src/c.h": counted()}
    rows = {row["folder"]: row for row in coverage.table(files)}
    checks.check("the rows", None if sorted(rows) == ["base", "vm"] else f"they are {sorted(rows)}")
    checks.check("sums", None if rows["vm"]["branches"] == {"count": 40, "covered": 30, "argued": 0} and rows["vm"]["files"] == 2 else f"{rows['vm']}")
    checks.check("shares", None if coverage.share(rows["vm"]["branches"]) == 75 and coverage.share(rows["base"]["branches"]) == 100 else "wrong")
    order = [row["file"] for row in coverage.file_rows(files)]
    checks.check("files with most untaken branches first", None if order == ["vm/src/b.cpp", "vm/src/a.cpp", "base/src/c.h"] else f"{order}")
    checks.check("files of a folder", None if len(coverage.file_rows(files, "base/")) == 1 else "others")
    row = coverage.cells(rows["vm"])
    checks.check("the cells", None if row == ["40", "30", "0", "75.0", "95", "10", "1", "10.0", "62.0", "50.0"] else f"{row}")
    text = coverage.text_of(list(rows.values()))
    checks.check("the text", None if "vm" in text and "75.0" in text and "62.0" in text else text)
    missed = [coverage.Branch("branches", "tests/test_coverage.py", 1, 4, False), coverage.Branch("failures", "tests/test_coverage.py", 1, 4, True)]
    text = coverage.text_of_missed(missed, "tests")
    checks.check("what was missed", None if text.startswith('tests/test_coverage.py:1: `"""The table') and
                 text.endswith("` at 3: never false") and "\n" not in text else text)
    checks.check("what was missed elsewhere", None if coverage.text_of_missed(missed, "vm") == "" else "something")

    def run(*arguments):
        return subprocess.run([sys.executable, SOURCE / "tests/coverage.py", *arguments], capture_output=True, text=True, timeout=900)

    empty = run(folder)
    checks.check("no build", None if empty.returncode == 1 and "nothing in" in empty.stderr and "Traceback" not in empty.stderr else "", empty)
    wrong = run(folder, "--jsn")
    checks.check("a wrong flag", None if wrong.returncode == 1 and "usage" in wrong.stderr else "", wrong)
    wrong = run()
    checks.check("no folder", None if wrong.returncode == 1 and "usage" in wrong.stderr else "", wrong)
