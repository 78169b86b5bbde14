"""The version of this tree: it stands in CMakeLists.txt and nowhere else."""

import pathlib
import re

SOURCE = pathlib.Path(__file__).resolve().parent.parent


def version() -> str:
    found = re.search(r"^project\(Halyard VERSION (\d+\.\d+\.\d+)", (SOURCE / "CMakeLists.txt").read_text(), re.MULTILINE)
    if not found:
        raise SystemExit("CMakeLists.txt does not say project(Halyard VERSION X.Y.Z")
    return found[1]


if __name__ == "__main__":
    print(version())
