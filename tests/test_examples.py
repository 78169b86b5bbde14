"""Every `// run:` line of the .vmasm files in examples/ prints the `// expect:` lines that follow it: from the text, and from the module
that vm-as makes of it."""

import os
import pathlib
import re
import subprocess
import sys

import vmrun
from installed import BUILD, SOURCE

TOOLS = BUILD / "bin"


def commands(text: str):
    """(command, lines expected on standard output) in the order of the file."""
    found = []
    for kind, rest in re.findall(r"^// (run|expect): ?(.*)$", text, re.MULTILINE):
        if kind == "run":
            found.append((rest.strip(), []))
        elif not found:
            sys.exit("FAILED: an '// expect:' line stands before the first '// run:' line")
        else:
            found[-1][1].append(rest.rstrip())
    return found


def shell(command: str):
    environment = {**os.environ, "HALYARD_BUILD": str(BUILD), "PATH": f"{TOOLS}{os.pathsep}{os.environ['PATH']}"}
    return subprocess.run(["bash", "-o", "pipefail", "-c", command], cwd=SOURCE, env=environment,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=900)


def prints(command: str, expected: list[str]) -> bool:
    result = shell(command)
    printed = [line.rstrip() for line in result.stdout.splitlines()]
    if result.returncode == 0 and printed == expected:
        return True
    print(f"FAILED: {command}\nexit status {result.returncode}; expected 0")
    print("expected:", *expected, "printed:", *printed, "on standard error:", result.stderr, sep="\n")
    return False


def check(example: pathlib.Path, folder: pathlib.Path) -> bool:
    pairs = commands(example.read_text())
    if not pairs:
        print(f"FAILED: {example.name} does not say how to run it; expected a line '// run: COMMAND'")
        return False
    name = str(example.relative_to(SOURCE))
    module = folder / (example.stem + ".vmfb")
    assembled = prints(f"vm-as {name} --output={module}", [])
    good = assembled
    for command, expected in pairs:
        if f"--module={name}" not in command:
            print(f"FAILED: {example.name}: the command does not run this file: {command}")
            good = False
        good &= prints(command, expected)
        if assembled:
            good &= prints(command.replace(name, str(module)), expected)
    return good


def main(folder):
    examples = sorted((SOURCE / "examples").rglob("*.vmasm"))
    vmrun.need_tool("vm-run")
    vmrun.need_tool("vm-as")
    results = [check(example, folder) for example in examples]
    print(f"{sum(results)} of {len(results)} examples print what they should")
    return results.count(False) if results else 1
