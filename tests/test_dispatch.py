"""The interpreter jumps from each handler directly to the next, with at least one indirect jump per opcode. Some
compilers merge them into one, which halves the speed without any other effect."""

import os
import pathlib
import re
import shutil
import subprocess
import sys

SOURCE = pathlib.Path(os.environ.get("HALYARD_SOURCE", pathlib.Path(__file__).parent.parent))
BUILD = pathlib.Path(os.environ.get("HALYARD_BUILD", SOURCE / "build" / "release"))
# By objdump's name of the file format.
INDIRECT_JUMP = {"elf64-x86-64": r"\t(?:notrack )?jmp +\*", "elf64-littleaarch64": r"\tbr\t"}


def cached(variable: str) -> str:
    text = (BUILD / "CMakeCache.txt").read_text()
    found = re.search(rf"^{variable}:[A-Z]*=(.*)$", text, re.MULTILINE)
    return found.group(1) if found else ""


def skip(why: str) -> int:
    print("skipped:", why)
    return 77


def main() -> int:
    if cached("HALYARD_SANITIZE") or cached("HALYARD_DISPATCH") == "switch":
        return skip("this build dispatches by switch")
    if cached("CMAKE_BUILD_TYPE") != "Release":
        return skip("this build is not optimized")
    if not shutil.which("objdump"):
        return skip("there is no objdump")
    objects = sorted(BUILD.glob("vm/CMakeFiles/halyard_vm.dir/**/interpreter.cpp.o"))
    if not objects:
        return skip("the interpreter is not built")
    code = subprocess.run(
        ["objdump", "-d", "--no-show-raw-insn", objects[0]], check=True, text=True, capture_output=True
    ).stdout
    file_format = re.search(r"file format (\S+)", code).group(1)
    if file_format not in INDIRECT_JUMP:
        return skip(f"what an indirect jump looks like in {file_format} is not known here")
    jumps = len(re.findall(INDIRECT_JUMP[file_format], code))
    opcodes = len(re.findall(r"^OP\(", (SOURCE / "vm/src/vm/format/opcodes.inc").read_text(), re.MULTILINE))
    print(f"{jumps} indirect jumps, {opcodes} opcodes")
    if opcodes < 200:
        print("FAILED: expected more opcodes in opcodes.inc; has its layout changed?")
        return 1
    if jumps < opcodes:
        print(f"FAILED: {objects[0].name} has {jumps} indirect jumps; expected {opcodes} at least, one for each opcode")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
