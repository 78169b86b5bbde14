"""vm-cc --runtime=hal: a module that has become a native module lists, prints and fails as its bytecode does: with the same
exports, reflection, results, statuses and messages, limits and time-outs. The programs are those of test_vm_cc, programs that
wait and call each other, and the shared fixtures."""
import json
import os
import pathlib
import re
import shlex
import subprocess

import hal_runtime
import test_vm_cc
import vmrun

INCLUDES = [f"-I{vmrun.SOURCE}/{folder}/include" for folder in ("vm", "base")]


class Library:
    """A module as a native module, made with each compiler."""

    def __init__(self, folder, name, module):
        self.folder, self.name, self.module = folder, name, module
        self.done = vmrun.run("vm-cc", module, "--runtime=hal", "-o", os.path.join(folder, name), timeout=900)

    def compile(self, compiler, *options):
        """None, or the compiler's messages."""
        self.path = os.path.join(self.folder, f"{self.name}.{compiler}.so")
        sources = [self.name + ".c"]
        if os.path.exists(os.path.join(self.folder, self.name + "_data.S")):
            sources.append(self.name + "_data.S")
        done = subprocess.run([compiler, *test_vm_cc.STRICT, *INCLUDES, *options, "-shared", "-fPIC", "-o", self.path, *sources, "-lm"],
                              capture_output=True, text=True, timeout=900, cwd=self.folder)
        return None if done.returncode == 0 else done.stderr[:2000]


def text_of(done):
    """What a run prints, without the paths of modules."""
    errors = re.sub(r"^vm-run: '[^']*': ", "", done.stderr)
    return done.returncode, done.stdout, errors


def compare(checks, name, modules, libraries, *flags):
    """vm-run prints the same of the modules and of the libraries."""
    expected = vmrun.run("vm-run", *(f"--module={path}" for path in modules), *flags)
    found = vmrun.run("vm-run", *(f"--module={path}" for path in libraries), *flags)
    wrong = None
    if text_of(found) != text_of(expected):
        wrong = f"bytecode ends with {expected.returncode}: {expected.stdout}{expected.stderr}"
    checks.check(f"{name} {' '.join(flags)}", wrong, found)


def make(checks, folder, name, module, compiler, *options):
    library = Library(folder, name, module)
    checks.check(f"{name}: vm-cc", None if library.done.returncode == 0 else "refused", library.done)
    if library.done.returncode != 0:
        return None
    wrong = library.compile(compiler, *options)
    checks.check(f"{name}: {compiler}", wrong)
    return library if wrong is None else None


def check_programs(checks, folder):
    for number, (name, text, calls) in enumerate(test_vm_cc.programs()):
        module = os.path.join(folder, name + ".vmasm")
        vmrun.write(module, text)
        library = make(checks, folder, name, module, test_vm_cc.COMPILERS[number % len(test_vm_cc.COMPILERS)], f"-O{number % 2}")
        if not library:
            continue
        devices = ["--device=local-sync"] if "@hal." in text else []
        compare(checks, name, [module], [library.path], "--list_functions")
        for function, *inputs in calls:
            compare(checks, name, [module], [library.path], *devices, f"--function={function}", *(f"--input={value}" for value in inputs))


