"""Bad input of every kind: a clear message on standard error, a non-zero exit, never a crash or a hang."""
import os
import random
import subprocess

import vmrun

SMALL = vmrun.with_exports("""
vm.module @small
vm.rodata[0] = "some bytes"
vm.global.i32 mutable @counter
vm.func @add(%i0: i32, %i1: i32) -> (i32) {
  %i2 = vm.add.i32 %i0, %i1
  vm.global.store.i32 %i2, @counter
  vm.return %i2
}
vm.func @pick(%i0: i32) -> (i32) {
  %i1 = vm.const.i32 7
  vm.cond_br %i0, ^bb1, ^bb2
^bb1:
  %i1 = vm.call @add(%i0, %i1)
  vm.return %i1
^bb2:
  vm.fail %i1, "zero, rejected"
}
""")

MISSING_IMPORT = """
vm.module @importer
vm.import @elsewhere.work cconv "0i_i"
vm.export @main
vm.func @main(%i0: i32) -> (i32) {
  %i0 = vm.call @elsewhere.work(%i0)
  vm.return %i0
}
"""

WRONG_SIGNATURE = """
vm.module @importer
vm.import @hal.devices.count cconv "0i_i"
vm.export @main
vm.func @main(%i0: i32) -> (i32) {
  %i0 = vm.call @hal.devices.count(%i0)
  vm.return %i0
}
"""

MUL = "--module=examples/elementwise_mul.vmasm"
VERSION_17 = (17 << 16).to_bytes(4, "little")


def write(folder, name, data):
    path = os.path.join(folder, name)
    vmrun.write(path, data)
    return path


def expect_failure(checks, name, arguments, *parts, **options):
    done = vmrun.run("vm-run", *arguments, **options)
    checks.check(name, vmrun.why_bad_failure(done, *parts), done)


def files_that_are_no_modules(checks, folder):
    missing = os.path.join(folder, "missing.vmfb")
    expect_failure(checks, "missing file", [f"--module={missing}"], "NOT_FOUND", missing, "No such file")
    expect_failure(checks, "a folder", [f"--module={folder}"], "INVALID_ARGUMENT", folder)
    for name, data in [("empty", b""), ("text", b"this is not a module at all, just some text\n" * 4),
                       ("zeros", bytes(4096)), ("zip", b"PK\x03\x04" + bytes(200)), ("ones", b"\xff" * 300)]:
        path = write(folder, name + ".vmfb", data)
        expect_failure(checks, f"not a module: {name}", [f"--module={path}", "--function=add"], "INVALID_ARGUMENT", path)
    expect_failure(checks, "no module", [], "INVALID_ARGUMENT", "--module=")
    source = write(folder, "broken.vmasm", b"vm.module @m\nvm.func @f() -> () {\n  vm.retrun\n}\n")
    expect_failure(checks, "text with an error", [f"--module={source}"], "INVALID_ARGUMENT", "broken.vmasm:3", "return")


def damaged_modules(checks, folder, small):
    for length in range(len(small)):
        path = write(folder, "truncated.vmfb", small[:length])
        expect_failure(checks, f"truncated to {length} bytes", [f"--module={path}", "--function=add", "--input=1", "--input=2"],
                       "INVALID_ARGUMENT")
    for at in range(len(small)):
        for mask in (0xFF, 1 << (at % 8)):
            damaged = bytearray(small)
            damaged[at] ^= mask
            path = write(folder, "flipped.vmfb", bytes(damaged))
            done = vmrun.run("vm-run", f"--module={path}", "--function=add", "--input=1", "--input=2", "--verify=eager")
            wrong = None
            if done.returncode != 0:
                wrong = vmrun.why_bad_failure(done)
            elif not done.stdout.startswith("EXEC @add\nresult[0]: "):
                wrong = "succeeded with no result"
            checks.check(f"byte {at} ^ {mask:#x}", wrong, done)


def damaged_programs_with_devices(checks, folder):
    """Nested executables too. A modified program may compute or loop as it likes, but must not crash."""
    whole = vmrun.assemble(vmrun.read_text(os.path.join(vmrun.SOURCE, "examples", "elementwise_mul.vmasm")), folder, "mul")
    chance = random.Random(20261121)
    arguments = ["--device=local-sync", "--function=mul", "--input=8xf32=1", "--input=8xf32=2"]
    for length in range(0, len(whole), 61):
        path = write(folder, "truncated.vmfb", whole[:length])
        expect_failure(checks, f"program truncated to {length} bytes", [f"--module={path}", *arguments], "INVALID_ARGUMENT")
    for at in chance.sample(range(len(whole)), 150):
        damaged = bytearray(whole)
        damaged[at] ^= 1 << chance.randrange(8)
        path = write(folder, "flipped.vmfb", bytes(damaged))
        try:
            done = vmrun.run("vm-run", f"--module={path}", *arguments, timeout=5)
        except subprocess.TimeoutExpired:
            continue
        wrong = vmrun.why_bad_failure(done) if done.returncode != 0 else None
        checks.check(f"program's byte {at}", wrong, done)


