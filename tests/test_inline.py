"""Programs that use no device, as a user types them: no --device is needed, kernels are refused where machine code is, and
vm-dump says what such a program needs."""
import json
import os

import vmrun

MUL = ["--module=examples/inline_mul.vmasm", "--function=mul", "--input=4xf32=1,2,3,4", "--input=4xf32=5,6,7,8"]
SCALE = ["--module=examples/inline_dispatch.vmasm", "--function=scale", "--input=6xi32=1,2,3,4,5,6", "--input=3"]
PRODUCT = "EXEC @mul\nresult[0]: hal.buffer_view\n4xf32=5 12 21 32\n"
SCALED = "EXEC @scale\nresult[0]: hal.buffer_view\n6xi32=3 6 9 12 15 18\n"
# Both versions of hal_loader: the entry point by its number, and by its name.
MACHINE_CODE = """
vm.module @machine_code
vm.import @hal_inline.buffer.allocate cconv "0iI_rr"
vm.import @hal_inline.buffer.storage cconv "0r_r"
vm.import @hal_inline.buffer_view.create cconv "0rIIiiCID_r"
vm.import @hal_inline.buffer_view.buffer cconv "0r_r"
vm.import @hal_loader.executable.load cconv "0rrr_r"
vm.import @hal_loader.executable.lookup.function cconv "0rr_I"
vm.import @hal_loader.executable.dispatch cconv "DISPATCH"
vm.rodata[0] = "FORMAT"
vm.rodata[1] = CODE
vm.rodata[2] = "mul"
vm.export @mul
vm.func @mul(%r0: !hal.buffer_view, %r1: !hal.buffer_view) -> (!hal.buffer_view) {
  %r2 = vm.const.ref.rodata 0
  %r3 = vm.const.ref.rodata 1
  %r4 = vm.const.ref.zero
  %r5 = vm.call @hal_loader.executable.load(%r2, %r3, %r4)
  %r2 = vm.const.ref.rodata 2
  %i0:1 = vm.call @hal_loader.executable.lookup.function(%r5, %r2)
  %i2 = vm.const.i32 64
  %i4:5 = vm.const.i64 32
  %i6:7 = vm.const.i64.zero
  %i8 = vm.const.i32 2
  %i9 = vm.const.i32 1
  %i10 = vm.const.i32 4
  %i11 = vm.const.i32 0x21000020
  %i12:13 = vm.const.i64 8
  %i14 = vm.const.i32.zero
  %r6, %r7 = vm.call @hal_inline.buffer.allocate(%i2, %i4:5)
  %r2 = vm.call @hal_inline.buffer_view.buffer(%r0)
  %r2 = vm.call @hal_inline.buffer.storage(%r2)
  %r3 = vm.call @hal_inline.buffer_view.buffer(%r1)
  %r3 = vm.call @hal_inline.buffer.storage(%r3)
  vm.call.variadic @hal_loader.executable.dispatch segments[65535, 65535, 65535, 65535, 65535, 1, 3](%r5, FUNCTION, %i8, %i9, %i9, %i10, %r2, %i6:7, %i4:5, %r3, %i6:7, %i4:5, %r7, %i6:7, %i4:5)
  %r8 = vm.call.variadic @hal_inline.buffer_view.create segments[65535, 65535, 65535, 65535, 65535, 1](%r6, %i6:7, %i4:5, %i11, %i9, %i12:13)
  vm.return %R8
}
"""
VERSIONS = [("0riiiiCiDCrIID_v", "%i14"), ("0rIiiiCiDCrIID_v", "%i0:1")]
ARCHITECTURE = vmrun.ARCHITECTURES.get(vmrun.processor())


class Inline(vmrun.Checks):
    def prints(self, name, arguments, expected, tool="vm-run", **options):
        done = vmrun.run(tool, *arguments, **options)
        wrong = None if done.returncode == 0 and done.stdout == expected else "other output, or a failure"
        self.check(name, wrong, done)

    def fails(self, name, arguments, *parts, **options):
        done = vmrun.run("vm-run", *arguments, **options)
        self.check(name, vmrun.why_bad_failure(done, *parts), done)


def text_of(name):
    return vmrun.read_text(os.path.join(vmrun.SOURCE, "examples", name))


def without_devices(checks):
    checks.prints("hal_inline", MUL, PRODUCT)
    checks.prints("hal_loader", SCALE, SCALED)
    checks.prints("hal_inline, mapped", [*MUL, "--module_mode=mmap"], PRODUCT)
    checks.prints("hal_inline beside a device", [*MUL, "--device=local-sync"], PRODUCT)
    checks.prints("hal_loader on workers", [*SCALE, "--device=local-task?workers=2"], SCALED)
    checks.prints("hal_loader beside a device that runs nothing", [*SCALE, "--device=null"], SCALED)
    checks.prints("expected output", [*MUL, "--expected_output=4xf32=5,12,21,32"],
                  "EXEC @mul\n[SUCCESS] all function outputs matched their expected values.\n")
    checks.fails("not enough memory", [*MUL, "--max_memory=8"], "RESOURCE_EXHAUSTED")
    checks.fails("a wrong shape", [*MUL[:3], "--input=5xf32=1"], "INVALID_ARGUMENT", "input1")