# A loop without an end, a recursion without one, a failure below calls, and yields between which all kinds of registers live.
HOST = """vm.module @host
vm.export @endless
""" + vmrun.endless("endless") + """vm.export @deep
vm.func @deep(%i0: i32) -> (i32) {
  %i1 = vm.call @deep(%i0)
  vm.return %i1
}
vm.export @outer
vm.func @outer(%i0: i32) -> (i32) {
  %i1 = vm.call @middle(%i0)
  vm.return %i1
}
vm.func @middle(%i0: i32) -> (i32) {
  %i1 = vm.call @inner(%i0)
  vm.return %i1
}
vm.func @inner(%i0: i32) -> (i32) {
  %i1 = vm.const.i32 100
  %i2 = vm.div.i32.s %i1, %i0
  vm.return %i2
}
vm.export @nested
vm.func @nested(%i0: i32) -> (i32) {
  vm.cond_br %i0, ^bb1, ^bb2
^bb1:
  %i1 = vm.const.i32 -1
  %i1 = vm.add.i32 %i0, %i1
  %i2 = vm.call @nested(%i1)
  vm.return %i2
^bb2:
  %i1 = vm.const.i32 8
  vm.fail %i1, "deep enough"
^bb3:
  vm.return %i1
}
vm.export @yields
vm.func @yields(%i0: i32, %i2:3: i64, %i4: f32, %i6:7: f64) -> (i32, i64, f32, f64, i64) {
  %i8:9 = vm.const.i64 16
  %i10 = vm.const.i32.zero
  %r0 = vm.buffer.alloc %i8:9, %i10
  %i12:13 = vm.const.i64.zero
  %i14 = vm.const.i32.zero
  vm.br ^bb1
^bb1:
  vm.buffer.store.i32 %i14, %r0, %i12:13
  %i15 = vm.const.i32 1
  %i14 = vm.add.i32 %i14, %i15
  vm.yield ^bb2
^bb2:
  %i16 = vm.call @pause(%i14)
  %i17 = vm.cmp.lt.i32.s %i16, %i0
  vm.cond_br %i17, ^bb1, ^bb3
^bb3:
  %i18 = vm.buffer.load.i32 %r0, %i12:13
  %i20:21 = vm.ext.i32.i64.s %i18
  vm.return %i14, %i2:3, %i4, %i6:7, %i20:21
}
vm.func @pause(%i0: i32) -> (i32) {
  vm.yield ^bb1
^bb1:
  vm.return %i0
}
vm.export @huge
vm.func @huge(%i0:1: i64) -> (i32) {
  %i2 = vm.const.i32.zero
  %r0 = vm.buffer.alloc %i0:1, %i2
  vm.return %i2
}
"""


def check_limits(checks, folder):
    module = os.path.join(folder, "host.vmasm")
    vmrun.write(module, HOST)
    for compiler in test_vm_cc.COMPILERS:
        for level in ("-O0", "-O2"):
            library = make(checks, folder, "host", module, compiler, level)
            if not library:
                continue
            name = f"host {compiler} {level}"
            for flags in (["--function=outer", "--input=5"], ["--function=outer", "--input=0"],
                          ["--function=nested", "--input=0"], ["--function=nested", "--input=3"], ["--function=nested", "--input=63"],
                          ["--function=nested", "--input=64"], ["--function=nested", "--input=65"], ["--function=nested", "--input=200"],
                          ["--function=yields", "--input=5", "--input=-7", "--input=1.5", "--input=-2.5"],
                          ["--function=huge", "--input=1000000000000000"], ["--function=huge", "--input=4096", "--max_memory=1000"]):
                compare(checks, name, [module], [library.path], *flags)
            done = vmrun.run("vm-run", f"--module={library.path}", "--function=deep", "--input=1")
            checks.check(f"{name} deep", vmrun.why_bad_failure(done, "RESOURCE_EXHAUSTED; calls are nested too deep for a stack of 8388608 "
                                                               "bytes; at host.deep+00000001;", "[ 0] bytecode host.deep:14"), done)
            done = vmrun.run("vm-run", f"--module={library.path}", "--function=endless", "--timeout=200ms")
            checks.check(f"{name} endless", None if done.returncode and "time limit of 200 ms" in done.stderr else "no time-out", done)


PROVIDER = """vm.module @provider
vm.import @hal.fence.create cconv "0rI_r"
vm.export @slow
vm.func @slow(%i0: i32) -> (i32) {
  vm.yield ^bb1
^bb1:
  %i1 = vm.add.i32 %i0, %i0
  vm.return %i1
}
vm.export @fails
vm.func @fails(%i0: i32) -> (i32) {
  vm.yield ^bb1
^bb1:
  vm.fail %i0, "as asked"
^bb2:
  vm.return %i0
}
"""
CONSUMER = """vm.module @consumer
vm.import @provider.slow cconv "0i_i"
vm.import @provider.fails cconv "0i_i"
vm.import optional @provider.missing cconv "0i_i"
vm.export @twice
vm.func @twice(%i0: i32) -> (i32) {
  %i1 = vm.call @provider.slow(%i0)
  %i1 = vm.call @provider.slow(%i1)
  vm.return %i1
}
vm.export @fails
vm.func @fails(%i0: i32) -> (i32) {
  %i1 = vm.call @provider.fails(%i0)
  vm.return %i1
}
vm.export @missing
vm.func @missing(%i0: i32) -> (i32) {
  %i1 = vm.import.resolved @provider.missing
  vm.cond_br %i0, ^bb1, ^bb2
^bb1:
  %i1 = vm.call @provider.missing(%i0)
  vm.br ^bb2
^bb2:
  vm.return %i1
}
"""


