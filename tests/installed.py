"""For tests of an installed Halyard: installing it, and commands that must succeed."""
import pathlib
import subprocess
import sys

import vmrun

BUILD, SOURCE = pathlib.Path(vmrun.BUILD).resolve(), pathlib.Path(vmrun.SOURCE).resolve()


def run(*command, **options) -> str:
    """The output of the command; ends the test if it fails."""
    result = subprocess.run([str(part) for part in command], text=True, capture_output=True, **options)
    if result.returncode != 0:
        sys.exit(f"FAILED ({result.returncode}): {' '.join(map(str, command))}\n{result.stdout}{result.stderr}")
    return result.stdout


def cache(name: str) -> str:
    """A variable of the build's CMake cache; empty if it is not set."""
    for line in (BUILD / "CMakeCache.txt").read_text().splitlines():
        if line.startswith(name + ":"):
            return line.split("=", 1)[1]
    return ""


def need_plain_library(why: str) -> None:
    """Skips the test in a build without libhalyard.so, and in one with a sanitizer, for that reason."""
    if not (BUILD / "lib" / "libhalyard.so").exists():
        vmrun.skip("libhalyard.so is not built")
    if cache("HALYARD_SANITIZE"):
        vmrun.skip(why)


def exported(library: pathlib.Path) -> list[str]:
    """The symbols that a library exports."""
    lines = run("nm", "-D", "--defined-only", "--format=posix", library).splitlines()
    return [line.split()[0].split("@")[0] for line in lines if line]
