"""The messages of wrong command lines: checks the reviewed table wrong_command_lines.md, line by line. Each command
runs in a folder with the files of `make_files`; its message on standard error and its exit code must be those of the
table.

`test_wrong_command_lines.py --write` updates the table with the current messages, for a review of the difference."""
import os
import re
import shlex
import struct
import subprocess
import sys

import vmrun

TABLE = os.path.join(vmrun.SOURCE, "tests", "wrong_command_lines.md")
LEAST = 50

SMALL = """
vm.module @small
vm.rodata[0] = "some bytes"
vm.export @add
vm.export @pick
vm.export @spin
vm.export @hungry
vm.func @add(%i0: i32, %i1: i32) -> (i32) {
  %i2 = vm.add.i32 %i0, %i1
  vm.return %i2
}
vm.func @pick(%i0: i32) -> (i32) {
  vm.cond_br %i0, ^bb1, ^bb2
^bb1:
  vm.return %i0
^bb2:
  %i1 = vm.const.i32 7
  vm.fail %i1, "zero is refused"
}
""" + vmrun.endless("spin") + """vm.func @hungry() -> () {
  %i0:1 = vm.const.i64 67108864
  %i2 = vm.const.i32 16
  %r0 = vm.buffer.alloc %i0:1, %i2
  vm.return
}
"""
IMPORTER = """
vm.module @importer
vm.import @elsewhere.work cconv "0i_i"
vm.export @main
vm.func @main(%i0: i32) -> (i32) {
  %i0 = vm.call @elsewhere.work(%i0)
  vm.return %i0
}
"""
PROVIDER = """
vm.module @elsewhere
vm.export @wrok
vm.func @wrok(%i0: i32) -> (i32) {
  vm.return %i0
}
"""
EMPTY = """
vm.module @empty
vm.func @inside() -> () {
  vm.return
}
"""
NEWER = """
vm.module @newer
vm.dependency @hal 99
vm.import @hal.devices.count cconv "0v_i"
vm.export @main
vm.func @main() -> (i32) {
  %i0 = vm.call @hal.devices.count()
  vm.return %i0
}
"""
# Loads the parameter "weight" of scope "model".
PARAMETERS = """
vm.module @parameters
vm.dependency @hal 7
vm.dependency @io_parameters 0
vm.import @hal.devices.get cconv "0i_r"
vm.import @io_parameters.load cconv "0rIrrrIiirrr_r"
vm.rodata[0] = "model"
vm.rodata[1] = 0000000006000000
vm.rodata[2] = "weight"
vm.rodata[3] = 000000000000000000000000000000001000000000000000
vm.export @main
vm.func @main() -> () {
  %i0 = vm.const.i32.zero
  %r0 = vm.call @hal.devices.get(%i0)
  %r1 = vm.const.ref.zero
  %r2 = vm.const.ref.rodata 0
  %r3 = vm.const.ref.rodata 1
  %r4 = vm.const.ref.rodata 2
  %r5 = vm.const.ref.rodata 3
  %i2:3 = vm.const.i64 -1
  %i4 = vm.const.i32 50
  %i5 = vm.const.i32 150998019
  %r6 = vm.call @io_parameters.load(%r0, %i2:3, %r1, %r1, %r2, %i2:3, %i4, %i5, %r3, %r4, %r5)
  vm.return
}
"""
UNKNOWN_INSTRUCTION = "vm.module @m\nvm.func @f() -> () {\n  vm.retrun\n}\n"
UNKNOWN_REGISTER = "vm.module @m\nvm.func @f() -> (i32) {\n  vm.return %x0\n}\n"
UNKNOWN_BLOCK = "vm.module @m\nvm.func @f() -> () {\n  vm.br ^bb7\n^bb1:\n  vm.return\n}\n"
NEW_INSTRUCTION = """vm.module @m
vm.export @f
vm.func @f(%i0: i32) -> (i32) {
  %i0 = vm.@NEW@
  vm.return %i0
}
"""


def npy(dtype, count, data):
    header = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': ({count},), }}".encode()
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + data


