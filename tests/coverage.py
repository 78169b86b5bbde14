"""usage: tests/coverage.py BUILD [--json | --files[=FOLDER] | --missed[=PATH] | --failures[=PATH]]

Which branches of the product the tests took, from the profiles that they left in BUILD/profiles: `./dev coverage` builds with
the preset coverage, runs the tests and calls this. Prints a table of folders, and writes a page for a browser, BUILD/page/index.html,
with every file and its lines.

  --json            prints the table as JSON
  --files[=FOLDER]  prints a row for each file, of all folders or one: those with most branches that were never taken first
  --missed[=PATH]   prints the branches that were never taken, of everything or of a folder or file: FILE:LINE, the text of the
                    line, the column in it, the outcome
  --failures[=PATH] the same of HALYARD_TRY and its kin: the failures that were never returned

A branch is one outcome of one condition where the source has it; the failures of HALYARD_TRY and its kin are counted apart. What is counted and
why, and the goals: tests/coverage.md. A branch that no test can take stands in tests/unreached.txt with the reason; it is counted apart.
The exit status is 1 if one of these was taken, or is not there any more.
"""

import html
import json
import os
import pathlib
import re
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


UNREACHED = SOURCE / "tests" / "unreached.txt"


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


def measure(build: pathlib.Path) -> tuple[dict[str, dict], list["Branch"], list[str]]:
    """{path from the root: what is counted in it}, the branches, and the arguments that are wrong"""
    objects = instrumented(build)
    if not objects:
        raise Failed(f"nothing in {build} is instrumented; expected a build of the preset coverage")
    more = [argument for path in objects[1:] for argument in ("--object", path)]
    text = output(COV, "export", "--skip-expansions", f"--instr-profile={merged(build)}", objects[0], *more)
    exported = json.loads(text)["data"][0]
    found = branches(exported["functions"])
    wrong = argue(found, unreached(UNREACHED.read_text()))
    return counts(exported["files"], found), found, wrong


class Branch:
    """One outcome of one condition where the source has it; taken if any program or instance of a template took it."""

    def __init__(self, kind: str, file: str, line: int, column: int, outcome: bool):
        self.kind, self.file, self.line, self.column, self.outcome, self.taken = kind, file, line, column, outcome, False
        self.argued = False  # stands in tests/unreached.txt

    def key(self, sources: "Sources") -> str:
        """Names the branch without its line number, which other changes move."""
        line = sources.text(str(SOURCE / self.file), self.line, 1)
        return f"{self.file}: `{line.strip()}` at {self.column - 1 - (len(line) - len(line.lstrip()))}: never {str(self.outcome).lower()}"


class Sources:
    """Lines of the sources, read once."""

    def __init__(self):
        self.files = {}

    def text(self, file: str, line: int, column: int) -> str:
        if file not in self.files:
            self.files[file] = pathlib.Path(file).read_text(errors="replace").splitlines()
        lines = self.files[file]
        return lines[line - 1][column - 1:] if line <= len(lines) else ""

    def before(self, file: str, line: int, column: int) -> str:
        self.text(file, line, column)
        return self.files[file][line - 1][:column - 1] if line <= len(self.files[file]) else ""


    def has_enumerators(self, file: str, line: int) -> bool:
        """Whether the first case of the switch in this line is an enumerator of a class, `case Kind::key:`."""
        for text in self.files[file][line - 1:line + 9]:
            if label := re.search(r"\bcase\s+([\w:]+)\s*(:|\.\.\.)", text):
                return "::" in label[1]
        return False


def unreached(text: str) -> dict[str, tuple[str, bool]]:
    """{key of a branch: (why no test takes it, whether some machine may)}, from lines `why: REASON` with keys below them."""
    found, reason, may_be_taken = {}, "", False
    for line in text.splitlines():
        if head := re.match(r"why( \(on some machines\))?: (.*)", line):
            may_be_taken, reason = bool(head[1]), head[2]
        elif line and not line.startswith("#"):
            found[line] = (reason, may_be_taken)
    return found


def argue(found: list["Branch"], arguments: dict[str, tuple[str, bool]]) -> list[str]:
    """Marks the branches that have an argument, and gives the arguments that are wrong."""
    sources, wrong, seen = Sources(), [], set()
    for branch in found:
        if branch.kind == BRANCHES and (key := branch.key(sources)) in arguments:
            seen.add(key)
            branch.argued = not branch.taken
            if branch.taken and not arguments[key][1]:
                wrong.append(f"{branch.file}:{branch.line}: was taken, so it needs no argument: {key}")
    return wrong + [f"no such branch: {key}" for key in arguments if key not in seen]


REGION_IS_CODE, REGION_IS_EXPANSION = 0, 1


