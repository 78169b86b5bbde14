"""vm-dump from the command line: the summary, its JSON, the disassembly and assembling it again, and errors."""
import json
import os
import random
import subprocess

import vmrun

KERNELS = """
  vm.module @kernels
  vm.export @mul
  vm.attr @mul "binding_count" "3"
  vm.func @mul(%r0: !vm.buffer, %r1: !vm.buffer, %r2: !vm.list<!vm.buffer>, %i0: i32, %i1: i32, %i2: i32, %i3: i32, %i4: i32, %i5: i32, %i6: i32, %i7: i32, %i8: i32) -> () {
    vm.return
  }
"""
PROGRAM = """vm.module @program version 3 bytecode 15
vm.state 8, 1
vm.module_attr "origin" "a test"
vm.dependency @hal 5
vm.dependency @extras 0 optional
vm.import @hal.fence.create cconv "0ri_r"
vm.import @hal.executable.create cconv "0rrrr_r"
vm.import @hal.devices.get cconv "0i_r"
vm.import optional @extras.work cconv ""
vm.rodata[0] = "vmvx-bytecode-fb"
vm.rodata[1] = module {%s}
vm.export @make
vm.export @copy = @make
vm.attr @make "iree.abi.declaration" "sync func @make(%%input0: i32)"
vm.func @make(%%i0: i32) -> (!hal.executable) {
  %%r0 = vm.call @hal.devices.get(%%i0)
  %%r1 = vm.const.ref.rodata 0
  %%r2 = vm.const.ref.rodata 1
  %%r3 = vm.call @hal.executable.create(%%r0, %%r1, %%R2, %%r4)
  vm.return %%R3
}
vm.func @hidden() -> () {
  .debug_name "inner one"
  vm.return
}
""" % KERNELS


def hal_program(signature, bytecode):
    return (f'vm.module @m bytecode {bytecode}\nvm.import @hal.fence.create cconv "{signature}"\n'
            "vm.func @f() -> () {\n  vm.return\n}\n")


class Dump:
    """One test run: a folder, the checks, and short ways to say what is expected."""

    def __init__(self, folder, checks):
        self.folder = folder
        self.checks = checks

    def path(self, name, data):
        path = os.path.join(self.folder, name)
        vmrun.write(path, data if isinstance(data, bytes) else data.encode())
        return path

    def fails(self, name, arguments, *parts, **options):
        done = vmrun.run("vm-dump", *arguments, **options)
        self.checks.check(name, vmrun.why_bad_failure(done, *parts), done)

    def prints(self, name, arguments, *parts):
        done = vmrun.run("vm-dump", *arguments)
        wrong = None if done.returncode == 0 and not done.stderr else "failed or wrote to standard error"
        for part in parts:
            if wrong is None and part not in done.stdout:
                wrong = f"standard output lacks {part!r}"
        self.checks.check(name, wrong, done)
        return done.stdout

    def equal(self, name, found, expected):
        self.checks.check(name, None if found == expected else f"expected {expected!r}, found {found!r}")

    def round_trip(self, name, module):
        """The text of a module, its assembled form's text, and that they are the same."""
        first = vmrun.run("vm-dump", "-d", module)
        text = self.path("again.vmasm", first.stdout)
        again = os.path.join(self.folder, "again.vmfb")
        assembled = vmrun.run("vm-as", text, "-o", again)
        second = vmrun.run("vm-dump", "-d", again)
        wrong = None
        for done in (first, assembled, second):
            if done.returncode != 0:
                wrong = f"{done.args[0]}: {done.stderr[-300:]}"
                break
        if wrong is None and first.stdout != second.stdout:
            wrong = "the text differs after the round trip"
        self.checks.check(name, wrong, first)
        return first.stdout