def safetensors(name, begin, end, size):
    header = f'{{"{name}":{{"dtype":"U8","shape":[{end - begin}],"data_offsets":[{begin},{end}]}}}}'.encode()
    return struct.pack("<Q", len(header)) + header + bytes(size)


LFS_POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n"


def make_files(folder):
    """What the command lines of the table name. The table's head lists them."""
    def write(name, data):
        vmrun.write(os.path.join(folder, name), data.encode() if isinstance(data, str) else data)

    for name, text in (("small", SMALL), ("importer", IMPORTER), ("provider", PROVIDER), ("empty", EMPTY), ("newer", NEWER),
                       ("parameters", PARAMETERS)):
        module = vmrun.assemble(text, folder, name)
        if name == "small":
            small = module
    vmrun.assemble(vmrun.read_text(os.path.join(vmrun.SOURCE, "examples", "elementwise_mul.vmasm")), folder, "mul")
    os.mkdir(os.path.join(folder, "folder"))
    os.symlink("loop.vmfb", os.path.join(folder, "loop.vmfb"))
    write("cut.vmfb", small[:len(small) // 2])
    write("text.vmfb", "this is not a module at all, just some text\n" * 4)
    write("nothing.vmfb", b"")
    write("old.vmfb", small.replace((17 << 16).to_bytes(4, "little"), (14 << 16).to_bytes(4, "little")))
    write("spelling.vmasm", UNKNOWN_INSTRUCTION)
    write("register.vmasm", UNKNOWN_REGISTER)
    write("block.vmasm", UNKNOWN_BLOCK)
    write("sentence.vmasm", "this is no program\n")
    write("long.vmasm", NEW_INSTRUCTION)
    whole = npy("<f4", 8, bytes(32))
    write("eight.npy", whole)
    write("cut.npy", whole[:-5])
    write("header.npy", whole[:40])
    write("text.npy", "1, 2, 3\n")
    write("doubles.npy", npy("<f8", 8, bytes(64)))
    write("four.bin", bytes(4))
    write("weights.safetensors", safetensors("wieght", 0, 16, 16))
    write("cut.safetensors", safetensors("weight", 0, 16, 3))
    write("broken.safetensors", struct.pack("<Q", 1000) + b"{}")
    for name in ("lfs.safetensors", "lfs.vmfb"):
        write(name, LFS_POINTER)
    write("page.vmasm", "<!DOCTYPE html>\n<html></html>\n")
    write("page.safetensors", "<!DOCTYPE html>\n<html></html>\n")
    lies = b'{"weight":{"dtype":"F32","shape":[1000],"data_offsets":[0,16]}}'
    write("lies.safetensors", struct.pack("<Q", len(lies)) + lies + bytes(16))
    twice = b'{"a":{"data_offsets":[0,1]},"a":{"data_offsets":[1,2]}}'
    write("twice.safetensors", struct.pack("<Q", len(twice)) + twice + bytes(2))
    write("model.safetensors.index.json", '{"weight_map": {"weight": "model-1.safetensors"}}')
    write("big.gguf", b"GGUF" + struct.pack(">IQQ", 3, 0, 0))
    tensor = struct.pack("<Q6sIQIQ", 6, b"weight", 1, 4, 99, 0)
    write("strange.gguf", b"GGUF" + struct.pack("<IQQ", 3, 1, 0) + tensor + bytes(64))
    write("cut.irpa", b"IRPA" + bytes(20))
    write("magic.irpa", b"IPRA" + bytes(84))
    write("cut.gguf", b"GGUF" + struct.pack("<IQQ", 3, 1, 0))
    write("magic.gguf", b"FUGG" + bytes(20))
    write("weights.pt", b"PK\x03\x04")
    write("halyard-driver-text.so", "not a library\n")
    library = vmrun.read(os.path.join(vmrun.DRIVERS, "halyard-driver-null.so"))
    write("halyard-driver-cut.so", library[:1000])
    note = library.find(b"Halyard\0") + 8
    os.mkdir(os.path.join(folder, "newer"))
    write("newer/halyard-driver-null.so", library[:note] + struct.pack("<II", 7, 9) + library[note + 8:])
    write("flags.txt", "# of the demonstration\n--module=small.vmfb\n--functoin=add\n")
    write("loop.txt", "--flagfile=loop.txt\n")
    arguments = ("--device=local-sync", "--module=mul.vmfb", "--function=mul", "--input=8xf32=1", "--input=8xf32=2")
    vmrun.run("vm-run", *arguments, "--capture=run.hycap", cwd=folder).check_returncode()
    write("cut.hycap", vmrun.read(os.path.join(folder, "run.hycap"))[:200])


def run(command, folder):
    """Standard error and the exit code of a line of the table."""
    tool, *arguments = shlex.split(command.replace("=/build/", f"={vmrun.BUILD}/"))
    output = "/dev/full" if arguments[-2:] == [">", "/dev/full"] else os.devnull
    if output == "/dev/full":
        del arguments[-2:]
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("HALYARD_", "LC_", "LANG"))}
    with open(output, "wb") as file:
        done = subprocess.run([os.path.join(vmrun.BIN, tool), *arguments], cwd=folder, stdin=subprocess.DEVNULL, stdout=file,
                              stderr=subprocess.PIPE, text=True, timeout=vmrun.TIMEOUT, env={**environment, "HOME": folder})
    return done.stderr.replace(os.path.realpath(folder), "/here").replace(os.path.realpath(vmrun.BUILD), "/build"), done.returncode


