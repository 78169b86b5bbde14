"""What a short run of vm-run does without: libraries, threads and files that it does not need, constructors, and pages that the dynamic
linker writes to. benchmarks/startup.py measures the time."""
import os
import re
import shutil
import subprocess

import vmrun
from installed import BUILD, cache, need_plain_library, run

MODULE = "examples/elementwise_mul.vmasm"
CALL = ["--module=" + MODULE, "--function=mul", "--input=8xf32=1,2,3,4,5,6,7,8", "--input=8xf32=2", "--device=local-sync"]
SPIN = "vm.module @spin\nvm.export @forever\n" + vmrun.endless("forever")

# Of the system, and of this build.
LIBRARIES = {"libhalyard.so.0", "halyard-driver-local.so", "libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}
# A build whose C++ library is shared.
CXX_LIBRARIES = {"libstdc++.so.6", "libgcc_s.so.1"}
OPENED = re.compile(r"/etc/ld\.so\.(cache|preload)")

# Pages of 4 KiB that the dynamic linker writes to. Large tables without pointers are not among them.
MOST_RELOCATED = {"libhalyard.so": 16, "halyard-driver-local.so": 10}


def loaded(folder):
    """The names of the libraries that the run loads."""
    log = folder / "log"
    done = vmrun.run("vm-run", *CALL, env={**os.environ, "LD_DEBUG": "files", "LD_DEBUG_OUTPUT": str(log)})
    if done.returncode != 0:
        raise AssertionError(done.stderr)
    text = "".join(vmrun.read_text(path) for path in folder.glob("log.*"))
    return {os.path.basename(path) for path in re.findall(r"calling init: (\S+)", text)}


def opened(folder):
    """The paths of the files that the run opens."""
    log = folder / "strace"
    subprocess.run(["strace", "-f", "-e", "trace=open,openat", "-o", log, os.path.join(vmrun.BIN, "vm-run"), *CALL],
                   cwd=vmrun.SOURCE, check=True, capture_output=True)
    return re.findall(r'open(?:at)?\((?:AT_FDCWD, )?"([^"]*)".* = \d+', vmrun.read_text(log))


def while_it_runs(folder):
    """The names of the threads of an endless call on local-sync, and its open files."""
    vmrun.write(folder / "spin.vmasm", SPIN)
    process = subprocess.Popen([os.path.join(vmrun.BIN, "vm-run"), f"--module={folder / 'spin.vmasm'}", "--function=forever",
                                "--device=local-sync", "--jit=off"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        process.stdout.readline()  # EXEC @forever
        vmrun.wait_until_it_computes(process)
        state = f"/proc/{process.pid}"
        return (len(os.listdir(f"{state}/task")), sorted(int(name) for name in os.listdir(f"{state}/fd")))
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def sections(path):
    """The sizes of the sections of an ELF file."""
    text = run("readelf", "--sections", "--wide", path)
    return {name: int(size, 16) for name, size in re.findall(r"\] (\S+)\s+\S+\s+[0-9a-f]+ [0-9a-f]+ ([0-9a-f]+)", text)}


def main(checks, folder):
    vmrun.need_tool("vm-run")
    need_plain_library("a sanitizer loads its library")
    if vmrun.is_emulated():
        vmrun.skip("an emulator is in the way")
    owns = cache("HALYARD_OWN_CXX_LIBRARY") == "ON" and cache("HALYARD_CXX_LIBRARY_IS_RELOCATABLE")
    owns = owns and cache("CMAKE_BUILD_TYPE") != "Debug"

    names = loaded(folder)
    allowed = LIBRARIES if owns else LIBRARIES | CXX_LIBRARIES
    if not cache("HALYARD_FFI_LIBRARY").endswith(".a"):
        allowed = allowed | {"libffi.so.8"}
    checks.check("the libraries include the driver", None if "halyard-driver-local.so" in names else sorted(names))
    names.discard("vm-run")
    checks.check("no library that is not needed", sorted(names - allowed) or None)

    if shutil.which("strace"):
        own = (str(BUILD), vmrun.SOURCE, vmrun.BIN)
        paths = opened(folder)
        foreign = [path for path in paths if not OPENED.fullmatch(path) and not path.startswith(own)
                   and os.path.basename(path) not in allowed and not os.path.isdir(path) and path != MODULE]
        checks.check("no file that is not needed", foreign or None)

    threads, files = while_it_runs(folder)
    checks.check("its own thread, and one that waits for signals", None if threads == 2 else f"{threads} threads")
    checks.check("no file stays open", None if files == [0, 1, 2] else f"descriptors {files}")

    if owns:  # where features of the processor come from the C library (halyard/x86_features.hpp)
        for path in (vmrun.BIN + "/vm-run", BUILD / "lib" / "libhalyard.so", BUILD / "lib" / "halyard" / "drivers" / "halyard-driver-local.so"):
            found = re.findall(r"\b__cpu_indicator_init\b", run("nm", path))
            checks.check(f"no constructor of {os.path.basename(path)} asks the processor", found or None)
        for name, most in MOST_RELOCATED.items():
            place = BUILD / "lib" / name if name.startswith("lib") else BUILD / "lib" / "halyard" / "drivers" / name
            pages = sections(place).get(".data.rel.ro", 0) / 4096
            checks.check(f"{name} has few pointers", None if 0 < pages <= most else f"{pages:.1f} pages of .data.rel.ro; at most {most}")
