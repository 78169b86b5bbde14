"""The version of this tree, which only halyard.h defines."""

import pathlib
import re

SOURCE = pathlib.Path(__file__).resolve().parent.parent


def version() -> str:
    text = (SOURCE / "bindings/c/include/halyard/halyard.h").read_text()
    parts = re.findall(r"^#define HALYARD_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)$", text, re.MULTILINE)
    if len(parts) != 3:
        raise SystemExit("halyard.h does not define HALYARD_VERSION_MAJOR, _MINOR and _PATCH, once each")
    return ".".join(parts)


if __name__ == "__main__":
    print(version())
