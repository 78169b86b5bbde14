"""What hal-info says of the compiler, from the note of its library: LLVM is not loaded for that. And what vm-dump --jit shows
of functions. Skipped where this build has no compiler."""
import os
import platform
import re
import shutil
import subprocess
import tempfile

import vmrun

LIBRARY = os.path.join(vmrun.BUILD, "lib", "halyard", "halyard-jit-llvm.so")
MODULE = "vm.module @m\nvm.export @f\nvm.func @f() -> (i32) {\n  %i0 = vm.const.i32 7\n  vm.return %i0\n}\n"

LOOP = vmrun.with_exports("""
vm.module @m
vm.type !vm.buffer
vm.func @sum(%i0:1: i64) -> (i64) {
  %i2:3 = vm.const.i64.zero
  %i6:7 = vm.const.i64 1
  vm.br ^bb1
^bb1:
  %i2:3 = vm.add.i64 %i2:3, %i6:7
  %i8 = vm.cmp.lt.i64.s %i2:3, %i0:1
  vm.cond_br %i8, ^bb1, ^bb2
^bb2:
  vm.return %i2:3
}
vm.func @nothing() -> () {
  vm.return
}
vm.func @straight(%i0: i32) -> (i32) {
  %i0 = vm.mul.i32 %i0, %i0
  vm.return %i0
}
vm.func @twice(%r0: !vm.ref<?>, %i0:1: i64) -> (i64) {
  %i2:3 = vm.const.i64.zero
  %i6:7 = vm.const.i64 1
  vm.br ^bb1
^bb1:
  %i9 = vm.buffer.load.i32 %r0, %i2:3
  %i9 = vm.add.i32 %i9, %i9
  vm.buffer.store.i32 %i9, %r0, %i2:3
  %i2:3 = vm.add.i64 %i2:3, %i6:7
  %i8 = vm.cmp.lt.i64.s %i2:3, %i0:1
  vm.cond_br %i8, ^bb1, ^bb2
^bb2:
  vm.return %i2:3
}
""")

# r2[n] += r0[k] * r1[k * 64 + n] for n below 64 and k below 10
CONTRACTION = """\
vm.module @m
vm.type f32
vm.type !vm.buffer
vm.export @product
vm.func @product(%r0: !vm.ref<?>, %r1: !vm.ref<?>, %r2: !vm.ref<?>) -> () {
  .requires ext_f32
  %i0:1 = vm.const.i64.zero
  %i2:3 = vm.const.i64 1
  %i4:5 = vm.const.i64 64
  %i6:7 = vm.const.i64 1000
  vm.br ^bb1
^bb1:
  %i8 = vm.cmp.lt.i64.s %i0:1, %i4:5
  vm.cond_br %i8, ^bb2, ^bb6
^bb2:
  %i10:11 = vm.const.i64.zero
  vm.br ^bb3
^bb3:
  %i8 = vm.cmp.lt.i64.s %i10:11, %i6:7
  vm.cond_br %i8, ^bb4, ^bb5
^bb4:
  %i12:13 = vm.fma.i64 %i10:11, %i4:5, %i0:1
  %i14 = vm.buffer.load.f32 %r0, %i10:11
  %i15 = vm.buffer.load.f32 %r1, %i12:13
  %i16 = vm.buffer.load.f32 %r2, %i0:1
  %i16 = vm.fma.f32 %i14, %i15, %i16
  vm.buffer.store.f32 %i16, %r2, %i0:1
  %i10:11 = vm.add.i64 %i10:11, %i2:3
  vm.br ^bb3
^bb5:
  %i0:1 = vm.add.i64 %i0:1, %i2:3
  vm.br ^bb1
^bb6:
  vm.return
}
"""


def compiler_line(done):
    found = re.search(r"^compiler: .*$", done.stdout, re.MULTILINE)
    return found.group(0) if found else ""