def check_modules(checks, folder):
    """Modules that import from each other, in each mixture of bytecode and libraries."""
    paths, libraries = {}, {}
    for name, text in (("provider", PROVIDER.replace('vm.import @hal.fence.create cconv "0rI_r"\n', "")), ("consumer", CONSUMER)):
        paths[name] = os.path.join(folder, name + ".vmasm")
        vmrun.write(paths[name], text)
        library = make(checks, folder, name, paths[name], "gcc")
        if not library:
            return
        libraries[name] = library.path
    for mixture in ((libraries, libraries), (paths, libraries), (libraries, paths)):
        chosen = [mixture[0]["provider"], mixture[1]["consumer"]]
        for flags in (["--function=twice", "--input=10"], ["--function=missing", "--input=0"]):
            compare(checks, "modules", [paths["provider"], paths["consumer"]], chosen, *flags)
        for function, text in (("fails", "INVALID_ARGUMENT"), ("missing", "optional import 'provider.missing' of module 'consumer'")):
            done = vmrun.run("vm-run", *(f"--module={path}" for path in chosen), f"--function={function}", "--input=3")
            checks.check(f"modules {function}", None if done.returncode and text in done.stderr else "another end", done)


def check_sameness(checks, folder):
    module = os.path.join(vmrun.SOURCE, "examples", "fib.vmasm")
    texts = []
    for again in ("first", "second"):
        os.makedirs(os.path.join(folder, again))
        vmrun.succeeds("vm-cc", module, "--runtime=hal", f"--output={folder}/{again}/fib.c")
        texts.append([vmrun.read(os.path.join(folder, again, "fib" + end)) for end in (".c", ".h")])
    checks.check("the same bytes each time", None if texts[0] == texts[1] else "the files differ")


