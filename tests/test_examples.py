"""Every `// run:` line of examples/*.vmasm succeeds and prints the `// expect:` lines that follow it."""

import os
import pathlib
import re
import subprocess
import sys

SOURCE = pathlib.Path(os.environ.get("HALYARD_SOURCE", pathlib.Path(__file__).parent.parent)).resolve()
BUILD = pathlib.Path(os.environ.get("HALYARD_BUILD", SOURCE / "build" / "release")).resolve()


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


def main() -> int:
    examples = sorted((SOURCE / "examples").glob("*.vmasm"))
    if not examples or not (BUILD / "bin" / "vm-run").exists():
        print("no examples, or vm-run is not built")
        return 77
    environment = {**os.environ, "PATH": f"{BUILD / 'bin'}{os.pathsep}{os.environ['PATH']}"}
    failures = 0
    for example in examples:
        pairs = commands(example.read_text())
        if not pairs:
            print(f"FAILED: {example.name} does not say how to run it; expected a line '// run: COMMAND'")
            failures += 1
        for command, expected in pairs:
            result = subprocess.run(
                ["bash", "-o", "pipefail", "-c", command],
                cwd=SOURCE, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            )
            printed = [line.rstrip() for line in result.stdout.splitlines()]
            if result.returncode != 0 or printed != expected:
                failures += 1
                print(f"FAILED: {example.name}: {command}\nexit status {result.returncode}; expected 0")
                print("expected:", *expected, "printed:", *printed, "on standard error:", result.stderr, sep="\n")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
