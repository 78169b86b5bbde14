"""usage: packaging/measures.py FILE...          writes what can be measured of libraries and archives to standard output
       packaging/measures.py --keep BUILD [FILE...]
           keeps the measures of a build, and of the packages and the wheel that were made of it, as those of the version in halyard.h

For a shared library: its size without debug information and the names that it exports. For any other file: its size. A release
has this as halyard-VERSION.measures.json. packaging/measures/VERSION.json keeps the measures of a version by the kind of build,
with and without link-time optimization; the test `measures` and `./dev release` compare with the newest: no exported name may go,
and no file may grow by more than a tenth before somebody keeps new measures. A release, which has all files, may lack none."""

import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from version import SOURCE, version

KEPT = SOURCE / "packaging" / "measures"
GROWTH = 1.1


def stripped_size(library: pathlib.Path) -> int:
    with tempfile.TemporaryDirectory() as folder:
        copy = shutil.copy(library, folder)
        subprocess.run(["strip", "--strip-unneeded", copy], check=True)
        return pathlib.Path(copy).stat().st_size


def exported(library: pathlib.Path) -> list[str]:
    text = subprocess.run(["nm", "--dynamic", "--defined-only", "--format=posix", library], check=True, capture_output=True, text=True).stdout
    return sorted({line.split()[0] for line in text.splitlines()})


def key_of(path: pathlib.Path) -> str:
    """The name without what differs between releases and machines."""
    name = re.sub(r"\.so\.[\d.]+$", ".so", path.name)
    return re.sub(r"^(halyard)-[\d.]+-.*\.whl$", r"\1.whl", re.sub(r"_[\d.]+_\w+\.deb$", ".deb", name))


def measure(paths: list[pathlib.Path]) -> dict:
    found = {}
    for path in paths:
        if re.search(r"\.so(\.[\d.]+)?$", path.name):
            found[key_of(path)] = {"size": stripped_size(path), "exports": exported(path)}
        else:
            found[key_of(path)] = {"size": path.stat().st_size}
    return dict(sorted(found.items()))


def kind_of(build: pathlib.Path) -> str:
    """What the sizes of a build depend on."""
    lines = (build / "CMakeCache.txt").read_text()
    return "lto" if re.search(r"^HALYARD_LTO:BOOL=ON$", lines, re.MULTILINE) else "plain"


def libraries(build: pathlib.Path) -> list[pathlib.Path]:
    plugins = build / "lib" / "halyard"
    found = [build / "lib" / "libhalyard.so", *plugins.glob("*.so"), *(plugins / "drivers").glob("*.so"), *(plugins / "channels").glob("*.so")]
    return sorted(path for path in found if path.exists())


def last() -> tuple[str, dict]:
    """The newest version that is kept, and its measures by kind of build."""
    files = sorted(KEPT.glob("*.json"), key=lambda path: [int(part) for part in path.stem.split(".")])
    return files[-1].stem, json.loads(files[-1].read_text())


def compare(before: dict, now: dict, sizes: bool = True, complete: bool = False) -> list[str]:
    """What is worse than it was, of the files that both have; `complete`: none may be missing."""
    worse = [f"{name} is missing" for name in sorted(before.keys() - now.keys()) if complete]
    for name in sorted(before.keys() & now.keys()):
        gone = sorted(set(before[name].get("exports", [])) - set(now[name].get("exports", [])))
        if gone:
            worse.append(f"{name} no longer exports {', '.join(gone)}")
        if sizes and now[name]["size"] > GROWTH * before[name]["size"]:
            worse.append(f"{name} has grown from {before[name]['size']} to {now[name]['size']} bytes, by more than a tenth; find the "
                         "reason, or keep the new measures: packaging/measures.py --keep BUILD")
    return worse


def keep(build: pathlib.Path, files: list[pathlib.Path]) -> None:
    path = KEPT / f"{version()}.json"
    kept = json.loads(path.read_text()) if path.exists() else {}
    kept.setdefault(kind_of(build), {}).update(measure([*libraries(build), *files]))
    path.write_text(json.dumps(kept, indent=1) + "\n")


def main() -> None:
    arguments = sys.argv[1:]
    if len(arguments) >= 2 and arguments[0] == "--keep":
        keep(pathlib.Path(arguments[1]), [pathlib.Path(argument) for argument in arguments[2:]])
    elif arguments and not any(argument.startswith("-") for argument in arguments):
        print(json.dumps(measure([pathlib.Path(argument) for argument in arguments]), indent=1))
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