def summaries(dump):
    program = dump.path("program.vmfb", vmrun.assemble(PROGRAM, dump.folder, "assembled"))
    text = dump.prints("summary", [program], "program, version 3", "15.0, of IREE 3.1 to 3.9", "0.5, by the signatures of 3 imports",
                       "IREE 3.1 to 3.3\n", "hal, version 5 or later", "extras, any version, if there",
                       "8 bytes of globals, 1 ref global", "2 functions", "1 function name", "make(i32) -> (ref)", "copy(i32) -> (ref)",
                       "iree.abi.declaration = sync func @make(%input0: i32)", "rodata[1]  vmvx-bytecode-fb, ", "module, bytecode 15",
                       "mul binding_count = 3", "0ri_r", "hal 0.5\n", "extras.work", "any  optional", "origin = a test")
    dump.equal("lines of the summary fit a terminal", [line for line in text.splitlines() if len(line) > 100], [])
    dump.equal("--output=metadata is the same", dump.prints("metadata", [program, "--output=metadata"]), text)
    with open(program, "rb") as file:
        piped = subprocess.run([os.path.join(vmrun.BIN, "vm-dump"), "-"], stdin=file, capture_output=True, text=True, timeout=900)
    dump.equal("standard input", piped.stdout, text)

    described = json.loads(dump.prints("json", [program, "--json"]))
    dump.equal("json is one of the outputs", json.loads(dump.prints("json", [program, "--output=json"])), described)
    for key, value in {"name": "program", "version": 3, "bytecode_version": 15, "hal": {"from": "0.5", "to": "0.5"},
                       "made_by": "IREE 3.1 to 3.3", "requires": [], "global_bytes": 8, "global_refs": 1, "container": "flat",
                       "attributes": [{"key": "origin", "value": "a test"}]}.items():
        dump.equal(f"json: {key}", described[key], value)
    dump.equal("json: exports", [(item["name"], item["function"], item["convention"]) for item in described["exports"]],
               [("make", 0, "0i_r"), ("copy", 0, "0i_r")])
    dump.equal("json: imports", described["imports"][3], {"name": "extras.work", "convention": "", "optional": True})
    dump.equal("json: dependencies", described["dependencies"][1],
               {"name": "extras", "minimum_version": 0, "required": False, "optional": True})
    dump.equal("json: executables", [(item["constant"], item["format"], [entry["name"] for entry in item["entries"]])
                                     for item in described["executables"]], [(1, "vmvx-bytecode-fb", ["mul"])])
    dump.equal("json: functions", [item["debug_name"] for item in described["functions"]], ["", "inner one"])


def versions_of_hal(dump):
    for signature, bytecode, hal, made_by in [
            ("0ri_r", 15, "0.5", "IREE 3.1 to 3.3"), ("0rI_r", 15, "0.6 to 0.7", "IREE 3.4 to 3.9"),
            ("0rI_r", 16, "0.6 to 0.7", "IREE 3.10\n"), ("0rI_r", 17, "0.6 to 0.7", "IREE 3.11 or later"),
            ("0ri_r", 17, "0.5", "no release: the bytecode is of IREE 3.11 or later"), ("", 16, "0.5 to 0.7", "IREE 3.10\n"),
            ("0rF_r", 17, "1 import that no version has", "0ri_r, 0rI_r")]:
        path = dump.path("hal.vmasm", hal_program(signature, bytecode))
        dump.prints(f"hal.fence.create {signature} in bytecode {bytecode}", [path], hal, made_by)
    path = dump.path("hal.vmasm", hal_program("0rI_r", 17).replace("fence.create", "no.such"))
    dump.prints("a function that hal never had", [path], "hal.no.such", "in no version of hal")
    path = dump.path("hal.vmasm", hal_program("0ri_r", 17).replace(
        "vm.func", 'vm.import @hal.command_buffer.dispatch cconv "0rrIiiiICiDCiirIID_v"\nvm.func'))
    dump.prints("imports of two versions", [path], "imports of different versions of hal", "no release")
    path = dump.path("plain.vmasm", "vm.module @m\nvm.func @f() -> () {\nvm.return\n}\n")
    dump.equal("no hal, nothing about it", "\nhal " in dump.prints("no hal", [path], "IREE 3.11 or later"), False)


def disassembly(dump):
    program = dump.path("program.vmfb", vmrun.assemble(PROGRAM, dump.folder, "assembled"))
    text = dump.prints("disassembly", [program, "--disassemble"], "vm.module @program version 3 bytecode 15\n", "vm.export @copy = @make\n",
                       "vm.rodata[1] = module {\n  vm.module @kernels\n", "  %r3 = vm.call @hal.executable.create(%r0, %r1, %R2, %r4)\n",
                       "  .debug_name \"inner one\"\n")
    for arguments in (["-d", program], [program, "-d"], [program, "--output=disassembly"]):
        dump.equal(" ".join(arguments[:1]), dump.prints("disassembly", arguments), text)
    dump.equal("round trip", dump.round_trip("round trip", program), text)
    offsets = dump.prints("offsets", [program, "-d", "--offsets"], "[00000001]   %r0 = vm.call @hal.devices.get(%i0)\n")
    listing = dump.path("offsets.vmasm", offsets)
    dump.equal("offsets are dropped on the way back", dump.prints("of a listing", [listing, "-d"]), text)
    dump.equal("text given", dump.prints("of text", [dump.path("program.vmasm", PROGRAM), "-d"]), text)
    for name in sorted(os.listdir(os.path.join(vmrun.SOURCE, "examples"))):
        if name.endswith(".vmasm"):
            dump.round_trip(name, os.path.join(vmrun.SOURCE, "examples", name))