def versions(checks, folder, small):
    checks.check("the version word is unique", None if small.count(VERSION_17) == 1 else "it is not")
    for version in (0, 14, 18, 99, 0xFFFF):
        path = write(folder, "version.vmfb", small.replace(VERSION_17, (version << 16).to_bytes(4, "little")))
        expect_failure(checks, f"bytecode {version}", [f"--module={path}", "--function=add"], "INVALID_ARGUMENT", str(version), "15",
                       "17")
    path = write(folder, "version.vmfb", small.replace(VERSION_17, (17 << 16 | 3).to_bytes(4, "little")))
    expect_failure(checks, "bytecode 17.3", [f"--module={path}", "--function=add"], "INVALID_ARGUMENT", "17.3")
    for version in (15, 16):
        path = write(folder, "version.vmfb", small.replace(VERSION_17, (version << 16).to_bytes(4, "little")))
        done = vmrun.run("vm-run", f"--module={path}", "--function=add", "--input=1", "--input=2")
        checks.check(f"bytecode {version} runs", None if "i32=3" in done.stdout else "it does not", done)


def functions_and_inputs(checks, folder):
    small = "--module=" + os.path.join(folder, "small.vmfb")
    expect_failure(checks, "missing function", [small, "--function=ad"], "NOT_FOUND", "'ad'", "did you mean 'add'")
    expect_failure(checks, "function not said", [small], "INVALID_ARGUMENT", "add", "pick", "--function")
    expect_failure(checks, "too few inputs", [small, "--function=add", "--input=1"], "INVALID_ARGUMENT", "expected 2", "found 1")
    expect_failure(checks, "too many inputs", [small, "--function=add", "--input=1", "--input=2", "--input=3"],
                   "INVALID_ARGUMENT", "--input=3", "2 inputs")
    expect_failure(checks, "not a number", [small, "--function=add", "--input=1", "--input=x"], "INVALID_ARGUMENT", "--input=x",
                   "integer")
    expect_failure(checks, "the program fails", [small, "--function=pick", "--input=0"], "PERMISSION_DENIED", "zero, rejected", "pick")

    mul = [MUL, "--device=local-sync", "--function=mul"]
    expect_failure(checks, "wrong shape", [*mul, "--input=4xf32=1", "--input=8xf32=1"], "INVALID_ARGUMENT", "expected shape '8'",
                   "found '4'")
    expect_failure(checks, "wrong rank", [*mul, "--input=2x4xf32=1", "--input=8xf32=1"], "INVALID_ARGUMENT", "rank")
    expect_failure(checks, "wrong type", [*mul, "--input=8xi32=1", "--input=8xf32=1"], "INVALID_ARGUMENT", "f32", "i32")
    expect_failure(checks, "a scalar for a tensor", [*mul, "--input=1", "--input=8xf32=1"], "INVALID_ARGUMENT", "--input=1", "tensor")
    expect_failure(checks, "null for a tensor", [*mul, "--input=(null)", "--input=8xf32=1"], "INVALID_ARGUMENT", "null")
    expect_failure(checks, "unknown element type", [*mul, "--input=8xf33=1", "--input=8xf32=1"], "INVALID_ARGUMENT", "f33")
    expect_failure(checks, "too few elements", [*mul, "--input=8xf32=1,2,3", "--input=8xf32=1"], "OUT_OF_RANGE", "8", "3")
    expect_failure(checks, "a shape too large", [*mul, "--input=99999999999x99999999999xf32=1", "--input=8xf32=1"],
                   "INVALID_ARGUMENT", "99999999999")
    expect_failure(checks, "missing npy", [*mul, "--input=@missing.npy", "--input=8xf32=1"], "NOT_FOUND", "missing.npy")
    bad_npy = write(folder, "bad.npy", b"\x93NUMPY\x01\x00\x10\x00{'descr': '<f4'")
    expect_failure(checks, "damaged npy", [*mul, f"--input=@{bad_npy}", "--input=8xf32=1"], "OUT_OF_RANGE", bad_npy)