def machine_code(checks, folder):
    inputs = ["--function=mul", "--input=8xf32=1,2,3,4,5,6,7,8", "--input=8xf32=2"]
    product = "EXEC @mul\nresult[0]: hal.buffer_view\n8xf32=2 4 6 8 10 12 14 16\n"
    path = os.path.join(folder, "machine_code.vmasm")
    module = "--module=" + path

    def write(kind, code, dispatch, function):
        with open(path, "w") as file:
            file.write(MACHINE_CODE.replace("FORMAT", f"{kind}-elf-{ARCHITECTURE}").replace("CODE", code.hex())
                       .replace("DISPATCH", dispatch).replace("FUNCTION", function))

    for kind in "embedded", "system":
        for revision in 5, 6:
            library = os.path.join(vmrun.BUILD, "tests", "libraries", f"mul{revision}.{kind}.so")
            code = vmrun.read(library)
            for dispatch, function in VERSIONS:
                write(kind, code, dispatch, function)
                for mode in "preload", "mmap":
                    checks.prints(f"{kind} {revision} {dispatch} {mode}", [module, *inputs, f"--module_mode={mode}"], product)
            for refusing in (["--allow-native=no"], ["--device=local-sync?native=0"], ["--device=local-task?native=0"],
                             ["--device=null", "--allow-native=no"]):
                checks.fails(f"{kind} {revision} with {refusing}", [module, *inputs, *refusing], "NOT_FOUND", "native=0")
        write(kind, code[:100], *VERSIONS[0])
        checks.fails(f"{kind}, cut off", [module, *inputs], "FAILED_PRECONDITION", f"{kind}-elf-{ARCHITECTURE}")
    checks.prints("VMVX is no machine code", [*SCALE, "--allow-native=no"], SCALED)
    # A program that asks whether the format is supported gets the answer no.
    asking = os.path.join(folder, "asking.vmasm")
    vmrun.write(asking, text_of("inline_dispatch.vmasm").replace("vmvx-bytecode-fb", f"embedded-elf-{ARCHITECTURE}"))
    checks.fails("a program that asks", [f"--module={asking}", *SCALE[1:], "--allow-native=no"], "UNAVAILABLE",
                 "nothing here runs")
    checks.fails("a plugin that is not there", [*SCALE, "--executable_plugin=/no/such.so"], "NOT_FOUND", "/no/such.so",
                 "hal_loader")


def benches(checks):
    for program in (MUL, SCALE):
        done = vmrun.run("vm-bench", *program, "--benchmark_min_time=2x", "--benchmark_format=json")
        rows = [row["name"] for row in json.loads(done.stdout)["benchmarks"]] if done.returncode == 0 else []
        checks.check(f"vm-bench {program[0]}", None if "load" in rows and any("BM_" in row for row in rows) else "rows", done)


def dumps(checks):
    for name, lines, members in [
        ("inline_mul", ["hal_inline    0, by the signatures of 6 imports", "devices       none\n",
                        "depends on    hal_inline, any version"], {"hal": None, "hal_inline": {"from": "0", "to": "0"}}),
        ("inline_dispatch", ["hal_loader    0, by the signatures of 3 imports",
                             "devices       none; kernels run in the call: vmvx-bytecode-fb\n",
                             "rodata[2]  vmvx-bytecode-fb", "0riiiiCiDCrIID_v"],
         {"hal_loader": {"from": "0", "to": "0"}, "hal_inline": {"from": "0", "to": "0"}})]:
        done = vmrun.run("vm-dump", f"examples/{name}.vmasm")
        missing = [line for line in lines if line not in done.stdout]
        checks.check(f"vm-dump {name}", f"lacks {missing}" if missing else None, done)
        done = vmrun.run("vm-dump", f"examples/{name}.vmasm", "--json")
        found = json.loads(done.stdout)
        wrong = {key: found.get(key, "absent") for key, value in members.items() if found.get(key, "absent") != value}
        checks.check(f"vm-dump {name} --json", f"has {wrong}" if wrong else None, done)


def dumps_of_versions(checks, folder):
    def dump(imports):
        path = os.path.join(folder, "versions.vmasm")
        with open(path, "w") as file:
            file.write("vm.module @m\n" + "".join(f'vm.import @{name} cconv "{convention}"\n' for name, convention in imports) +
                       "vm.export @f\nvm.func @f() -> () {\n  vm.return\n}\n")
        return vmrun.run("vm-dump", path)

    support, lookup, old, new = (("hal_loader.executable.query_support", "0r_i"),
                                 ("hal_loader.executable.lookup.function", "0rr_I"),
                                 ("hal_loader.executable.dispatch", "0riiiiCiDCrIID_v"),
                                 ("hal_loader.executable.dispatch", "0rIiiiCiDCrIID_v"))
    for imports, parts in [([support], ["hal_loader    0 to 1, by", "hal_loader 0 to 1"]),
                           ([support, new], ["hal_loader    1, by", "hal_loader 1"]),
                           ([lookup, old], ["imports of different versions of hal_loader"]),
                           ([("hal_loader.executable.run", "0r_v")], ["1 import that no version has", "in no version of hal_loader"]),
                           ([("hal_inline.buffer.length", "0r_i")], ["no version of hal_inline; there is 0r_I"])]:
        done = dump(imports)
        missing = [part for part in parts if part not in done.stdout]
        checks.check(f"vm-dump of {imports}", f"lacks {missing}" if missing else None, done)


def main(folder):
    checks = Inline()
    without_devices(checks)
    if ARCHITECTURE:
        machine_code(checks, folder)
    benches(checks)
    dumps(checks)
    dumps_of_versions(checks, folder)
    return checks.finish()