def main(checks, folder):
    vmrun.need_compiler()
    loader = dict(os.environ, LD_DEBUG="files")
    done = vmrun.run("hal-info", env=loader)
    line = compiler_line(done)
    checks.check("its name and path", None if re.match(r"compiler: LLVM \d+\.\d+\.\d+, /.*/halyard-jit-llvm\.so$", line)
                 else f"found {line!r}")
    checks.check("not loaded", None if "halyard-jit-llvm" not in done.stderr else "the loader opened it")
    module = os.path.join(folder, "f.vmasm")
    vmrun.write(module, MODULE)
    done = vmrun.run("vm-run", f"--module={module}", "--function=f", "--jit=always", "--jit_cache=", env=loader)
    checks.check("the loader would tell", None if "halyard-jit-llvm" in done.stderr else "it does not name what it opens")

    # Another installation, with another compiler.
    lib = os.path.join(folder, "lib")
    os.makedirs(os.path.join(lib, "halyard"))
    for name in os.listdir(os.path.join(vmrun.BUILD, "lib")):
        if name.startswith("libhalyard.so"):
            shutil.copy(os.path.join(vmrun.BUILD, "lib", name), lib, follow_symlinks=False)
    other = os.path.join(lib, "halyard", "halyard-jit-llvm.so")
    good = open(LIBRARY, "rb").read()
    at = re.search(rb"Halyard\0(.{12})LLVM ", good, re.DOTALL).start(1)  # the note's first number
    for name, bytes_, text in [
            ("cut off", good[:1000], "is damaged"), ("not a library", b"text", "no ELF file"),
            ("another version", good[:at] + b"\x63" + good[at + 1:], "compiler ABI 99"),
            ("another format of code", good[:at + 4] + bytes([good[at + 4] ^ 1]) + good[at + 5:], "another format of decoded code")]:
        vmrun.write(other, bytes_)
        done = vmrun.run("hal-info", env=dict(os.environ, LD_LIBRARY_PATH=lib))
        line = compiler_line(done)
        checks.check(name, None if line.startswith("compiler: none; ") and text in line and other in line
                     else f"found {line!r}", done)
    vmrun.write(other, good)
    line = compiler_line(vmrun.run("hal-info", env=dict(os.environ, LD_LIBRARY_PATH=lib)))
    checks.check("without a code generator", None if line.startswith("compiler: none; ") and "-codegen.so' is missing" in line
                 else f"found {line!r}")
    os.remove(other)
    done = vmrun.run("hal-info", env=dict(os.environ, LD_LIBRARY_PATH=lib))
    checks.check("none", None if "everything is interpreted" in compiler_line(done) else f"found {compiler_line(done)!r}", done)
    named(checks, module)
    explained(checks)


def named(checks, module):
    """Functions by name, in perf and gdb, for those who ask."""
    command = [os.path.join(vmrun.BIN, "vm-run"), f"--module={module}", "--function=f", "--jit=always", "--jit_cache="]
    for wanted, names in [("perf", "perf"), ("perf", "gdb,perf"), ("", "gdb"), ("", "")]:
        process = subprocess.Popen(command, env={**os.environ, "HALYARD_JIT_NAMES": names}, stdout=subprocess.DEVNULL)
        process.wait(timeout=vmrun.TIMEOUT)
        path = f"/tmp/perf-{process.pid}.map"
        names_of_code = open(path, encoding="utf-8").read() if os.path.exists(path) else ""
        found = re.fullmatch(r"[0-9a-f]+ [0-9a-f]+ m\.f\n", names_of_code)
        checks.check(f"HALYARD_JIT_NAMES={names}: perf", None if bool(found) == bool(wanted) else f"found {names_of_code!r}")
        if names_of_code:
            os.remove(path)
    if not shutil.which("gdb"):
        return
    done = subprocess.run(["gdb", "-q", "-batch", "-nx", "-ex", "set breakpoint pending on", "-ex", "set debuginfod enabled off",
                           "-ex", "break m.f", "-ex", "run", "-ex", "bt", "--args", *command],
                          env={**os.environ, "HALYARD_JIT_NAMES": "gdb"}, capture_output=True, text=True, timeout=4 * vmrun.TIMEOUT)
    if "Couldn't get registers" in done.stderr or "ptrace" in done.stderr:
        return  # a system that lets nobody trace
    # gdb takes the dot for another language's, and writes m[f].
    checks.check("gdb stops in it, and knows who called it", None if re.search(r"^#0 .* in m(\.f|\[f\])", done.stdout, re.MULTILINE) and
                 "halyard_call_invoke" in done.stdout else f"found {done.stdout!r} {done.stderr!r}")


