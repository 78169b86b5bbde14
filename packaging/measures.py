"""usage: packaging/measures.py FILE...          writes what can be measured of libraries and archives to standard output
       packaging/measures.py --keep BUILD [FILE...]
           keeps the measures of a build, and of the packages and the wheel that were made of it, as those of the version in halyard.h

For a shared library: its size without debug information and the names that it exports. For a wheel: its size, and the same of each of
Halyard's libraries in it. For any other file: its size. A release has this as
halyard-VERSION.measures.json. packaging/measures/VERSION.json keeps the measures of a version by the kind of build, with and without
link-time optimization; the test `measures` and `./dev release` compare with the newest: no exported name may go, and no file may grow by
more than a tenth before somebody keeps new measures. A release, which has all files, may lack none."""

import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile

from version import SOURCE, version

KEPT = SOURCE / "packaging" / "measures"
GROWTH = 1.1


class Unmeasurable(Exception):
    """A file or folder that is not there, or is not what its name says."""


def output_of(library: pathlib.Path, *command: str) -> str:
    done = subprocess.run([*command, library], capture_output=True, text=True)
    if done.returncode != 0:
        raise Unmeasurable(f"{library} is not a shared library that '{command[0]}' can read: {done.stderr.strip()}")
    return done.stdout


def stripped_size(library: pathlib.Path) -> int:
    with tempfile.TemporaryDirectory() as folder:
        copy = pathlib.Path(shutil.copy(library, folder))
        output_of(copy, "strip", "--strip-unneeded")
        return copy.stat().st_size


def exported(library: pathlib.Path) -> list[str]:
    text = output_of(library, "nm", "--dynamic", "--defined-only", "--format=posix")
    return sorted({line.split()[0] for line in text.splitlines()})


def measure_library(library: pathlib.Path) -> dict:
    names = exported(library)  # first, so that an error names the file and not its copy
    return {"size": stripped_size(library), "exports": names}


def is_library(name: str) -> bool:
    return re.search(r"\.so(\.[\d.]+)?$", name) is not None


def libraries_of_wheel(wheel: pathlib.Path) -> dict:
    """The measures of Halyard's own libraries in it. Those of other projects have the sizes of the system that built it."""
    found = {}
    try:
        with zipfile.ZipFile(wheel) as archive, tempfile.TemporaryDirectory() as folder:
            for place in archive.namelist():
                library = pathlib.Path(place)
                if is_library(library.name) and re.match("(lib|_)?halyard", library.name):
                    found[f"{key_of(wheel)}/{key_of(library)}"] = measure_library(pathlib.Path(archive.extract(place, folder)))
    except zipfile.BadZipFile as error:
        raise Unmeasurable(f"{wheel} is not a wheel: {error}") from error
    return found


def key_of(path: pathlib.Path) -> str:
    """The name without what differs between releases and machines."""
    name = re.sub(r"\.so\.[\d.]+$", ".so", path.name)
    return re.sub(r"^(halyard)-[\d.]+-.*\.whl$", r"\1.whl", re.sub(r"_[\d.]+_\w+\.deb$", ".deb", name))


def measure(paths: list[pathlib.Path]) -> dict:
    found = {}
    for path in paths:
        if not path.is_file():
            raise Unmeasurable(f"{path} is not a file; expected a library, a package, a wheel or an archive")
        if is_library(path.name):
            found[key_of(path)] = measure_library(path)
        else:
            found[key_of(path)] = {"size": path.stat().st_size}
        if path.suffix == ".whl":
            found.update(libraries_of_wheel(path))
    return dict(sorted(found.items()))


def kind_of(build: pathlib.Path) -> str:
    """What the sizes of a build depend on."""
    cache = build / "CMakeCache.txt"
    if not cache.is_file():
        raise Unmeasurable(f"there is no {cache}; expected the folder of a build, such as build/package (./dev package)")
    lines = cache.read_text()
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
    kind, of_build = kind_of(build), libraries(build)
    if not of_build:
        raise Unmeasurable(f"there are no libraries below {build / 'lib'}; build them first")
    path = KEPT / f"{version()}.json"
    kept = json.loads(path.read_text()) if path.exists() else {}
    kept.setdefault(kind, {}).update(measure([*of_build, *files]))
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
    try:
        main()
    except Unmeasurable as error:
        sys.exit(f"measures: {error}")
