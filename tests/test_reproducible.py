"""The same source gives the same bytes in every folder (HALYARD_REPRODUCIBLE, which packages and wheels are built with): objects
and drivers built in two folders are compared. test_packages.py makes packages twice; `./dev release --check` compares a whole
release with one that is made again from its source archive in another folder."""
import os
import shutil
import subprocess

import vmrun
from installed import SOURCE, cache, run

OBJECTS = [f"base/CMakeFiles/halyard_base.dir/src/base/{name}.cpp.o" for name in ("elf_note", "plugin", "status")]
DRIVERS = ["null", "template"]


def copy_source(target):
    listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=SOURCE, capture_output=True)
    if listed.returncode != 0:  # an unpacked source archive
        shutil.copytree(SOURCE, target, ignore=shutil.ignore_patterns("build"))
        return
    for name in listed.stdout.decode().split("\0"):
        if name and (SOURCE / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(SOURCE / name, target / name)


def build(source, folder):
    """The files that were built, by name."""
    environment = {**os.environ, "CCACHE_DISABLE": "1"}
    run("cmake", "-S", source, "-B", folder, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", "-DHALYARD_REPRODUCIBLE=ON",
        "-DHALYARD_TESTS=OFF", "-DHALYARD_BENCHMARKS=OFF", "-DHALYARD_JIT=OFF", "-DHALYARD_MPI=OFF",
        "-DHALYARD_PYTHON_BINDING=OFF", f"-DCMAKE_C_COMPILER={cache('CMAKE_C_COMPILER')}",
        f"-DCMAKE_CXX_COMPILER={cache('CMAKE_CXX_COMPILER')}", env=environment)
    run("cmake", "--build", folder, "--target", *OBJECTS, *(f"halyard-driver-{name}" for name in DRIVERS), env=environment)
    for name in OBJECTS:  # g++ 12 writes its arguments into the parts for link-time optimization, which no linked file has
        run("objcopy", "--remove-section=.gnu.lto_*", folder / name)
    libraries = [f"lib/halyard/drivers/halyard-driver-{name}.so" for name in DRIVERS]
    return {name: (folder / name).read_bytes() for name in [*OBJECTS, *libraries]}


def main(checks, folder):
    if cache("HALYARD_SANITIZE") or cache("CMAKE_BUILD_TYPE") != "Release" or cache("CMAKE_TOOLCHAIN_FILE"):
        vmrun.skip("packages are made of release builds")
    copy_source(folder / "one")
    shutil.copytree(folder / "one", folder / "another" / "tree")
    first = build(folder / "one", folder / "one" / "build" / "package")
    second = build(folder / "another" / "tree", folder / "elsewhere")
    for built, data in first.items():
        checks.check(built, None if data == second[built] else "other bytes in another folder")
        checks.check(f"{built} has no name of its folder", "it has" if os.fsencode(folder) in data else None)
        checks.check(f"{built} has debug information", None if b"/usr/src/halyard-" in data else "no file names in it")