def check_constants(checks, folder):
    """Large constants are in a file of their own, with the same bytes."""
    size = 70000
    values = bytes((i * 7 + i // 256) % 256 for i in range(size))
    module = os.path.join(folder, "large.vmasm")
    vmrun.write(module, f"""vm.module @large
vm.rodata[0] = {values.hex()}
vm.rodata[1] = 010203
vm.export @hash
vm.func @hash() -> (i64, i64) {{
  %r0 = vm.const.ref.rodata 0
  %r1 = vm.const.ref.rodata 1
  %i0:1 = vm.const.i64.zero
  %i2:3 = vm.buffer.length %r0
  %i4:5 = vm.buffer.hash %r0, %i0:1, %i2:3
  %i2:3 = vm.buffer.length %r1
  %i6:7 = vm.buffer.hash %r1, %i0:1, %i2:3
  vm.return %i4:5, %i6:7
}}
""")
    for compiler in test_vm_cc.COMPILERS:
        library = make(checks, folder, "large", module, compiler)
        if library:
            compare(checks, f"large {compiler}", [module], [library.path], "--function=hash")
    wrong = None if os.path.getsize(os.path.join(folder, "large.bin")) >= size else "large.bin is too small"
    checks.check("a file of constants", wrong)


STATIC = """#include <halyard/halyard.h>
#include <stdio.h>
#include "fib.h"
static int failed(halyard_status_t status)
{
    if (status) fprintf(stderr, "%s\\n", halyard_status_text(status));
    return status != NULL;
}
int main(void)
{
    halyard_instance_t instance = NULL;
    halyard_module_t module = NULL;
    halyard_context_t context = NULL;
    halyard_function_t function = NULL;
    halyard_call_t call = NULL;
    if (failed(halyard_instance_create(NULL, &instance))) return 1;
    if (failed(halyard_module_create_native(instance, fib_module(), &module))) return 1;
    const halyard_context_options_t options = {.struct_size = sizeof options, .modules = &module, .module_count = 1};
    if (failed(halyard_context_create(instance, &options, &context))) return 1;
    if (failed(halyard_context_find(context, NULL, "iterative", &function))) return 1;
    halyard_value_t argument = {.kind = HALYARD_VALUE_I32, .i32 = 90}, result = {0};
    if (failed(halyard_call_create(context, &call))) return 1;
    if (failed(halyard_call_invoke(call, function, &argument, 1, &result, 1))) return 1;
    printf("%lld\\n", (long long)result.i64);
    return 0;
}
"""


def check_static(checks, folder):
    """A program that links the module without a library of it."""
    library = Library(folder, "fib", os.path.join(vmrun.SOURCE, "examples", "fib.vmasm"))
    checks.check("static: vm-cc", None if library.done.returncode == 0 else "refused", library.done)
    vmrun.write(os.path.join(folder, "main.c"), STATIC)
    libraries = os.path.join(vmrun.BUILD, "lib")
    headers = f"-I{vmrun.SOURCE}/bindings/c/include"
    done = subprocess.run(["cc", "-std=c11", "-DHALYARD_STATIC_MODULE", *INCLUDES, headers, "fib.c", "main.c",
                           f"-L{libraries}", f"-Wl,-rpath,{libraries}", "-lhalyard", "-lm", "-o", "program"],
                          capture_output=True, text=True, timeout=900, cwd=folder)
    checks.check("static: cc", None if done.returncode == 0 else done.stderr[:2000])
    if done.returncode == 0:
        done = subprocess.run([os.path.join(folder, "program")], capture_output=True, text=True, timeout=900)
        checks.check("static", None if done.stdout == "2880067194370816120\n" else "another result", done)


def check_errors(checks, folder):
    fib = os.path.join(vmrun.SOURCE, "examples", "fib.vmasm")
    target = "--output=" + os.path.join(folder, "out")
    done = vmrun.run("vm-cc", fib, target, "--runtime=hal", "--main")
    checks.check("--main", vmrun.why_bad_failure(done, "--main", "--runtime=hal", "vm-run"), done)
    for name, text, *parts in (
            ("a name", 'vm.module @"a b"\nvm.export @f\nvm.func @f() -> () {\n  vm.return\n}\n', "UNIMPLEMENTED", "'a b'", "letters"),
            ("a long name", f"vm.module @{'n' * 64}\nvm.export @f\nvm.func @f() -> () {{\n  vm.return\n}}\n", "UNIMPLEMENTED", "63")):
        module = os.path.join(folder, "refused.vmasm")
        vmrun.write(module, text)
        done = vmrun.run("vm-cc", module, target, "--runtime=hal")
        checks.check(name, vmrun.why_bad_failure(done, module, *parts), done)
    checks.check("refused: no file", "a file was written" if list(pathlib.Path(folder).glob("out*")) else None)


def check_fixtures(checks, folder):
    """One program of each kind; `hal_runtime.py` runs all of them by way of the fixtures' own run.py."""
    fixtures = vmrun.fixtures()
    if not fixtures:
        return
    os.environ.update(VM_CC=os.path.join(vmrun.BIN, "vm-cc"), VM_RUN=os.path.join(vmrun.BIN, "vm-run"), NATIVE_MODULES=folder,
                      HALYARD_INCLUDE=":".join(include[2:] for include in INCLUDES), CFLAGS=hal_runtime.STRICT.replace("-O1", "-O0"))
    for place, names in (("compiled", ("simple_mul", "control_flow", "parameters", "state", "async")), ("inline", ("simple_mul", "mlp")),
                         ("constants", ("",)), ("vmasm", ("fence", "queue", "devices", "list"))):
        with open(os.path.join(fixtures, place, "cases.json"), encoding="utf-8") as file:
            cases = [case for case in json.load(file) if "vulkan" not in "".join(case["devices"])]
        for name in names:
            chosen = [case for case in cases if case["name"].startswith(name)][:6]
            for case in chosen:
                flags = [*case["flags"], *(f"--device={device}" for device in case["devices"]), f"--function={case['function']}",
                         *(f"--input={value}" for value in case["inputs"])]
                with_module = [*flags, f"--module={case['module']}"]
                expected = vmrun.run("vm-run", *with_module, cwd=os.path.join(fixtures, place))
                runner = os.path.join(vmrun.SOURCE, "tests", "hal_runtime.py")
                found = subprocess.run([runner, *with_module], capture_output=True, text=True,
                                       timeout=900, cwd=os.path.join(fixtures, place))
                wrong = None if text_of(found) == text_of(expected) else f"bytecode: {expected.stdout}{expected.stderr}"
                checks.check(f"{place}/{case['name']} {shlex.join(flags)}", wrong, found)


def main(checks, folder):
    vmrun.need_tool("vm-cc")
    for check in (check_programs, check_limits, check_modules, check_sameness, check_constants, check_static, check_errors, check_fixtures):
        inner = os.path.join(folder, check.__name__)
        os.makedirs(inner)
        check(checks, inner)
