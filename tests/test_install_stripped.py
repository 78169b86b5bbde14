"""What is installed is stripped, and works: libraries and programs have no symbols but those for linking and no line numbers;
drivers still have their notes. The component `debug`, which is not installed otherwise, has a debug file for each, by its
build id."""
import re

from installed import BUILD, need_plain_library, run


def binaries(prefix):
    """Programs and libraries below the folder."""
    return [path for path in sorted(prefix.rglob("*"))
            if path.is_file() and not path.is_symlink() and path.open("rb").read(4) == b"\x7fELF"]


def sections(path):
    return set(re.findall(r"\]\s+(\.\S+)", run("readelf", "--section-headers", "--wide", path)))


def build_id(path):
    return re.search(r"Build ID: (\w+)", run("readelf", "--notes", path))[1]


def main(checks, folder):
    need_plain_library("builds with a sanitizer are not stripped")
    prefix, debug = folder / "prefix", folder / "debug"
    run("cmake", "--install", BUILD, "--prefix", prefix)
    run("cmake", "--install", BUILD, "--prefix", debug, "--component", "debug")
    installed = binaries(prefix)
    checks.check("programs and libraries", None if len(installed) > 8 else f"there are {installed}")
    for path in installed:
        extra = sorted(part for part in sections(path) if part == ".symtab" or part.startswith(".debug"))
        checks.check(f"{path.name} is stripped", f"it has {extra}" if extra else None)
        identity = build_id(path)
        file = debug / "lib/debug/.build-id" / identity[:2] / (identity[2:] + ".debug")
        if not file.exists():
            checks.check(f"{path.name}: {file.name}", "there is no such debug file")
            continue
        missing = {".symtab", ".debug_line"} - sections(file)
        checks.check(f"debug file of {path.name}", f"it has no {sorted(missing)}" if missing else None)
        checks.check(f"build id of {path.name}", None if build_id(file) == identity else "the debug file has another")
    others = [path for path in debug.rglob("*") if path.is_file() and path.suffix != ".debug"]
    checks.check("the component debug", f"it has {others}" if others else None)
    checks.check("the build folder stays whole",
                 None if ".symtab" in sections(BUILD / "lib" / "libhalyard.so") else "libhalyard.so was stripped there")
    listing = run(prefix / "bin/hal-info")
    checks.check("drivers are found", None if "local-sync" in listing else listing)

    def size(paths):
        return sum(path.stat().st_size for path in paths) / 1e6

    def built(path):
        folders = [BUILD / "bin"] if path.parent.name == "bin" else [BUILD / "lib", BUILD / "python"]
        return next(file for folder in folders for file in folder.rglob(path.name))

    whole = [built(path) for path in installed if path.name != "vulkan-pack"]
    print(f"{len(whole)} files: {size(whole):.1f} MB as built, "
          f"{size(path for path in installed if path.name != 'vulkan-pack'):.1f} MB installed, "
          f"debug files {size(debug.rglob('*.debug')):.1f} MB")