def imports(checks, folder):
    vmrun.assemble(MISSING_IMPORT, folder, "importer")
    importer = "--module=" + os.path.join(folder, "importer.vmfb")
    expect_failure(checks, "missing import's module", [importer, "--function=main", "--input=1"], "NOT_FOUND", "elsewhere",
                   "importer")
    vmrun.assemble("vm.module @elsewhere\nvm.export @wrok\nvm.func @wrok(%i0: i32) -> (i32) {\n  vm.return %i0\n}\n", folder,
                   "provider")
    provider = "--module=" + os.path.join(folder, "provider.vmfb")
    expect_failure(checks, "missing import", [provider, importer, "--function=main", "--input=1"], "NOT_FOUND", "work",
                   "did you mean 'wrok'")
    vmrun.assemble(WRONG_SIGNATURE, folder, "signature")
    signature = "--module=" + os.path.join(folder, "signature.vmfb")
    expect_failure(checks, "wrong signature", [signature, "--device=local-sync", "--function=main", "--input=1"], "INCOMPATIBLE",
                   "0i_i", "0v_i")


def drivers(checks, folder):
    expect_failure(checks, "missing driver", [MUL, "--device=cuda", "--function=mul"], "NOT_FOUND", "cuda", "local-sync")
    expect_failure(checks, "near driver", [MUL, "--device=local-snyc", "--function=mul"], "NOT_FOUND", "did you mean 'local-sync'")
    expect_failure(checks, "device path", [MUL, "--device=local-sync://7", "--function=mul"], "NOT_FOUND", "7")
    expect_failure(checks, "device option", [MUL, "--device=local-sync://?speed=high", "--function=mul"], "INVALID_ARGUMENT", "speed")
    expect_failure(checks, "listing of a missing driver", ["--list_devices=cuda"], "NOT_FOUND", "cuda")
    library = vmrun.read(os.path.join(vmrun.DRIVERS, "halyard-driver-null.so"))
    note = library.find(b"Halyard\0") + 8
    for name, low, high in (("a newer ABI", 7, 9), ("ABI 0", 0, 0)):
        changed = bytearray(library)
        changed[note:note + 8] = low.to_bytes(4, "little") + high.to_bytes(4, "little")
        path = write(folder, "halyard-driver-null.so", bytes(changed))
        expect_failure(checks, f"driver with {name}", [f"--driver={path}", MUL, "--device=null", "--function=mul"], path, str(low),
                       "1")
        done = vmrun.run("vm-run", f"--driver={path}", MUL, "--device=local-sync", "--function=mul", "--input=8xf32=3", "--input=8xf32=2")
        checks.check(f"the others work beside a driver with {name}", None if "8xf32=6" in done.stdout else "they do not", done)
    for size in (0, 3, 64, 1000, len(library) // 2):
        path = write(folder, "halyard-driver-null.so", library[:size])
        expect_failure(checks, f"driver cut to {size} bytes", [f"--driver={path}", MUL, "--device=null", "--function=mul"], path)


def flags(checks, folder):
    expect_failure(checks, "unknown flag", ["--modul=x"], "INVALID_ARGUMENT", "--modul", "did you mean '--module'")
    expect_failure(checks, "value not attached", ["--module", "x"], "INVALID_ARGUMENT", "--module=")
    expect_failure(checks, "bad mode", [MUL, "--module_mode=zz"], "INVALID_ARGUMENT", "preload")
    expect_failure(checks, "bad count", [MUL, "--device=local-sync", "--output_max_element_count=many", "--function=mul"],
                   "INVALID_ARGUMENT", "many")
    expect_failure(checks, "missing flag file", ["--flagfile=" + os.path.join(folder, "none")], "NOT_FOUND", "none")
    loop = write(folder, "loop.txt", f"--flagfile={folder}/loop.txt\n".encode())
    expect_failure(checks, "flag file that names itself", [f"--flagfile={loop}"], "INVALID_ARGUMENT")


def unwritable_output(checks, folder):
    small = "--module=" + os.path.join(folder, "small.vmfb")
    arguments = [small, "--function=add", "--input=1", "--input=2"]
    with open("/dev/full", "w") as full:
        expect_failure(checks, "full device", arguments, "UNAVAILABLE", "standard output", stdout=full)
        expect_failure(checks, "help to a full device", ["--help"], "UNAVAILABLE", "standard output", stdout=full)
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as closed:
        expect_failure(checks, "closed pipe", arguments, "UNAVAILABLE", "standard output", stdout=closed)


def main(checks, folder):
    small = vmrun.assemble(SMALL, folder, "small")
    files_that_are_no_modules(checks, folder)
    damaged_modules(checks, folder, small)
    damaged_programs_with_devices(checks, folder)
    versions(checks, folder, small)
    functions_and_inputs(checks, folder)
    imports(checks, folder)
    drivers(checks, folder)
    flags(checks, folder)
    unwritable_output(checks, folder)
