"""The interpreter jumps from each handler directly to the next, with at least one indirect jump per opcode. Some
compilers merge them into one, which halves the speed without any other effect. And the form of the interpreter that takes
samples keeps the head of the last loop in a register: from memory, a tight loop takes 14 % longer."""

import re
import shutil

import vmrun
from installed import BUILD, SOURCE, cache, run

# By objdump's name of the file format.
INDIRECT_JUMP = {"elf64-x86-64": r"\t(?:notrack )?jmp +\*", "elf64-littleaarch64": r"\tbr\t"}


# The comparison of a loop branch with the last one, the count of branches, and what follows.
LOOP_BRANCH = r"\tcmp +%\w+,0x\w+\(%rsp\)\n.*\tjne .*\n.*\tsubl +\$0x1,.*\n.*\tje .*\n(.*)\n"


def spilled_heads(code):
    """The numbers of loop branches, and of those that load the head of the loop from memory. By gcc for x86-64."""
    after = re.findall(LOOP_BRANCH, code)
    return len(after), sum(re.search(r"\tmov +(0x\w+)?\(%rsp\),", line) is not None for line in after)


def main():
    if cache("HALYARD_SANITIZE") or cache("HALYARD_DISPATCH") == "switch":
        vmrun.skip("this build dispatches by switch")
    if cache("CMAKE_BUILD_TYPE") != "Release":
        vmrun.skip("this build is not optimized")
    if not shutil.which("objdump"):
        vmrun.skip("there is no objdump")
    objects = sorted(BUILD.glob("vm/CMakeFiles/halyard_vm.dir/**/interpreter.cpp.o"))
    if not objects:
        vmrun.skip("the interpreter is not built")
    code = run("objdump", "-d", "--no-show-raw-insn", objects[0])
    file_format = re.search(r"file format (\S+)", code).group(1)
    if file_format not in INDIRECT_JUMP:
        vmrun.skip(f"what an indirect jump looks like in {file_format} is not known here")
    jumps = len(re.findall(INDIRECT_JUMP[file_format], code))
    opcodes = len(re.findall(r"^OP\(", (SOURCE / "vm/src/vm/format/opcodes.inc").read_text(), re.MULTILINE))
    print(f"{jumps} indirect jumps, {opcodes} opcodes")
    if opcodes < 200:
        print("FAILED: expected more opcodes in opcodes.inc; has its layout changed?")
        return 1
    if jumps < opcodes:
        print(f"FAILED: {objects[0].name} has {jumps} indirect jumps; expected {opcodes} at least, one for each opcode")
        return 1
    if file_format == "elf64-x86-64":
        sampled = run("objdump", "-d", "--no-show-raw-insn", objects[0].with_name("interpreter_sampled.cpp.o"))
        branches, spilled = spilled_heads(sampled)
        print(f"{branches} loop branches of interpret_sampled, {spilled} with a head in memory")
        if spilled:
            print("FAILED: interpret_sampled loads the head of a loop from memory; expected a register (vm/src/vm/run/interpreter.cpp, CLOSE_LOOP)")
            return 1
