"""usage: tests/coverage.py BUILD [--json] [--files[=FOLDER]]

Which branches of the product the tests took, from the profiles that they left in BUILD/profiles: `./dev coverage` builds with
the preset coverage, runs the tests and calls this. Prints a table of folders, and writes a page for a browser, BUILD/page/index.html,
with every file and its lines.

  --json            prints the table as JSON
  --files[=FOLDER]  prints a row for each file, of all folders or one: those with most branches that were never taken first

A branch is one outcome of one condition, as clang counts it (source-based coverage). docs and goals: tests/coverage.md.
"""

import html
import json
import os
import pathlib
import subprocess
import sys

SOURCE = pathlib.Path(__file__).resolve().parents[1]
PROFDATA, COV = "llvm-profdata-19", "llvm-cov-19"
# The rows of the table, with their goals in percent; the longest prefix of a file's path counts.
FOLDERS = {
    "base": 95, "vm": 95, "modules": 95, "hal": 90, "jit/src/front": 90, "jit/src/codegen": 0, "drivers/local": 90, "drivers/null": 0,
    "drivers/vulkan": 0, "channels": 0, "bindings/c": 90, "bindings/cpp": 0, "tools/common": 90, "tools": 0, "aot": 0, "schemas": 0,
}
NOT_PRODUCT = ("/tests/", "/benchmarks/", "/examples/", "/fuzz/", "/build/")


class Failed(Exception):
    """Why there is no coverage."""


def output(*command) -> str:
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if done.returncode != 0:
        raise Failed(f"{command[0]} failed: {done.stderr.strip()[-1000:]}")
    return done.stdout


def instrumented(build: pathlib.Path) -> list[pathlib.Path]:
    """Programs and libraries with a map of their branches."""
    found = []
    for folder in ("bin", "lib", "tests", "python"):
        for path in sorted((build / folder).rglob("*")):
            if path.is_file() and not path.is_symlink() and (os.access(path, os.X_OK) or ".so" in path.name):
                with open(path, "rb") as file:
                    data = file.read()
                if data[:4] == b"\x7fELF" and b"__llvm_covmap" in data:
                    found.append(path)
    return found


def merged(build: pathlib.Path) -> pathlib.Path:
    profiles = sorted((build / "profiles").glob("*.profraw"))
    if not profiles:
        raise Failed(f"there are no profiles in {build / 'profiles'}; expected those of tests that ran with ./dev coverage")
    target, names = build / "coverage.profdata", build / "profiles.txt"
    names.write_text("".join(f"{path}\n" for path in profiles if path.stat().st_size))
    output(PROFDATA, "merge", "--sparse", "--failure-mode=all", f"--input-files={names}", "-o", target)
    return target


def folder_of(path: str) -> str | None:
    """The row of a file, given relative to the root; None if it is no part of the product."""
    if any(part in f"/{path}" for part in NOT_PRODUCT):
        return None
    prefixes = [folder for folder in FOLDERS if path.startswith(folder + "/")]
    return max(prefixes, key=len) if prefixes else None


def measure(build: pathlib.Path) -> dict[str, dict]:
    """{path from the root: what is counted in it}"""
    objects = instrumented(build)
    if not objects:
        raise Failed(f"nothing in {build} is instrumented; expected a build of the preset coverage")
    more = [argument for path in objects[1:] for argument in ("--object", path)]
    text = output(COV, "export", "--summary-only", f"--instr-profile={merged(build)}", objects[0], *more)
    return counts(json.loads(text))


def counts(exported: dict) -> dict[str, dict]:
    found = {}
    for file in exported["data"][0]["files"]:
        path = pathlib.Path(file["filename"])
        if not path.is_relative_to(SOURCE):
            continue
        name = str(path.relative_to(SOURCE))
        if folder_of(name):
            found[name] = {kind: {"count": file["summary"][kind]["count"], "covered": file["summary"][kind]["covered"]}
                           for kind in ("branches", "lines")}
    return found