def functions_that_cannot_run(dump):
    text = "vm.module @m\nvm.export @bad\nvm.func @bad() -> () {\n  .requires none\n  .registers 0, 0\n  .blocks 1\n  .bytes 79ee0000\n}\n"
    path = dump.path("bad.vmfb", vmrun.assemble(text, dump.folder, "bad"))
    dump.prints("the summary says so", [path], "bad() -> ()", "functions that cannot run (1)", "0xEE is not an opcode", "at m.bad+")
    described = json.loads(dump.prints("so does json", [path, "--json"]))
    dump.equal("which", [item["function"] for item in described["broken_functions"]], [0])
    dump.prints("the text gives bytes and reason", [path, "-d"], "  // cannot run: INVALID_ARGUMENT; byte 0xEE is not an opcode",
                "  .bytes 79ee0000\n")
    dump.round_trip("and comes back", path)


def warnings(dump):
    """Shaders of a target without the types of the functions' tensors."""
    def module(declaration, capabilities, front=""):
        words = [0x07230203, 0x00010000, 0, 1, 0] + [word for number in capabilities for word in (0x00020011, number)]
        shader = front + b"".join(word.to_bytes(4, "little") for word in words).hex()
        return (f'vm.module @m\nvm.rodata[0] = {shader}\nvm.export @f\nvm.attr @f "iree.abi.declaration" "{declaration}"\n'
                "vm.func @f() -> () {\n  vm.return\n}\n")

    flatbuffer = "10000000" + b"VKE1".hex() + "00" * 8
    header = b"VKE1".hex() + "00" * 60
    half, byte = "sync func @f(%input0: tensor<5xf16>) -> (%output0: tensor<f32>)", "sync func @f(tensor<2x?xf32>, tensor<?x4xi8, #layout>)"
    for name, declaration, capabilities, expected in [
            ("no 16-bit types", half, [1], ["16-bit types, but function 'f' has tensors of f16"]),
            ("no 8-bit types", byte, [1], ["8-bit types, but function 'f' has tensors of i8"]),
            ("no 8-bit floats", "tensor<4xf8E5M2FNUZ>", [1], ["8-bit types, but function 'f' has tensors of f8E5M2FNUZ"]),
            ("8-bit types alone", "tensor<bf16> tensor<1xui8>", [1, 4448], ["16-bit types, but function 'f' has tensors of bf16"]),
            ("neither", half + byte, [1, 9999], ["16-bit types", "8-bit types"]),
            ("16-bit storage", half, [1, 4433], []), ("16-bit numbers", half, [22, 1], []), ("8-bit numbers", byte, [1, 39], []),
            ("wide tensors", "tensor<8x16xf32> tensor<16xi32> tensor<?xi1> tensor<", [1], []), ("nothing declared", "", [1], []),
            ("no shader", half, [], [])]:
        for form, front in (("SPIR-V", ""), ("bare", flatbuffer), ("with a header", header + flatbuffer)):
            path = dump.path("narrow.vmasm", module(declaration, capabilities, front))
            found = json.loads(vmrun.run("vm-dump", path, "--json").stdout)["warnings"]
            dump.equal(f"{name}, {form}: how many warnings", len(found), len(expected))
            for part, warning in zip(expected, found):
                dump.equal(f"{name}, {form}: {part}", (part in warning, "--iree-vulkan-target=" in warning), (True, True))
    path = dump.path("narrow.vmasm", module(half, [1]))
    dump.prints("the summary has them", [path], "warnings (1)\n", "--iree-vulkan-target=")
    path = dump.path("odd.vmasm", module(half, [1]).replace("@m", r'@e"\x1b[31m"'))
    dump.prints("names as they can be shown", [path], "\\x1B[31m")


def hostile_names(dump):
    odd = r'e"\x1b[31mred\x00 \xff \xc3\xa9 \xc2\x9b \n\"q\""'
    text = f"vm.module @{odd}\nvm.module_attr {odd} {odd}\nvm.import @{odd} cconv {odd}\nvm.export @{odd} = @f\nvm.func @f() -> () {{\n  vm.return\n}}\n"
    path = dump.path("odd.vmfb", vmrun.assemble(text, dump.folder, "odd"))
    for arguments in ([path], [path, "-d"], [path, "--json"]):
        done = subprocess.run([os.path.join(vmrun.BIN, "vm-dump"), *arguments], capture_output=True, timeout=900)
        bad = [byte for byte in done.stdout if byte < 0x20 and byte != 0x0A or byte == 0x7F]
        dump.equal(f"{arguments[1:]}: nothing for a terminal to obey", (done.returncode, bad, b"\xc2\x9b" in done.stdout), (0, [], False))
        done.stdout.decode()
    dump.equal("json: bytes that are no text", json.loads(vmrun.run("vm-dump", path, "--json").stdout)["name"],
               "\x1b[31mred\x00 \ufffd \u00e9 \x9b \n\"q\"")
    dump.round_trip("names of any bytes", path)


