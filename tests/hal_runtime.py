#!/usr/bin/env python3
"""A runner with the flags of vm-run that runs no bytecode: it makes a native module of each module (vm-cc --runtime=hal, a C
compiler), and runs vm-run with these. For run.py of the shared fixtures, and for test_vm_cc_hal.py.

Environment: VM_CC and VM_RUN (the programs; default: those of PATH), CC (default cc), CFLAGS (default -std=c11 -O1 and all
warnings as errors), HALYARD_INCLUDE (folders of halyard/*.h, separated by ':'), NATIVE_MODULES (a folder; modules are kept
there by content and flags). Exit 3: vm-cc refused a module; 4: the C compiler did."""
import glob
import hashlib
import os
import shlex
import subprocess
import sys
import tempfile

STRICT = "-std=c11 -O1 -Wall -Wextra -Wconversion -pedantic -Werror"


def setting(name, default):
    return os.environ.get(name, default)


def is_bytecode(path):
    """Whether the file is there and no library: vm-run has the messages about others."""
    if not os.path.isfile(path):
        return False
    with open(path, "rb") as file:
        return file.read(4) != b"\x7fELF"


def native_module(module):
    """The path of a library that is this module. Exits if there is none."""
    with open(module, "rb") as file:
        key = hashlib.sha256(file.read())
    compiler = [*shlex.split(setting("CC", "cc")), *shlex.split(setting("CFLAGS", STRICT))]
    vm_cc = setting("VM_CC", "vm-cc")
    key.update(" ".join(compiler).encode())
    if os.path.exists(vm_cc):
        key.update(str(os.stat(vm_cc).st_mtime_ns).encode())
    kept = setting("NATIVE_MODULES", os.path.join(tempfile.gettempdir(), "halyard-native-modules"))
    folder = os.path.join(kept, key.hexdigest()[:24])
    library = os.path.join(folder, "model.so")
    if os.path.exists(library):
        return library
    os.makedirs(folder, exist_ok=True)
    made = subprocess.run([vm_cc, module, "--runtime=hal", "-o", os.path.join(folder, "model")], capture_output=True, text=True)
    if made.returncode:
        sys.stderr.write(made.stderr)
        sys.exit(3)
    includes = [f"-I{each}" for each in setting("HALYARD_INCLUDE", "").split(":") if each]
    sources = [os.path.basename(path) for end in ("c", "S") for path in sorted(glob.glob(f"{folder}/*.{end}"))]
    made = subprocess.run([*compiler, "-shared", "-fPIC", *includes, *sources, "-lm", "-o", f"model.so.{os.getpid()}"],
                          capture_output=True, text=True, cwd=folder)
    if made.returncode:
        sys.stderr.write(f"the C in {folder} does not compile: {made.stderr[:4000]}")
        sys.exit(4)
    os.replace(f"{library}.{os.getpid()}", library)
    return library


def main():
    arguments = []
    for argument in sys.argv[1:]:
        if argument.startswith("--module="):
            path, at, text = argument[len("--module="):].partition("@")
            argument = f"--module={native_module(path)}{at}{text}" if is_bytecode(path) else argument
        arguments.append(argument)
    vm_run = setting("VM_RUN", "vm-run")
    os.execvp(vm_run, [vm_run, *arguments])


if __name__ == "__main__":
    main()