def share(part: dict) -> float:
    return 100 * part["covered"] / part["count"] if part["count"] else 100.0


def table(files: dict[str, dict]) -> list[dict]:
    rows = []
    for folder, goal in FOLDERS.items():
        own = [counted for name, counted in files.items() if folder_of(name) == folder]
        if own:
            sums = {kind: {key: sum(counted[kind][key] for counted in own) for key in ("count", "covered")} for kind in ("branches", "lines")}
            rows.append({"folder": folder, "files": len(own), "goal": goal, **sums})
    return rows


def text_of(rows: list[dict], name: str = "folder") -> str:
    lines = [f"{name:<44} {'branches':>9} {'taken':>9} {'%':>6} {'lines %':>8} {'goal':>5}"]
    for row in rows:
        goal = f"{row['goal']}" if row.get("goal") else ""
        lines.append(f"{row[name]:<44} {row['branches']['count']:>9} {row['branches']['covered']:>9} {share(row['branches']):>6.1f} "
                     f"{share(row['lines']):>8.1f} {goal:>5}")
    return "\n".join(lines)


def file_rows(files: dict[str, dict], folder: str = "") -> list[dict]:
    rows = [{"file": name, **counted} for name, counted in files.items() if not folder or name.startswith(folder.rstrip("/") + "/")]
    return sorted(rows, key=lambda row: row["branches"]["covered"] - row["branches"]["count"])


def write_page(build: pathlib.Path, rows: list[dict], files: dict[str, dict]) -> None:
    page = build / "page"
    objects = instrumented(build)
    more = [argument for path in objects[1:] for argument in ("--object", path)]
    output(COV, "show", "--format=html", "--show-branches=count", f"--output-dir={page / 'lines'}",
           f"--instr-profile={build / 'coverage.profdata'}", objects[0], *more, "--sources", *(SOURCE / name for name in files))

    def cells(name, counted, goal=""):
        return (f"<td>{name}<td>{counted['branches']['count']}<td>{counted['branches']['covered']}<td>{share(counted['branches']):.1f}"
                f"<td>{share(counted['lines']):.1f}<td>{goal}")

    body = "".join(f"<tr>{cells(html.escape(row['folder']), row, row['goal'] or '')}" for row in rows)
    lines = "".join(f"<tr>{cells(link(row['file']), row)}" for row in file_rows(files))
    head = "<tr><th>{}<th>branches<th>taken<th>%<th>lines %<th>goal"
    (page / "index.html").write_text(
        "<!doctype html><meta charset=utf-8><title>Halyard: coverage</title><style>body{font-family:sans-serif}table{border-collapse:collapse}"
        "td,th{padding:2px 10px;text-align:right;border-bottom:1px solid #ddd}td:first-child,th:first-child{text-align:left}</style>"
        f"<h1>Branches that the tests take</h1><table>{head.format('folder')}{body}</table><h2>Files</h2><table>{head.format('file')}{lines}</table>")


def link(name: str) -> str:
    return f"<a href='lines/coverage{html.escape(str(SOURCE / name))}.html'>{html.escape(name)}</a>"


def main() -> None:
    arguments = sys.argv[1:]
    builds = [argument for argument in arguments if not argument.startswith("-")]
    flags = [argument for argument in arguments if argument.startswith("-")]
    if len(builds) != 1 or len(flags) > 1 or any(flag.split("=")[0] not in ("--json", "--files") for flag in flags):
        sys.exit(__doc__)
    build = pathlib.Path(builds[0]).resolve()
    try:
        files = measure(build)
        rows = table(files)
        write_page(build, rows, files)
    except (Failed, FileNotFoundError) as failed:
        sys.exit(f"coverage: {failed}")
    if flags == ["--json"]:
        print(json.dumps(rows, indent=1))
    elif flags:
        print(text_of(file_rows(files, flags[0].partition("=")[2]), "file"))
    else:
        print(text_of(rows))
        print(f"every file: {build / 'page' / 'index.html'}")


if __name__ == "__main__":
    main()