class Entry:
    """`$ COMMAND`, what it says, and `[EXIT CODE]` where that is not 1. A line that is only `...` stands for any lines, `...` in a
    line for any text."""

    def __init__(self, command, said, code):
        self.command, self.said, self.code = command, said, code

    def __str__(self):
        return f"$ {self.command}\n{self.said}" + (f"[{self.code}]\n" if self.code != 1 else "")

    def matches(self, said):
        pattern = re.escape(self.said).replace(re.escape("...\n"), "(?:.*\n)*").replace(re.escape("..."), ".*")
        return re.fullmatch(pattern, said) is not None


def read_table(text):
    """The entries, and the text with `{}` in the place of each."""
    entries = []

    def take(match):
        entries.append(Entry(match[1], match[2], int(match[3] or 1)))
        return "\0"

    rest = re.sub(r"^\$ (.*)\n((?:(?!\[\d+\]\n|```).+\n)*)(?:\[(\d+)\]\n)?", take, text, flags=re.MULTILINE)
    return entries, rest


def why_wrong(entry, said, code):
    if code != entry.code:
        return f"exit code {code}, expected {entry.code}"
    if not entry.matches(said):
        return "it says something else"
    if not re.match(r"(?:vm|hal)-\w+: (%s); \S+ \S+" % "|".join(vmrun.CODES), said):
        return "no code and sentence"
    return None


def main():
    checks = vmrun.Checks()
    entries, rest = read_table(vmrun.read_text(TABLE))
    with vmrun.temporary_folder() as folder:
        make_files(folder)
        for entry in entries:
            said, code = run(entry.command, folder)
            if "--write" in sys.argv:
                if code != entry.code or not entry.matches(said):
                    entry.said, entry.code = said, code
            elif vmrun.starts_itself() or "with exit status 127 in the process that tries it" not in said:
                wrong = why_wrong(entry, said, code)
                checks.check(entry.command, wrong and f"{wrong}\n    {said}    [{code}]; expected\n    {entry.said}    [{entry.code}]")
    if "--write" in sys.argv:
        for entry in entries:
            rest = rest.replace("\0", str(entry), 1)
        vmrun.write(TABLE, rest)
        return 0
    tools = {entry.command.split()[0] for entry in entries}
    checks.check("there are enough", None if len(entries) >= LEAST else f"{len(entries)} of {LEAST}")
    checks.check("no command line occurs twice", None if len({entry.command for entry in entries}) == len(entries) else "one is")
    checks.check("every tool is there", None if set(os.listdir(vmrun.BIN)) & {"vm-run", "vm-serve", "vm-bench", "vm-check", "vm-diff", "vm-as", "vm-dump", "vm-cc", "vm-device", "hal-info", "hal-cts"} <= tools
                 else f"only {sorted(tools)}")
    return checks.finish()


if __name__ == "__main__":
    sys.exit(main())