def branches(functions: list[dict]) -> list[Branch]:
    found, sources = {}, Sources()
    for function in functions:
        names = function["filenames"]
        home = pathlib.Path(names[0])
        if home.is_relative_to(SOURCE) and not folder_of(str(home.relative_to(SOURCE))):
            continue  # a test's own function, say one that includes a table of the product
        uses = {region[6]: (region[5], region[0], region[1]) for region in function["regions"] if region[7] == REGION_IS_EXPANSION}
        for branch in function["branches"]:
            where, chain = (branch[6], branch[0], branch[1]), []
            written = pathlib.Path(names[where[0]])
            if written.is_relative_to(SOURCE) and not folder_of(str(written.relative_to(SOURCE))):
                continue  # in a test, say in a macro with which it reads a table of the product
            # A table that is included within a function is a file of its own.
            while where[0] in uses and not sources.text(names[uses[where[0]][0]], uses[where[0]][1], 1).lstrip().startswith("#include"):
                chain.append((names[where[0]], *where[1:]))
                where = uses[where[0]]
            root = pathlib.Path(names[where[0]])
            if not root.is_relative_to(SOURCE) or not folder_of(str(root.relative_to(SOURCE))) or is_constant(function, branch, sources):
                continue
            kind = kind_of(chain, where, names, sources)
            if kind:
                for outcome, taken in ((True, branch[4]), (False, branch[5])):
                    key = (names[where[0]], *where[1:], *chain, branch[2], branch[3], outcome)
                    if key not in found:
                        found[key] = Branch(kind, str(root.relative_to(SOURCE)), where[1], where[2], outcome)
                    found[key].taken |= taken > 0
    # Success of HALYARD_TRY is no branch of its own: it says that the line ran.
    return [branch for branch in found.values() if branch.kind != FAILURES or branch.outcome]


BRANCHES, FAILURES = "branches", "failures"


def kind_of(chain: list, use: tuple, names: list[str], sources: Sources) -> str | None:
    """What a condition is; None for those of assert, which say what cannot be."""
    if not chain:
        # Of an argument of HALYARD_TRY whose use the map does not have; of assert, which a system's header defines.
        where = names[use[0]]
        is_of_macro = "(__VA_ARGS__)" in sources.text(where, use[1], 1) or re.match(r"assert\b", sources.text(where, *use[1:]))
        return None if is_of_macro else BRANCHES
    # HALYARD_TRY and its kin; one within another has its condition where the outer one takes its argument.
    file, line, _ = chain[0]
    if re.match(r"!\w*try_##", sources.text(*chain[0])) or re.search(r"try_##counter = \(__VA_ARGS__", sources.text(file, line, 1)):
        return FAILURES
    uses = [*chain[1:], (names[use[0]], *use[1:])]
    return None if any(re.match(r"assert\b", sources.text(*at)) for at in uses) else BRANCHES


def is_constant(function: dict, branch: list, sources: Sources) -> bool:
    """Whether a condition is known to the compiler, which then counts neither outcome: `while (true)`, `if constexpr`. The warning
    -Wswitch has made sure that a switch over an enumeration has a case for each value."""
    line, column, file = branch[0], branch[1], branch[6]
    name = function["filenames"][file]
    if sources.before(name, line, column).rstrip().endswith("switch ("):  # a value without a case
        return not branch[4] and sources.has_enumerators(name, line)
    if branch[4] or branch[5]:
        return False
    if sources.text(name, line, column)[:branch[3] - column] in ("true", "false", "0", "1") or \
            sources.before(name, line, column).rstrip().endswith("constexpr ("):
        return True
    around = [region for region in function["regions"] if region[5] == file and region[7] == REGION_IS_CODE and
              tuple(region[0:2]) <= (line, column) and tuple(branch[2:4]) <= tuple(region[2:4])]
    # The smallest region begins last. One that ran did not stop before the condition.
    return bool(around) and max(around, key=lambda region: (region[0:2], [-region[2], -region[3]]))[4] > 0


def counts(files: list[dict], found: list[Branch]) -> dict[str, dict]:
    counted = {}
    for file in files:
        path = pathlib.Path(file["filename"])
        if path.is_relative_to(SOURCE) and folder_of(str(path.relative_to(SOURCE))):
            lines = file["summary"]["lines"]
            counted[str(path.relative_to(SOURCE))] = {"lines": {"count": lines["count"], "covered": lines["covered"]},
                                                      **{kind: {"count": 0, "covered": 0, "argued": 0} for kind in (BRANCHES, FAILURES)}}
    for branch in found:
        own = counted.setdefault(branch.file, {"lines": {"count": 0, "covered": 0},
                                               **{kind: {"count": 0, "covered": 0, "argued": 0} for kind in (BRANCHES, FAILURES)}})
        own[branch.kind]["count"] += 1
        own[branch.kind]["covered"] += branch.taken
        own[branch.kind]["argued"] += branch.argued
    return counted


