"""Fenced blocks of documents. A comment before a block says why the test `documented_commands` does not run it:

    <!-- not run: REASON -->
    <!-- run by: TEST -->       that test runs these commands, or others to the same effect; its script names the document

A block below a line **`NAME`** is the file NAME of the session."""
import dataclasses
import os
import pathlib
import re
import subprocess

from installed import SOURCE

# Languages of blocks with commands, and of blocks without; "text" is output, a layout or a picture.
RUN = ("sh", "console", "python")
OTHERS = ("asm", "c", "cmake", "cpp", "json", "pycon", "sql", "text", "vmasm", "yaml")
# Documents with a test of their own, and those that only describe formats.
OWN_TEST = {"docs/embedding.md": "embedding", "tests/wrong_command_lines.md": "wrong_command_lines"}
FORMATS = "docs/spec/"

FENCE = re.compile(r"^(?P<indent> *)```(?P<language>\S*)[^\n]*\n(?P<text>.*?)^ *```[ \t]*$", re.MULTILINE | re.DOTALL)
MARKER = re.compile(r"<!-- (not run|run by): ((?:(?!-->).)*?)\s*-->\s*\Z", re.DOTALL)
NAME = re.compile(r"^\*\*`([\w.-]+)`\*\*\s*\Z", re.MULTILINE)


@dataclasses.dataclass
class Block:
    line: int
    language: str
    text: str
    name: str  # of the file that it is, or ""
    not_run: str
    run_by: str


def paths() -> list[pathlib.Path]:
    """The documents, relative to the source."""
    found = (path.relative_to(SOURCE) for path in SOURCE.rglob("*.md"))
    return sorted(path for path in found if path.parts[0] not in ("build", ".git"))


def blocks(document: str) -> list[Block]:
    text = (SOURCE / document).read_text(encoding="utf-8")
    found = []
    for fence in FENCE.finditer(text):
        before = text[:fence.start()]
        marker, name = MARKER.search(before), NAME.search(before)
        kind, said = marker.groups() if marker else ("", "")
        body = re.sub(f"^{fence['indent']}", "", fence["text"], flags=re.MULTILINE)
        found.append(Block(before.count("\n") + 1, fence["language"], body, name[1] if name else "",
                           said if kind == "not run" else "", said if kind == "run by" else ""))
    return found


def steps(block: Block):
    """(command, what it prints) of a block, in order. A block "console" shows what each command prints; for others it is None."""
    if block.language != "console":
        return [(block.text, None)]
    found = []
    for line in block.text.splitlines(keepends=True):
        open_quote = found and not found[-1][1] and found[-1][0].count("'") % 2 == 1
        if line.startswith("$ ") and not open_quote:
            found.append([line[2:], ""])
        elif open_quote or (found and not found[-1][1] and found[-1][0].endswith("\\\n")):
            found[-1][0] += line
        else:
            found[-1][1] += line
    return found


def in_prefix(command: str) -> str:
    """The word PREFIX of documents as a variable of the shell."""
    return re.sub(r"(?<![_$])PREFIX(?!_)", "$PREFIX", command)


def is_output(printed: str, expected: str) -> bool:
    """A line "..." of the expected stands for any number of lines, "..." in a line for any text; milliseconds may be others."""
    printed, expected = (re.sub(r"\(\d+ ms\b", "(0 ms", text) for text in (printed, expected))
    wanted = ""
    for line in expected.splitlines():
        wanted += r"(?:.*\n)*" if line == "..." else r".*".join(map(re.escape, line.split("..."))) + r"\n"
    return re.fullmatch(wanted, printed if printed.endswith("\n") or not printed else printed + "\n") is not None


def run_in_one_shell(commands: list[str], folder: pathlib.Path, environment: dict[str, str], timeout=3000):
    """(exit status, output) of each command; status None if the shell ended before."""
    scripts = folder / ".commands"
    scripts.mkdir()
    lines = []
    for number, command in enumerate(commands):
        (scripts / f"{number}.sh").write_text(command + "\n")
        (scripts / f"{number}.out").touch()
        lines.append(f"source {scripts}/{number}.sh >{scripts}/{number}.out 2>&1 </dev/null; echo $? >{scripts}/{number}.status")
    subprocess.run(["bash", "-c", "\n".join(lines)], cwd=folder, env={**os.environ, **environment}, timeout=timeout)
    for number in range(len(commands)):
        status = scripts / f"{number}.status"
        yield int(status.read_text()) if status.exists() else None, (scripts / f"{number}.out").read_text(errors="replace")