def what_is_refused(dump):
    whole = vmrun.assemble(PROGRAM, dump.folder, "assembled")
    path = dump.path("program.vmfb", whole)
    dump.fails("no file", [], "usage: vm-dump")
    dump.fails("two files", [path, path], "found 2")
    dump.fails("a missing file", [os.path.join(dump.folder, "none.vmfb")], "NOT_FOUND", "none.vmfb")
    dump.fails("a folder", [dump.folder], "INVALID_ARGUMENT", dump.folder)
    dump.fails("an unknown flag", [path, "--disasemble"], "did you mean '--disassemble'")
    dump.fails("an unknown short flag", [path, "-x"], "unknown flag '-x'")
    dump.fails("an unknown output", [path, "--output=xml"], "metadata, disassembly or json")
    dump.fails("two outputs", [path, "-d", "--json"], "choose")
    dump.fails("offsets of what", [path, "--offsets"], "--disassemble")
    dump.fails("text with an error", [dump.path("bad.vmasm", "vm.module @m\nvm.nonsense\n")], "bad.vmasm:2: ")
    plain = vmrun.assemble("vm.module @m\nvm.func @f() -> () {\n  vm.return\n}\n", dump.folder, "plain")
    later = plain.replace((17 << 16).to_bytes(4, "little"), (18 << 16).to_bytes(4, "little"))
    dump.fails("a version that does not exist", [dump.path("18.vmfb", later)], "18.0", "15.0")
    for name, data in [("empty", b""), ("text", b"just some text, no module\n" * 9), ("zeros", bytes(4096)), ("zip", b"PK\x03\x04" + bytes(99))]:
        for arguments in ([], ["-d"], ["--json"]):
            dump.fails(f"{name} {arguments}", [dump.path(name + ".vmfb", data), *arguments], "INVALID_ARGUMENT", name + ".vmfb")
    for length in range(0, len(whole), 97):
        for arguments in ([], ["-d"]):
            dump.fails(f"cut to {length} bytes {arguments}", [dump.path("cut.vmfb", whole[:length]), *arguments], "INVALID_ARGUMENT")
    if os.path.exists("/dev/full"):
        with open("/dev/full", "w") as full:
            dump.fails("a full disk", [path, "-d"], "standard output", stdout=full)
    dump.prints("--help", ["--help"], "usage: vm-dump", "--disassemble", "--json", "--output=metadata|disassembly|json", "examples:")


def damaged_modules(dump):
    """Any damage to a file gives an error, or a text that assembles again."""
    whole = vmrun.assemble(PROGRAM, dump.folder, "assembled")
    chance = random.Random(20261121)
    dumped = 0
    for i in range(150):
        damaged = bytearray(whole)
        for _ in range(chance.randrange(1, 4)):
            damaged[chance.randrange(len(damaged))] ^= 1 << chance.randrange(8)
        path = dump.path("damaged.vmfb", bytes(damaged))
        summary = vmrun.run("vm-dump", path)
        if summary.returncode != 0:
            dump.checks.check(f"damage {i}", vmrun.why_bad_failure(summary), summary)
            continue
        dumped += 1
        dump.round_trip(f"damage {i} comes back", path)
    dump.checks.check("some damage leaves a module", None if dumped > 20 else f"only {dumped}")


def fixtures(dump):
    folder = vmrun.fixtures()
    if not folder:
        print("no fixtures here; HALYARD_FIXTURES names their folder")
        return
    count = 0
    for root, _, names in sorted(os.walk(folder)):
        for name in sorted(names):
            if not name.endswith(".vmfb") or "attacks" in root.split(os.sep):
                continue
            path = os.path.join(root, name)
            count += 1
            text = dump.round_trip(path, path)
            dump.equal(f"{path}: all of it can run", ".bytes " in text, False)
            summary = dump.prints(path, [path], "made by", "exports (")
            dump.equal(f"{path}: fits a terminal", [line for line in summary.splitlines() if len(line) > 120], [])
            described = json.loads(vmrun.run("vm-dump", path, "--json").stdout)
            if root.endswith("compiled"):
                dump.equal(f"{path}: who made it", (described["bytecode_version"], described["hal"] in ({"from": "0.6", "to": "0.6"}, None)),
                           (17, True))
            if root.endswith("legacy"):
                dump.equal(f"{path}: which hal", ".hal" + described["hal"]["from"][2:] in name or
                           ".hal" + described["hal"]["to"][2:] in name or described["hal"] == {"from": "0.5", "to": "0.7"}, True)
    dump.checks.check("fixtures", None if count >= 150 else f"only {count}")


def main(checks, folder):
    vmrun.need_tool("vm-dump")
    dump = Dump(folder, checks)
    for test in (summaries, versions_of_hal, disassembly, functions_that_cannot_run, warnings, hostile_names, what_is_refused,
                 damaged_modules, fixtures):
        test(dump)