def explained(checks):
    """vm-dump --jit"""
    def expect(name, arguments, *parts, without=()):
        done = vmrun.run("vm-dump", *arguments)
        missing = [part for part in parts if not re.search(part, done.stdout, re.MULTILINE)]
        wrong = f"lacks {missing}" if missing else None
        if done.returncode != 0:
            wrong = f"exit status {done.returncode}"
        for part in without:
            if part in done.stdout:
                wrong = f"has {part!r}"
        checks.check(name, wrong, done)

    with tempfile.TemporaryDirectory() as folder:
        module = os.path.join(folder, "m.vmasm")
        vmrun.write(module, LOOP)
        expect("every function", [module, "--jit"], r"^; m\.sum: compiled; \d+ words", r"^define .*i32 @halyard_run\(", r"^halyard_run:",
               r"^; m\.nothing: .*stays interpreted: it has no instruction that is compiled$",
               r"^; m\.straight: compiled with jit=always; with jit=auto interpreted")
        expect("one of them", [module, "--jit", "--function=sum"], r"^; m\.sum: compiled;", without=["m.nothing", "m.straight"])
        expect("vectors in a loop that is tested at its end", [module, "--jit", "--function=twice"], r"<\d+ x i32>")
        vmrun.write(module, CONTRACTION)
        # In registers while terms are added.
        expect("a contraction across its outputs", [module, "--jit"], r"= phi <\d+ x float>",
               r"^; contraction: outputs 64, terms 1000: tiles of 1 rows by \d+ outputs$")
        integers = CONTRACTION
        for of, to in [("load.f32 %r0", "load.i8.s %r0"), ("load.f32 %r1", "load.i8.u %r1"), ("load.f32 %r2", "load.i32 %r2"),
                       ("fma.f32", "fma.i32"), ("store.f32", "store.i32")]:
            integers = integers.replace(of, to)
        vmrun.write(module, integers)
        pairs = ", two terms at a time" if platform.machine() == "x86_64" else ""
        expect("products of bytes", [module, "--jit"], rf"^; contraction: outputs 64, terms 1000: tiles of 1 rows by \d+ outputs{pairs}$")
        # The sums are in a buffer of the function's own, and doubled into another one; or they are read again.
        own = CONTRACTION.replace(", %r2, ", ", %r3, ").replace("load.f32 %r2", "load.f32 %r3").replace("  vm.br ^bb1\n^bb1:", "  %r3 = vm.buffer.alloc %i6:7, %i8\n  vm.br ^bb1\n^bb1:", 1)
        result = """\
  %i0:1 = vm.const.i64.zero
  vm.br ^bb7
^bb7:
  %i8 = vm.cmp.lt.i64.s %i0:1, %i4:5
  vm.cond_br %i8, ^bb8, ^bb9
^bb8:
  %i16 = vm.buffer.load.f32 %r3, %i0:1
  %i16 = vm.add.f32 %i16, %i16
  vm.buffer.store.f32 %i16, %r2, %i0:1
  %i0:1 = vm.add.i64 %i0:1, %i2:3
  vm.br ^bb7
^bb9:
"""
        with_result = own.replace("^bb6:\n", "^bb6:\n" + result)
        vmrun.write(module, with_result)
        expect("sums that nothing reads", [module, "--jit"], r"^; contraction: .*with the epilogue after it, whose sums are not stored$")
        vmrun.write(module, with_result.replace("  vm.return", "  %i16 = vm.buffer.load.f32 %r3, %i2:3\n  vm.buffer.store.f32 %i16, %r2, %i2:3\n  vm.return"))
        expect("sums that are read again", [module, "--jit"], r"^; contraction: .*with the epilogue after it$")
        for name, old, new, reason in [
                ("an index that is not affine", "vm.fma.i64 %i10:11, %i4:5, %i0:1", "vm.mul.i64 %i10:11, %i10:11", "checks of indices"),
                ("terms among the outputs", "load.f32 %r1, %i12:13", "load.f32 %r2, %i12:13", "in a buffer that is read")]:
            vmrun.write(module, CONTRACTION.replace(old, new))
            expect(name, [module, "--jit"], f"^; no contraction: .*{reason}$")
        vmrun.write(module, LOOP)
        for name, arguments, parts in [
                ("an unknown name", ["--jit", "--function=none"], ["NOT_FOUND", "'none'", "'m'"]),
                ("two forms", ["--jit", "--json"], ["INVALID_ARGUMENT", "--json"]),
                ("another two", ["--jit", "-d"], ["INVALID_ARGUMENT", "--disassemble"]),
                ("a name for nothing", ["--function=sum"], ["INVALID_ARGUMENT", "for --jit"])]:
            done = vmrun.run("vm-dump", module, *arguments)
            checks.check(name, vmrun.why_bad_failure(done, *parts), done)
    kernels = os.path.join(vmrun.fixtures() or "", "..", "bench", "kernels", "relu_bias.vmvx.vmfb")
    if vmrun.fixtures() and os.path.exists(kernels):
        expect("a kernel in a program", [kernels, "--jit"], r"^; module\.\w*relu_bias\w*: ", r"^; \S+dispatch\S*: compiled;", r"^halyard_run:")
