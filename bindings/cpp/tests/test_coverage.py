"""Every function that libhalyard exports is reachable from C++: a header of bindings/cpp uses it."""
import os
import pathlib
import re
import subprocess
import sys

SOURCE = pathlib.Path(os.environ.get("HALYARD_SOURCE", pathlib.Path(__file__).parents[3]))
BUILD = pathlib.Path(os.environ.get("HALYARD_BUILD", SOURCE / "build" / "release"))


def exported(library: pathlib.Path) -> set[str]:
    lines = subprocess.run(["nm", "-D", "--defined-only", "--format=posix", library], check=True, text=True,
                           capture_output=True).stdout.splitlines()
    return {line.split()[0].split("@")[0] for line in lines if line}


def used(folder: pathlib.Path) -> set[str]:
    """Names of functions in code, not in comments."""
    names = set()
    for header in folder.rglob("*.hpp"):
        code = re.sub(r"//.*", "", header.read_text(encoding="utf-8"))
        names |= set(re.findall(r"\bhalyard_\w+\b", code))
    return names


def main() -> int:
    library = BUILD / "lib" / "libhalyard.so"
    if not library.exists():
        print("libhalyard.so is not built")
        return 77
    functions = exported(library)
    missing = sorted(functions - used(SOURCE / "bindings" / "cpp" / "include"))
    for name in missing:
        print(f"FAILED: no header of bindings/cpp uses {name}")
    print(f"{len(functions) - len(missing)} of {len(functions)} functions are used")
    return 1 if missing or len(functions) < 100 else 0


if __name__ == "__main__":
    sys.exit(main())
