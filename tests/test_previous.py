"""Neighbouring releases work together, in both directions: drivers of the last release in the library of today, drivers of today
in the library of the last release, and its programs with the library of today. The last release is built from its commit
(tests/abi/previous.txt), which takes minutes: a long test."""
import os
import pathlib
import re
import shutil
import subprocess
import tarfile

import vmrun
from installed import BUILD, SOURCE, need_plain_library, run

FEWER = ("-DHALYARD_TESTS=OFF", "-DHALYARD_BENCHMARKS=OFF", "-DHALYARD_JIT=OFF", "-DHALYARD_MPI=OFF", "-DHALYARD_PYTHON_BINDING=OFF",
         "-DHALYARD_LTO=OFF", "-DHALYARD_PCH=OFF", "-DHALYARD_UNITY=OFF")
BYTES = SOURCE / "tests" / "abi" / "first" / "moves_bytes.vmasm"
SHUFFLE = ["--function=shuffle", "--input=8xf32=5,6,7,8,9,10,11,12"]
SHUFFLED = "EXEC @shuffle\nresult[0]: hal.buffer_view\n8xf32=1 1 40 42 5 6 7 8\n"
# Programs in C of the last release, which test its C ABI: tests of counts are left out.
PROGRAMS = ("arm", "embed", "inline", "list", "memory", "prepare", "signature", "work")


def build_previous(folder: pathlib.Path) -> pathlib.Path:
    commit = (SOURCE / "tests" / "abi" / "previous.txt").read_text().split()[0]
    there = subprocess.run(["git", "-C", SOURCE, "cat-file", "-e", commit], capture_output=True).returncode == 0
    if not there:
        vmrun.skip(f"there is no commit {commit} here: not a git tree, or not a whole one")
    tree, build = folder / "tree", folder / "build"
    archive = folder / "tree.tar"
    run("git", "-C", SOURCE, "archive", "--output", archive, commit)
    with tarfile.open(archive) as packed:
        packed.extractall(tree, filter="data")
    run("cmake", "--preset", "release", "-B", build, *FEWER, cwd=tree)
    jobs = os.environ.get("HALYARD_JOBS", str(os.cpu_count()))
    run("cmake", "--build", build, "-j", jobs, "--target", "halyard", "vm-run", "hal-info", "halyard-driver-null", "halyard-driver-local")
    return build


def shuffled(checks, name, build, drivers, device="null", library=None):
    """vm-run of a build, on a driver of another one."""
    environment = {**os.environ, "HOME": "/nonexistent", "HALYARD_DRIVER_PATH": ""}
    if library:
        environment["LD_LIBRARY_PATH"] = str(library)
    driver = drivers / "lib/halyard/drivers" / f"halyard-driver-{device.split('-')[0]}.so"
    command = [build / "bin/vm-run", f"--module={BYTES}", f"--device={device}", f"--driver={driver}", *SHUFFLE]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=900)
    checks.check(name, None if done.returncode == 0 and done.stdout == SHUFFLED else f"expected {SHUFFLED!r}", done)


def loaded_library(program, folder) -> str:
    """The file of libhalyard that a program with that folder of libraries loads."""
    done = subprocess.run(["ldd", program], env={**os.environ, "LD_LIBRARY_PATH": str(folder)}, capture_output=True, text=True)
    lines = [line for line in done.stdout.splitlines() if "libhalyard.so" in line]
    return lines[0].split("=>")[1].split()[0] if lines else ""


def fails_otherwise(done) -> bool:
    """Whether a program in C found anything but other messages: the codes of failures stay, their texts may change."""
    other_message = re.compile(r"[^ ]+:\d+: expected (\w+) with '.*', found: \1; .*")
    return done.returncode != 0 and not (done.returncode == 1 and done.stderr and all(map(other_message.fullmatch, done.stderr.splitlines())))


def main(checks, folder):
    need_plain_library("libraries with a sanitizer take drivers with the same one alone")
    if not shutil.which("git"):
        vmrun.skip("there is no git")
    if not (BUILD / "bin/vm-run").exists():
        vmrun.skip("vm-run is not built")
    before = build_previous(folder)
    for device in ("null", "local-sync", "local-task"):
        shuffled(checks, f"a driver of the last release in the library of today: {device}", BUILD, before, device)
        shuffled(checks, f"a driver of today in the library of the last release: {device}", before, BUILD, device)

    # A tool of the last release, with the library of today in place of its own.
    tools = folder / "tools"
    shutil.copytree(before / "bin", tools / "bin")
    (tools / "lib").mkdir()
    for name in ("libhalyard.so.0", "libhalyard.so"):
        (tools / "lib" / name).symlink_to((BUILD / "lib" / "libhalyard.so").resolve())
    loaded = loaded_library(tools / "bin/vm-run", tools / "lib")
    checks.check("the tool loads the library of today", None if pathlib.Path(loaded or "/").resolve() == (BUILD / "lib/libhalyard.so").resolve()
                 else f"it loads {loaded!r}")
    shuffled(checks, "a tool of the last release with the library of today", tools, BUILD, library=tools / "lib")
    shuffled(checks, "the same with its own drivers", tools, before, library=tools / "lib")

    # Its programs in C, compiled against its headers.
    tree = folder / "tree"
    headers = [f"-I{tree / part / 'include'}" for part in ("bindings/c", "base", "hal", "vm")]
    for name in PROGRAMS:
        program = folder / name
        run("cc", "-std=gnu11", "-w", *headers, f'-DHALYARD_BUILD_DIR="{before}"', f'-DHALYARD_SOURCE_DIR="{tree}"',
            tree / "bindings/c/tests" / f"{name}.c", "-o", program, before / "lib/libhalyard.so", "-pthread", "-lm")
        for whose, build in (("its own library", before), ("the library of today", BUILD)):
            environment = {**os.environ, "LD_LIBRARY_PATH": str(build / "lib"), "HALYARD_DRIVER_PATH": str(build / "lib/halyard/drivers")}
            done = subprocess.run([program], env=environment, capture_output=True, text=True, timeout=900)
            checks.check(f"{name}.c of the last release with {whose}", f"exit status {done.returncode}" if fails_otherwise(done) else None, done)
