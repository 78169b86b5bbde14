"""Runs the tests of the package with pytest; ctest calls it. Ends with 77, skipped, where pytest is not installed.

usage: run.py FILE...

HALYARD_TEST_PYTHON names another interpreter, such as a debug build (package python3-dbg: python3.11d), which counts all
references. It counts those of the extension too where that was built with
-DHALYARD_PYTHON_INCLUDE=/usr/include/python3.11d.

In builds with AddressSanitizer the interpreter is started with its library. Leaks are reported where ASAN_OPTIONS has
detect_leaks=1: Python and numpy have some of their own, and so has a process that ends in the middle of a call.
"""

import os
import pathlib
import subprocess
import sys

FOLDER = pathlib.Path(__file__).resolve().parent
SOURCE = pathlib.Path(os.environ.get("HALYARD_SOURCE", FOLDER.parents[2]))
BUILD = pathlib.Path(os.environ.get("HALYARD_BUILD", SOURCE / "build" / "release"))


def sanitizer_library(extension):
    """Path of the AddressSanitizer library that the extension is linked with; None: it has none."""
    for line in subprocess.run(["ldd", extension], capture_output=True, text=True).stdout.splitlines():
        if "libasan" in line:
            return line.split("=>")[1].split()[0]
    return None


NOTHING_RAN = 5  # pytest's: a file is skipped as a whole where the package that it tests with is not installed


def has_pytest(python):
    return pathlib.Path(python).exists() and subprocess.run([python, "-c", "import pytest"], capture_output=True).returncode == 0


def main():
    # The first python3 on the path may be another one than the system's, whose packages are Debian's.
    candidates = [os.environ.get("HALYARD_TEST_PYTHON", sys.executable), "/usr/bin/python3"]
    python = next(filter(has_pytest, candidates), None)
    if python is None:
        print(f"skipped: none of {', '.join(candidates)} has pytest (package python3-pytest)")
        return 77
    extension = BUILD / "python" / "halyard" / "_halyard.abi3.so"
    if not extension.exists():
        print(f"skipped: {extension} was not built (package python3-dev)")
        return 77
    environment = {**os.environ, "PYTHONPATH": str(BUILD / "python")}
    if library := sanitizer_library(extension):
        environment |= {"LD_PRELOAD": library, "ASAN_OPTIONS": "detect_leaks=0:" + os.environ.get("ASAN_OPTIONS", ""),
                        "PYTHONMALLOC": "malloc"}
    files = sys.argv[1:] or sorted(str(file) for file in FOLDER.glob("test_*.py"))
    code = subprocess.run([python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *files], env=environment).returncode
    return 77 if code == NOTHING_RAN else code


if __name__ == "__main__":
    sys.exit(main())