def share(part: dict) -> float:
    """In percent, of what is not argued for."""
    count = part["count"] - part.get("argued", 0)
    return 100 * part["covered"] / count if count else 100.0


def table(files: dict[str, dict]) -> list[dict]:
    rows = []
    for folder, goal in FOLDERS.items():
        own = [counted for name, counted in files.items() if folder_of(name) == folder]
        if own:
            sums = {kind: {key: sum(counted[kind].get(key, 0) for counted in own) for key in ("count", "covered", "argued")}
                    for kind in (BRANCHES, FAILURES, "lines")}
            rows.append({"folder": folder, "files": len(own), "goal": goal, **sums})
    return rows


COLUMNS = ("branches", "taken", "argued", "%", "goal", "failures", "taken", "%", "% of both", "lines %")


def cells(row: dict) -> list[str]:
    """The values of COLUMNS."""
    own, failures = row[BRANCHES], row[FAILURES]
    both = {key: own[key] + failures[key] for key in ("count", "covered")}
    return [str(own["count"]), str(own["covered"]), str(own["argued"]), f"{share(own):.1f}", str(row.get("goal") or ""), str(failures["count"]), str(failures["covered"]),
            f"{share(failures):.1f}", f"{share(both):.1f}", f"{share(row['lines']):.1f}"]


def text_of(rows: list[dict], name: str = "folder") -> str:
    table = [[name, *COLUMNS], *([row[name], *cells(row)] for row in rows)]
    widths = [max(len(line[column]) for line in table) for column in range(len(table[0]))]
    return "\n".join("  ".join([line[0].ljust(widths[0]), *(value.rjust(width) for value, width in zip(line[1:], widths[1:]))]) for line in table)


def file_rows(files: dict[str, dict], folder: str = "") -> list[dict]:
    rows = [{"file": name, **counted} for name, counted in files.items() if not folder or name.startswith(folder.rstrip("/") + "/")]
    return sorted(rows, key=lambda row: row[BRANCHES]["covered"] + row[BRANCHES]["argued"] - row[BRANCHES]["count"])


def text_of_missed(found: list[Branch], folder: str = "", kind: str = BRANCHES) -> str:
    missed = [branch for branch in found if not branch.taken and not branch.argued and branch.kind == kind and
              (not folder or f"{branch.file}/".startswith(folder.rstrip("/") + "/"))]
    sources = Sources()
    return "\n".join(branch.key(sources).replace(": ", f":{branch.line}: ", 1)
                     for branch in sorted(missed, key=lambda branch: (branch.file, branch.line, branch.column, branch.outcome)))


def write_page(build: pathlib.Path, rows: list[dict], files: dict[str, dict]) -> None:
    page = build / "page"
    objects = instrumented(build)
    more = [argument for path in objects[1:] for argument in ("--object", path)]
    output(COV, "show", "--format=html", "--show-branches=count", f"--output-dir={page / 'lines'}",
           f"--instr-profile={build / 'coverage.profdata'}", objects[0], *more, "--sources", *(SOURCE / name for name in files))

    def row_of(name, row):
        return "<tr>" + "".join(f"<td>{value}" for value in (name, *cells(row)))

    body = "".join(row_of(html.escape(row["folder"]), row) for row in rows)
    lines = "".join(row_of(link(row["file"]), row) for row in file_rows(files))
    head = "<tr><th>{}" + "".join(f"<th>{column}" for column in COLUMNS)
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
    flag, _, folder = flags[0].partition("=") if flags else ("", "", "")
    if len(builds) != 1 or len(flags) > 1 or flag not in ("", "--json", "--files", "--missed", "--failures") or flag == "--json" and folder:
        sys.exit(__doc__)
    build = pathlib.Path(builds[0]).resolve()
    try:
        files, found, wrong = measure(build)
        if not flag:
            write_page(build, table(files), files)
    except (Failed, FileNotFoundError) as failed:
        sys.exit(f"coverage: {failed}")
    if flag == "--json":
        print(json.dumps(table(files), indent=1))
    elif flag == "--files":
        print(text_of(file_rows(files, folder), "file"))
    elif flag:
        print(text_of_missed(found, folder, FAILURES if flag == "--failures" else BRANCHES))
    else:
        print(text_of(table(files)))
        print(f"every file: {build / 'page' / 'index.html'}")
    if wrong:
        sys.exit("coverage: tests/unreached.txt has arguments that do not hold:\n" + "\n".join(wrong))


if __name__ == "__main__":
    main()
