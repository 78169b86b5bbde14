"""vm-cc: what it writes compiles without a warning, runs as vm-run does, and is the same each time; what it cannot write is
refused. The programs are the examples, those of vm/tests/text_programs_test.cpp, and the shared fixtures that need no device."""
import json
import os
import pathlib
import random
import re
import shutil
import subprocess

import kernel_programs
import vmrun

STRICT = ["-std=c11", "-Wall", "-Wextra", "-Wconversion", "-pedantic", "-Werror"]
COMPILERS = [compiler for compiler in ("gcc", "clang-19") if shutil.which(compiler)]


def text_programs():
    """The programs of the tests of the assembler that need no other module: text and calls."""
    source = vmrun.read_text(os.path.join(vmrun.SOURCE, "vm", "tests", "text_programs_test.cpp"))
    for text in re.findall(r'R"\((.*?)\)"', source, re.DOTALL):
        calls = re.findall(r"^// run: (.*?) ?->", text, re.MULTILINE)
        if calls and "vm.import" not in text and "test.thing" not in text:
            yield text if "vm.export" in text else vmrun.with_exports(text), [call.split() for call in calls]


def example_calls(text):
    """The calls in the `// run:` lines of an example."""
    for line in re.findall(r"^// run: vm-run (.*)$", text, re.MULTILINE):
        function = re.search(r"--function=(\S+)", line)
        if function:
            yield [function[1], *re.findall(r"--input=(\S+)", line)]


def programs():
    """Name, file text and calls (a function and its inputs) of each program without a device."""
    for number, (text, calls) in enumerate(text_programs()):
        yield f"text{number}", text, calls
    for path in sorted((pathlib.Path(vmrun.SOURCE) / "examples").glob("*.vmasm")):
        text = path.read_text()
        calls = list(example_calls(text))
        if calls and set(re.findall(r"^vm\.import (?:optional )?@(\w+)", text, re.MULTILINE)) <= {"hal", "hal_inline", "hal_loader"}:
            yield path.stem, text, calls
    yield from kernel_programs.programs()


def failure(text):
    """The code and the message of a failure, without the place and the notes that only the interpreter adds."""
    parts = text.strip().split("\n")[0].split(": ", 1)[-1].split("; at ")[0].split("; in the call of ")[0]
    return parts


class Program:
    """A module as C, compiled with each compiler."""

    def __init__(self, folder, name, module, *flags):
        self.folder, self.name, self.module = folder, name, module
        self.done = vmrun.run("vm-cc", module, "--main", "-o", os.path.join(folder, name), *flags)

    def compile(self, compiler, *options):
        """None, or the compiler's messages."""
        sources = [os.path.join(self.folder, self.name + end) for end in (".c", "_main.c")]
        sources += sorted(str(each) for each in pathlib.Path(self.folder).glob(self.name + "_[0-9]*.c"))
        self.program = os.path.join(self.folder, f"{self.name}.{compiler}")
        done = subprocess.run([compiler, *STRICT, *options, "-o", self.program, *sources, "-lm"], capture_output=True, text=True,
                              timeout=900)
        return None if done.returncode == 0 else done.stderr[:2000]

    def run(self, *flags):
        return subprocess.run([self.program, *flags], capture_output=True, text=True, timeout=900)


def prints_same(expected, found, tolerance):
    """Whether the texts are equal, except for numbers that differ by `tolerance`."""
    number = re.compile(r"-?\d+(?:\.\d+)?(?:E[-+]\d+)?")
    return expected == found or (number.sub("#", expected) == number.sub("#", found) and all(
        abs(float(a) - float(b)) <= tolerance * max(1.0, abs(float(a))) for a, b in zip(number.findall(expected), number.findall(found))))


def compare(checks, program, calls, *devices, tolerance=0.0):
    """Calls of vm-run and of the program print the same, or fail in the same way."""
    for function, *inputs in calls:
        flags = [f"--function={function}", *(f"--input={value}" for value in inputs)]
        expected = vmrun.run("vm-run", f"--module={program.module}", *devices, *flags)
        found = program.run(*flags)
        wrong = None
        if found.returncode != expected.returncode or (
                expected.returncode == 0 and not prints_same(expected.stdout, found.stdout, tolerance)):
            wrong = f"vm-run ends with {expected.returncode}: {expected.stdout}{expected.stderr}"
        elif expected.returncode != 0 and failure(found.stderr) != failure(expected.stderr):
            wrong = f"vm-run fails with {failure(expected.stderr)}, the program with {failure(found.stderr)}"
        checks.check(f"{program.name} {function} {inputs}", wrong, found)


def check_programs(checks, folder):
    for name, text, calls in programs():
        module = os.path.join(folder, name + ".vmasm")
        vmrun.write(module, text)
        program = Program(folder, name, module)
        checks.check(f"{name}: vm-cc", None if program.done.returncode == 0 else "refused", program.done)
        if program.done.returncode != 0:
            continue
        for compiler in COMPILERS:
            wrong = program.compile(compiler, "-O0")
            checks.check(f"{name}: {compiler}", wrong)
            if wrong is None:
                compare(checks, program, calls, *(["--device=local-sync"] if "@hal." in text else []))


def check_sameness(checks, folder):
    module = os.path.join(vmrun.SOURCE, "examples", "fib.vmasm")
    texts = []
    for again in ("first", "second"):
        os.makedirs(os.path.join(folder, again))
        vmrun.succeeds("vm-cc", module, "--main", f"--output={folder}/{again}/fib.c")
        texts.append([vmrun.read(os.path.join(folder, again, "fib" + end)) for end in (".c", ".h", "_main.c")])
    checks.check("the same bytes each time", None if texts[0] == texts[1] else "the files differ")


WORDS = """vm.module @m
vm.export @f
vm.func @f(%i0: i32) -> (i32) {
  vm.cond_br %i0, ^bb1, ^bb2
^bb1:
  vm.fail %i0, "goto b2; status = vm_retain(s, &r1); goto leave;"
^bb2:
  vm.return %i0
}
"""


# The name of register 1 begins that of register 10.
NAMES = """vm.module @m
vm.export @f
vm.func @f(%i0: i32) -> (i32) {
  %i2:3 = vm.const.i64 4
  %i4:5 = vm.const.i64.zero
  %i6 = vm.const.i32.zero
  %r10 = vm.buffer.alloc %i2:3, %i6
  vm.buffer.store.i32 %i0, %r10, %i4:5
  vm.br ^bb1(%r10 -> %r1)
^bb1:
  %i7 = vm.buffer.load.i32 %r1, %i4:5
  vm.return %i7
}
"""


# Functions without a return: some loop forever, others fail at their end, if their argument is not 0. Nothing that is
# reached uses the constant.
WITHOUT_END = """vm.module @m
vm.rodata[0] = "bytes"
vm.export @f
vm.export @spin
vm.export @spin_with_ref
vm.export @fails_at_end
vm.export @fails_at_end_with_ref
vm.func @fails_at_end(%i0: i32) -> () {
  vm.fail %i0, "at the end"
}
vm.func @fails_at_end_with_ref(%i0: i32) -> () {
  %r0 = vm.const.ref.zero
  vm.fail %i0, "at the end"
}
vm.func @f(%i0: i32) -> (i32) {
  %i1 = vm.const.i32 9
  vm.fail %i1, "always"
^bb1:
  %i1 = vm.call @unreached(%i0)
  vm.return %i1
}
vm.func @spin(%i0: i32) -> (i32) {
  vm.br ^bb1(%i0 -> %i1)
^bb1:
  %i1 = vm.add.i32 %i1, %i0
  vm.br ^bb1
^bb2:
  vm.return %i1
}
vm.func @spin_with_ref(%i0: i32) -> (i32) {
  %i2:3 = vm.const.i64 4
  %i4:5 = vm.const.i64.zero
  %i6 = vm.const.i32.zero
  %r0 = vm.buffer.alloc %i2:3, %i6
  vm.br ^bb1
^bb1:
  vm.buffer.store.i32 %i0, %r0, %i4:5
  vm.br ^bb1
^bb2:
  vm.return %i0
}
vm.func @unreached(%i0: i32) -> (i32) {
  %r0 = vm.const.ref.rodata 0
  %i2:3 = vm.const.i64.zero
  %i0 = vm.buffer.load.i32 %r0, %i2:3
  vm.return %i0
}
"""


def check_functions_without_end(checks, folder):
    module = os.path.join(folder, "endless.vmasm")
    vmrun.write(module, WITHOUT_END)
    vmrun.succeeds("vm-cc", module, "--runtime=hal", "-o", os.path.join(folder, "native"))
    includes = [f"-I{os.path.join(vmrun.SOURCE, each, 'include')}" for each in ("vm", "base")]
    done = subprocess.run([COMPILERS[0], *STRICT, *includes, "-shared", "-fPIC", "native.c", "-o", "native.so"], cwd=folder, capture_output=True, text=True)
    checks.check("functions without an end in a native module", None if done.returncode == 0 else done.stderr[:500])
    done = vmrun.run("vm-run", f"--module={folder}/native.so", "--function=fails_at_end", "--input=0")
    checks.check("a native function that goes past its end", vmrun.why_bad_failure(done, "INVALID_ARGUMENT", "past the end"), done)
    for flags in ([], ["--no_plan"]):
        program = Program(folder, "endless", module, *flags)
        for compiler in COMPILERS:
            wrong = program.compile(compiler)
            checks.check(f"functions without an end {flags}: {compiler}", wrong)
            if wrong is None:
                compare(checks, program, [["f", "3"], *([name, value] for name in ("fails_at_end", "fails_at_end_with_ref") for value in "03")])


def check_long_texts(checks, folder):
    """Texts of any length and with any characters compile without a warning."""
    for number, text in enumerate(("x" * 4095, "x" * 4096, "a\\b'c??/*\u00e9" * 400, "it's 7 // 8\x01" * 500)):
        module = os.path.join(folder, f"long{number}.vmasm")
        vmrun.write(module, "vm.module @long\nvm.export @f\nvm.func @f(%i0: i32) -> (i32) {\n  vm.cond_br %i0, ^bb1, ^bb2\n^bb1:\n"
                    f'  vm.fail %i0, "{text}"\n^bb2:\n  vm.return %i0\n}}\n')
        name = f"text {number} of {len(text)} characters"
        for flags in ([], ["--split=1"]):
            program = Program(folder, f"long{number}", module, *flags)
            checks.check(f"{name} {flags}", None if program.done.returncode == 0 else "refused", program.done)
            for compiler in COMPILERS:
                wrong = program.compile(compiler)
                checks.check(f"{name} {flags}: {compiler}", wrong)
                done = program.run("--function=f", "--input=3") if wrong is None else None
                checks.check(f"{name} {flags}: what {compiler} made of it", None if done and text in done.stderr else "another text")
        vmrun.succeeds("vm-cc", module, "--runtime=hal", "-o", os.path.join(folder, "native"))
        includes = [f"-I{os.path.join(vmrun.SOURCE, each, 'include')}" for each in ("vm", "base")]
        done = subprocess.run([COMPILERS[0], *STRICT, *includes, "-fsyntax-only", "native.c"], cwd=folder, capture_output=True, text=True)
        checks.check(f"{name} in a native module", None if done.returncode == 0 else done.stderr[:500])


def check_words(checks, folder):
    """Texts of the program that look like C are not taken for it, nor names that begin with other names."""
    for name, text in (("words", WORDS), ("names", NAMES)):
        module = os.path.join(folder, name + ".vmasm")
        vmrun.write(module, text)
        program = Program(folder, name, module)
        for compiler in COMPILERS:
            wrong = program.compile(compiler)
            checks.check(f"{name}: {compiler}", wrong)
            if wrong is None:
                compare(checks, program, [["f", "0"], ["f", "3"]])


IMPORTS = """vm.module @m
vm.import @box.scale cconv "0iIfF_iF"
vm.import optional @box.missing cconv "0i_i"
vm.export @f
vm.func @f(%i0: i32, %i2:3: i64, %i4: f32, %i6:7: f64) -> (i32, f64) {
  %i1, %i8:9 = vm.call @box.scale(%i0, %i2:3, %i4, %i6:7)
  vm.return %i1, %i8:9
}
vm.export @missing
vm.func @missing(%i0: i32) -> (i32) {
  %i1 = vm.import.resolved @box.missing
  vm.cond_br %i0, ^bb1, ^bb2
^bb1:
  %i1 = vm.call @box.missing(%i0)
  vm.br ^bb2
^bb2:
  vm.return %i1
}
"""
BOX = """#include "m.h"
int box_scale(void *user, int32_t a, int64_t b, float c, double d, int32_t *e, double *f)
{
    (void)user;
    if (a == 7) return 5;
    *e = a + (int32_t)b;
    *f = (double)c * d;
    return 0;
}
"""


def check_imports(checks, folder):
    """Functions that vm-cc does not know are declared in the header, and defined by the user."""
    module = os.path.join(folder, "m.vmasm")
    vmrun.write(module, IMPORTS)
    vmrun.write(os.path.join(folder, "box.c"), BOX)
    program = Program(folder, "m", module)
    checks.check("imports", None if program.done.returncode == 0 else "refused", program.done)
    wrong = program.compile("gcc", "-I", folder, os.path.join(folder, "box.c"))
    checks.check("imports compile", wrong)
    if wrong is not None:
        return

    def prints(name, expected, *flags):
        done = program.run(*flags)
        found = (done.returncode, done.stdout.splitlines()[1:])
        checks.check(name, None if found == expected else f"expected {expected}, found {found}", done)

    numbers = [f"--input={value}" for value in (3, 4, 2.5, 3)]
    prints("a call of an import", (0, ["result[0]: i32=7", "result[1]: f64=7.5"]), "--function=f", *numbers)
    prints("an import that fails", (1, []), "--function=f", "--input=7", *numbers[1:])
    prints("an import that is missing", (0, ["result[0]: i32=0"]), "--function=missing", "--input=0")
    done = program.run("--function=missing", "--input=1")
    checks.check("a call of a missing import", None if "NOT_FOUND; optional import 'box.missing'" in done.stderr else "another end", done)


# Returns its argument, which has any type.
ECHO = """vm.module @echo
vm.import @hal.devices.count cconv "0v_i"
vm.export @f
vm.func @f(%r0: !vm.ref<?>) -> (!vm.ref<?>) {
  vm.return %R0
}
vm.export @count
vm.func @count() -> (i32) {
  %i0 = vm.call @hal.devices.count()
  vm.return %i0
}
"""
SMALL = "0,-0,1,-1,0.3,1e-3,-2e-5,1e-8,1e9,-1e9,inf,-inf,nan,57344,448,464,465,240,247.9,248,65504,65520"
ELEMENTS = [f"22x{kind}={SMALL}" for kind in ("f16", "bf16", "f32", "f64", "f8E5M2", "f8E4M3FN", "f8E5M2FNUZ", "f8E4M3FNUZ", "f8E8M0FNU")] + [
    "2xcf64=0038803F013CFF7F 80c0004081bf1020", "1xcf128=0038803F013CFF7F80C0004081BF1020", "3x*16=0102 FFfe 0000", "2x*64=0011223344556677",
    "2x2xi1=1 0 true false", "2xui64=18446744073709551615 0", "3xsi8=-128 127 0", "0xf8E5M2="]


def check_elements(checks, folder):
    """Tensors of all types are read and printed as vm-run does."""
    module = os.path.join(folder, "echo.vmasm")
    vmrun.write(module, ECHO)
    program = Program(folder, "echo", module)
    wrong = program.compile("gcc", "-O1")
    checks.check("echo", wrong)
    if wrong is None:
        compare(checks, program, [["f", text] for text in ELEMENTS], "--device=local-sync")
        compare(checks, program, [["f", "4xf32=1e-45,1e-38,0e-99,1e39"], ["f", "3xf64=5e-324,0e-999,1e999"], ["f", "1xf16=1e-400"]], "--device=local-sync")
        for text in ("1xf8E9=0", "1x*16=123", "1x*16=12345", "1xcf64=0", "2xf16=1,x", "1xi4=1", "1xf32=1e-46", "2xf64=1,-1e-400"):
            done = program.run("--function=f", f"--input={text}")
            checks.check(f"echo {text}", None if done.returncode == 1 and "INVALID_ARGUMENT" in done.stderr else "accepted", done)
    program = Program(folder, "echo", module, "--devices=3")
    checks.check("three devices", program.compile("gcc"))
    done = program.run("--function=count")
    checks.check("the number of devices", None if "i32=3" in done.stdout else "another number", done)


PATTERNS = ["local-sync", "local", "*", "", "?", "l*c", "*sync?", "local?sync", "*l*o*c*a*l*", "a*", "*" * 16, "*" * 17, "?" * 10, "*" * 7 + "?" * 10,
            "*s*y*n*c*x", "**-**"]


def check_patterns(checks, folder):
    """Device ids match as those of vm-run do, planned or not, and soon."""
    texts = "".join(f'vm.rodata[{i + 1}] = "{pattern}"\n' if pattern else f"vm.rodata[{i + 1}] = hex {{\n}}\n"
                    for i, pattern in enumerate(PATTERNS))
    functions = "".join(f"""vm.export @f{i}
vm.func @f{i}() -> (i32, i64) {{
  %i0 = vm.const.i32.zero
  %r0 = vm.call @hal.devices.get(%i0)
  %r1 = vm.const.ref.rodata 0
  %r2 = vm.const.ref.rodata {i + 1}
  %i0, %i2:3 = vm.call @hal.device.query.i64(%r0, %r1, %r2)
  vm.discard.refs %r0, %r1, %r2
  vm.return %i0, %i2:3
}}
""" for i in range(len(PATTERNS)))
    module = os.path.join(folder, "ids.vmasm")
    vmrun.write(module, 'vm.module @ids\nvm.import @hal.devices.get cconv "0i_r"\nvm.import @hal.device.query.i64 cconv "0rrr_iI"\n'
                f'vm.rodata[0] = "hal.device.id"\n{texts}{functions}')
    for flags in ([], ["--no-plan"]):
        program = Program(folder, f"ids{len(flags)}", module, *flags)
        wrong = program.compile("gcc")
        checks.check(f"ids {flags}", wrong)
        if wrong is None:
            compare(checks, program, [[f"f{i}"] for i in range(len(PATTERNS))], "--device=local-sync")


def check_expectations(checks, folder):
    """The shared test programs: their tests pass or fail as with vm-run."""
    fixtures = vmrun.fixtures()
    if not fixtures:
        return
    with open(os.path.join(fixtures, "check", "tests.json"), encoding="utf-8") as file:
        listed = [each for each in json.load(file) if ".vmvx." in each["module"]]
    for number, each in enumerate(listed):
        program = Program(folder, f"check{number}", os.path.join(fixtures, "check", each["module"]))
        wrong = program.compile(COMPILERS[number % len(COMPILERS)], "-O1")
        checks.check(each["module"], wrong)
        for test, end in each["tests"].items() if wrong is None else ():
            done = program.run(f"--function={test}")
            good = done.returncode == 0 if end == "pass" else "FAILED_PRECONDITION; expectation '" in done.stderr
            checks.check(f"{each['module']} {test}", None if good else f"expected: {end}", done)


OUTSIDE = """vm.module @outside
vm.export @get
vm.func @get(%i0: i32) -> (i32) {
  %i2:3 = vm.const.i64 16
  %i4 = vm.const.i32.zero
  %r0 = vm.buffer.alloc %i2:3, %i4
  %i2:3 = vm.ext.i32.i64.u %i0
  vm.buffer.store.i32 %i0, %r0, %i2:3
  %i0 = vm.buffer.load.i32 %r0, %i2:3
  vm.return %i0
}
"""


def check_no_checks(checks, folder):
    """--checks=none leaves out the checks of loads and stores, and nothing else."""
    module = os.path.join(folder, "outside.vmasm")
    vmrun.write(module, OUTSIDE)
    texts = []
    for flags in (["--checks=all"], ["--checks=none"]):
        program = Program(folder, "outside", module, *flags)
        wrong = program.compile("gcc")
        checks.check(f"outside {flags}", wrong)
        compare(checks, program, [["get", "3"], *([["get", "4"]] if flags == ["--checks=all"] else [])])
        texts.append(vmrun.read_text(os.path.join(folder, "outside.c")))
    checks.check("no checks", None if "vm_is_in" in texts[0] and "vm_is_in" not in texts[1] else "there are checks")


# A library of kernels in the layout of one revision: the kernel multiplies by way of its local memory.
LIBRARY = """#include <stddef.h>
#include <stdint.h>
typedef struct { uint32_t size[2]; uint16_t size_z, constant_count; uint32_t count[2]; uint16_t count_z; uint8_t concurrency, binding_count;
  const uint32_t* constants; void* const* bindings; const size_t* lengths; } dispatch;
typedef struct { uint32_t x, y; uint16_t z, reserved; uint32_t processor; void* local; uint32_t local_bytes; } workgroup;
typedef int (*entry)(const void*, const dispatch*, const workgroup*);
static int mul(const void* environment, const dispatch* d, const workgroup* w) {
  (void)environment;
  float* local = w->local;
  if (w->local_bytes < 4096 || d->binding_count != 3 || d->constant_count != 1 || d->lengths[2] % 4 != 0) return 1;
  for (uint32_t i = 0; i < d->constants[0]; ++i) {
    const uint32_t at = w->x * d->constants[0] + i;
    local[i] = ((const float*)d->bindings[0])[at] * ((const float*)d->bindings[1])[at];
    ((float*)d->bindings[2])[at] = local[i];
  }
  return FAILS;
}
static const entry entries[] = {mul};
static const char* const names[] = {"mul"};
static const struct { uint32_t revision; const char* name; uint32_t features, sanitizer; } header = {REVISION, "demo", 0, 0};
#if REVISION == 5
static const struct { uint16_t pages; uint8_t constants, bindings; uint32_t reserved; uint64_t words[8]; } attributes[] = {{1, 1, 3, 0, {0}}};
static const struct { const void* header; uint32_t imports; const void* symbols; uint32_t count; const void *entries, *attributes, *names,
  *rest[3]; uint32_t constants; } library = {&header, 0, NULL, 1, entries, attributes, names, {NULL}, CONSTANTS};
#else
static const struct { uint64_t flags; uint16_t pages; uint8_t constants, bindings; uint32_t size[2]; uint16_t rest[2]; uint64_t words[5]; }
  attributes[] = {{0, 1, 1, 3, {0}, {0}, {0}}};
static const struct { const void* header; uint32_t imports; const void* symbols; uint32_t count; const void *entries, *attributes,
  *parameters, *occupancy, *names, *rest[4]; uint32_t constants; } library = {&header, 0, NULL, 1, entries, attributes, NULL, NULL, names,
  {NULL}, CONSTANTS};
#endif
const void* demo_library_query(uint32_t revision, const void* environment);
const void* demo_library_query(uint32_t revision, const void* environment) {
  (void)environment;
  return revision == REVISION ? (const void*)&library : NULL;
}
"""


def check_static(checks, folder):
    """Kernels in an object file: of the compiler, planned and not; of both revisions; with failures."""
    fixtures = vmrun.fixtures()
    if fixtures and vmrun.processor() == "x86_64":
        place = os.path.join(fixtures, "..", "aot")
        expected = vmrun.succeeds("vm-run", f"--module={place}/kws8.vmvx.vmfb", "--device=local-sync", "--function=classify",
                                  f"--input=@{place}/kws8.0.in0.npy").stdout
        for flags in ([], ["--no-plan"]):
            program = Program(folder, f"kws8_{len(flags)}", os.path.join(place, "kws8-static-x86_64.vmfb"), *flags)
            for compiler in COMPILERS:
                wrong = program.compile(compiler, "-O1", os.path.join(place, "kws8-static-x86_64.o"))
                checks.check(f"static {flags}: {compiler}", wrong)
                if wrong is None:
                    done = program.run("--function=classify", f"--input=@{place}/kws8.0.in0.npy")
                    checks.check(f"static {flags}", None if done.stdout == expected else f"expected {expected}", done)
    text = vmrun.read_text(os.path.join(vmrun.SOURCE, "examples", "elementwise_mul.vmasm"))
    text = text.replace('"vmvx-bytecode-fb"  ', '"static"  ')
    text = re.sub(r"vm\.rodata\[6\] = module \{.*?\n\}\n", 'vm.rodata[6] = "demo"\n', text, flags=re.DOTALL)
    # Where the name of the kernel is not asked for, the program is planned.
    planned = re.sub(r"%(\w+:\w+) = vm\.call @hal\.executable\.lookup\.function\(.*?\)", r"%\1 = vm.const.i64.zero", text)
    for name, text in (("objects", text), ("planned", planned)):
        module = os.path.join(folder, name + ".vmasm")
        vmrun.write(module, text)
        program = Program(folder, name, module)
        checks.check(f"static {name}", None if program.done.returncode == 0 else "refused", program.done)
        library = os.path.join(folder, "library.c")
        vmrun.write(library, LIBRARY)
        arena = ["-DVM_ARENA_BYTES=16384"]
        for what, defines, part in (("revision 5", ["-DREVISION=5", "-DFAILS=0", "-DCONSTANTS=0", *arena], None),
                                    ("revision 6", ["-DREVISION=6", "-DFAILS=0", "-DCONSTANTS=0", *arena], None),
                                    ("revision 7", ["-DREVISION=7", "-DFAILS=0", "-DCONSTANTS=0", *arena], "FAILED_PRECONDITION"),
                                    ("constants", ["-DREVISION=6", "-DFAILS=0", "-DCONSTANTS=2", *arena], "FAILED_PRECONDITION"),
                                    ("a kernel that fails", ["-DREVISION=6", "-DFAILS=3", "-DCONSTANTS=0", *arena], "INTERNAL"),
                                    ("no room for local memory", ["-DREVISION=6", "-DFAILS=0", "-DCONSTANTS=0", "-DVM_ARENA_BYTES=3000"],
                                     "RESOURCE_EXHAUSTED")):
            wrong = program.compile("gcc", "-fsanitize=address,undefined", *defines, library)
            checks.check(f"static {name}, {what}, compiles", wrong)
            if wrong is not None:
                continue
            done = program.run("--function=mul", "--input=8xf32=1 2 3 4 5 6 7 8", "--input=8xf32=10 20 30 40 50 60 70 80")
            good = part in done.stderr and done.returncode == 1 if part else "8xf32=10 40 90 160 250 360 490 640" in done.stdout
            checks.check(f"static {name}, {what}", None if good else f"expected {part or 'products'}", done)


def check_errors(checks, folder):
    def fails(name, done, *parts):
        checks.check(name, vmrun.why_bad_failure(done, *parts), done)

    fib = os.path.join(vmrun.SOURCE, "examples", "fib.vmasm")
    target = "--output=" + os.path.join(folder, "out")
    fails("no module", vmrun.run("vm-cc", target), "usage: vm-cc")
    fails("no output", vmrun.run("vm-cc", fib), "--output")
    fails("a folder as output", vmrun.run("vm-cc", fib, f"--output={folder}/"), "add a name")
    fails("a missing module", vmrun.run("vm-cc", "none.vmfb", target), "NOT_FOUND", "none.vmfb")
    fails("a file that is no module", vmrun.run("vm-cc", "README.md", target), "README.md")
    fails("an unknown runtime", vmrun.run("vm-cc", fib, target, "--runtime=nnoe"), "--runtime=nnoe", "none")
    fails("an unknown kind of checks", vmrun.run("vm-cc", fib, target, "--checks=some"), "--checks=some", "all", "none")
    fails("no device", vmrun.run("vm-cc", fib, target, "--devices=0"), "--devices=0", "1 to 64")
    fails("too many devices", vmrun.run("vm-cc", fib, target, "--devices=65"), "--devices=65", "1 to 64")
    fails("devices of a native module", vmrun.run("vm-cc", fib, target, "--runtime=hal", "--devices=2"), "--devices", "--runtime=hal")
    fails("a folder that is missing", vmrun.run("vm-cc", fib, f"--output={folder}/no/out"), "no/out")
    for name, text, *parts in (
            ("an import with objects", 'vm.import @box.open cconv "0r_v"\nvm.export @f\nvm.func @f(%i0: i32) -> () {\n'
             "  %r0 = vm.const.ref.zero\n  vm.call @box.open(%r0)\n  vm.return\n}\n", "UNIMPLEMENTED", "'box.open' (0r_v)", "numbers only"),
            ("a function with objects", "vm.export @f\nvm.func @f(%r0: !vm.buffer) -> () {\n  vm.return\n}\n", "UNIMPLEMENTED",
             "'f' (0r_v)", "objects"),
            ("an import of hal that is not there", 'vm.import @hal.channel.close cconv "0r_v"\nvm.export @f\nvm.func @f() -> () {\n'
             "  %r0 = vm.const.ref.zero\n  vm.call @hal.channel.close(%r0)\n  vm.return\n}\n", "NOT_FOUND", "'hal.channel.close' (0r_v)"),
            ("an import of another convention", 'vm.import @hal.devices.count cconv "0i_i"\nvm.export @f\nvm.func @f() -> () {\n'
             "  %i0 = vm.const.i32.zero\n  %i0 = vm.call @hal.devices.count(%i0)\n  vm.return\n}\n", "INCOMPATIBLE", "0i_i; expected 0v_i"),
            ("a program of several ranks", 'vm.import @hal.devices.get cconv "0i_r"\nvm.import @hal.channel.create cconv "0rIIrrii_r"\n'
             "vm.export @__init\nvm.func @__init() -> () {\n  vm.call @open()\n  vm.return\n}\nvm.func @open() -> () {\n"
             "  %i0 = vm.const.i32.zero\n  %i2:3 = vm.const.i64.zero\n  %r0 = vm.call @hal.devices.get(%i0)\n  %r1 = vm.const.ref.zero\n"
             "  %r0 = vm.call @hal.channel.create(%r0, %i2:3, %i2:3, %r1, %r1, %i0, %i0)\n  vm.return\n}\n", "UNIMPLEMENTED",
             "'hal.channel.create'", "--runtime=hal"),
            *((f"imports {a} and {b}", f'vm.import @{a} cconv "0i_i"\nvm.import @{b} cconv "{convention}"\nvm.export @f\n'
               f"vm.func @f(%i0: i32) -> (i32) {{\n  %i0 = vm.call @{a}(%i0)\n  %i0 = vm.call @{b}(%i0)\n  vm.return %i0\n}}\n",
               "UNIMPLEMENTED", f"'{a}' (0i_i) and '{b}' ({convention})", "a_b_c") for a, b, convention in (
                   ("a.b_c", "a_b.c", "0i_i"), ("a.b_c", "a_b.c", "0f_f"))),
            *((f"an import of the program's name {name}", f'vm.import @{name} cconv "0i_i"\nvm.export @f\nvm.func @f(%i0: i32) -> (i32) {{\n'
               f"  %i0 = vm.call @{name}(%i0)\n  vm.return %i0\n}}\n", "UNIMPLEMENTED", f"'{name}'", "has this name for itself")
              for name in ("vm.fail", "hal_tensor.view", "out.init", "size.t", "fn0.f")),
            ("a newer hal", "vm.dependency @hal 8\nvm.export @f\nvm.func @f() -> () {\n  vm.return\n}\n", "NOT_FOUND", "version 8", "version 7")):
        module = os.path.join(folder, "refused.vmasm")
        vmrun.write(module, "vm.module @refused\n" + text)
        fails(name, vmrun.run("vm-cc", module, target), module, *parts)
    checks.check("refused: no file", "a file was written" if list(pathlib.Path(folder).glob("out*")) else None)


def check_flags_of_program(checks, folder):
    """The program of --main refuses what it does not understand."""
    program = Program(folder, "fib", os.path.join(vmrun.SOURCE, "examples", "fib.vmasm"))
    checks.check("fib compiles", program.compile("gcc"))
    for flags, part in ((["--fuction=fib"], "'--fuction=fib' is not a flag"), (["--function=none"], "NOT_FOUND; there is no function 'none'"),
                        (["--function=iterative"], "expected 1 arguments, found 0"),
                        (["--function=iterative", "--input=ten"], "--input=ten"),
                        (["--function=iterative", "--input=4294967296"], "32 bits"),
                        (["--function=iterative", "--input=-2147483649"], "32 bits")):
        done = program.run(*flags)
        checks.check(f"fib {flags}", None if done.returncode == 1 and part in done.stderr else f"expected {part!r}", done)


def check_fixtures(checks, folder):
    """The shared programs with portable kernels for one device, or none: vm-run and the program print the same."""
    fixtures = vmrun.fixtures()
    if not fixtures:
        return
    modules = {}
    for place in ("compiled", "inline", "../aot"):
        with open(os.path.join(fixtures, place, "cases.json"), encoding="utf-8") as file:
            for case in json.load(file):
                if case["devices"] in ([], ["local-sync"]):
                    modules.setdefault((place, case["module"]), []).append(case)
    refused = {"llvm-cpu": "none of its constants is a portable one",
               "vulkan.": "none of its constants is a portable one"}
    for number, ((place, name), cases) in enumerate(modules.items()):
        module = os.path.join(fixtures, place, name)
        files = [flag.replace("weights", f"{fixtures}/{place}/weights") for flag in cases[0]["flags"]]
        program = Program(folder, f"p{number}", module, *files)
        reason = next((why for part, why in refused.items() if part in name), None)
        if reason:
            checks.check(f"{name} is refused", vmrun.why_bad_failure(program.done, name, reason), program.done)
            continue
        checks.check(name, None if program.done.returncode == 0 else "refused", program.done)
        wrong = program.compile(COMPILERS[number % len(COMPILERS)], "-O0")
        checks.check(f"{name} compiles", wrong)
        if wrong is None:
            calls = [[case["function"], *(value.replace("@", f"@{fixtures}/{place}/") for value in case["inputs"])] for case in cases]
            # The microkernel for products of packed matrices fuses them with sums where the processor can.
            compare(checks, program, calls, *(f"--device={device}" for device in cases[0]["devices"]), *files,
                    tolerance=1e-4 if "-uk-dt" in name else 0.0)


GIVEN = r"""#include <stdio.h>
#include <string.h>
#include "given.h"
static given_state state;
static uint64_t arena[1 << 17];
static const float w[16] = {-1.0f, -0.75f, -0.5f, -0.25f, 0.0f, 0.25f, 0.5f, 0.75f, 1.0f, 1.25f, 1.5f, 1.75f, 2.0f, 2.25f, 2.5f, 2.75f};
static int call(const char* what, const given_parameter* parameters, size_t count) {
  float input[4] = {1, 2, 3, 4};
  given_tensor in = {.data = input, .bytes = sizeof input, .element_type = 0x21000020, .rank = 2, .shape = {1, 4}};
  given_tensor out;
  memset(&out, 0, sizeof out);
  int status = given_init(&state, arena, sizeof arena, parameters, count);
  if (status == 0) status = given_apply(&state, &in, &out);
  printf("%s %d", what, status);
  for (size_t i = 0; i < out.bytes / 4; ++i) printf(" %g", (double)((const float*)out.data)[i]);
  printf("\n");
  return status;
}
int main(void) {
  const given_parameter all[] = {{"other", "w", w, 4}, {NULL, "w", w, 4}, {"model", NULL, w, 4}, {"model", "w", w, sizeof w}};
  call("all", all, 4);
  call("none", NULL, 3);
  call("another scope", all, 2);
  call("another key", all, 3);
  const given_parameter wrong[] = {{"model", "w", w, 60}, {"model", "w", NULL, 64}};
  call("too short", wrong, 1);
  call("no bytes", wrong + 1, 1);
  return 0;
}
"""
# The statuses NOT_FOUND and OUT_OF_RANGE.
GIVEN_PRINTS = """all 0 10 12.5 15 17.5
none 5
another scope 5
another key 5
too short 11
no bytes 5
"""


USE_BUFFER = """vm.module @arena
vm.func @use(%r0: !vm.ref<?>) -> (i32) {
  %i0:1 = vm.buffer.length %r0
  %i2:3 = vm.const.i64.zero
  %i4:5 = vm.const.i64 1
  %i6 = vm.const.i32.zero
  %i7 = vm.const.i32 255
  vm.br ^bb1
^bb1:
  %i8 = vm.cmp.lt.i64.s %i2:3, %i0:1
  vm.cond_br %i8, ^bb2, ^bb3
^bb2:
  %i9 = vm.buffer.load.i8.u %r0, %i2:3
  %i6 = vm.or.i32 %i6, %i9
  vm.buffer.store.i8 %i7, %r0, %i2:3
  %i2:3 = vm.add.i64 %i2:3, %i4:5
  vm.br ^bb1
^bb3:
  vm.discard.refs %r0
  vm.return %i6
}
"""


def check_arena(checks, folder):
    """New buffers and lists are zero wherever the arena gives them their place: in memory that nothing has used yet, which the
    program of --main does not clear, and in memory that other objects have left, of all sizes and in any order."""
    chance = random.Random(3)
    text = USE_BUFFER + "vm.export @main\nvm.func @main() -> (i32) {\n  %i0 = vm.const.i32.zero\n  %i1 = vm.const.i32 16\n  %i7 = vm.const.i32 -1\n"
    alive = set()
    for _ in range(300):
        ref = chance.randrange(12)
        if ref in alive and chance.random() < 0.5:
            text += f"  vm.discard.refs %r{ref}\n"
            alive.discard(ref)
            continue
        alive.add(ref)
        size = chance.choice((0, 1, 15, 16, 17, 31, 33, 64, 100, 500, 4000))
        if chance.random() < 0.3:  # a list that shrinks, and grows again
            text += f"  %i2 = vm.const.i32 {size}\n  %i3 = vm.const.i32 {size // 2}\n  %r{ref} = vm.list.alloc %i3 : !vm.list<i32>\n"
            text += f"  vm.list.resize %r{ref}, %i2\n"
            for at in sorted({0, size // 3, max(size - 1, 0)} & set(range(size))):
                text += f"  %i4 = vm.const.i32 {at}\n  %i5 = vm.list.get.i32 %r{ref}, %i4\n  %i0 = vm.or.i32 %i0, %i5\n  vm.list.set.i32 %r{ref}, %i4, %i7\n"
            text += f"  vm.list.resize %r{ref}, %i3\n  vm.list.resize %r{ref}, %i2\n"
            if size > 1:
                text += f"  %i4 = vm.const.i32 {size - 1}\n  %i5 = vm.list.get.i32 %r{ref}, %i4\n  %i0 = vm.or.i32 %i0, %i5\n"
            continue
        text += f"  %i2:3 = vm.const.i64 {size}\n  %r{ref} = vm.buffer.alloc %i2:3, %i1\n  %i4 = vm.call @use(%r{ref})\n  %i0 = vm.or.i32 %i0, %i4\n"
    text += "  vm.return %i0\n}\n"
    module = os.path.join(folder, "arena.vmasm")
    vmrun.write(module, text)
    program = Program(folder, "arena", module)
    for compiler, *flags in (("gcc", "-O2"), ("clang-19", "-O0", "-fsanitize=address,undefined")):
        wrong = program.compile(compiler, *flags)
        checks.check(f"the arena, {compiler}", wrong)
        done = program.run("--function=main") if wrong is None else None
        checks.check(f"new objects are zero, {compiler}", None if done and "i32=0" in done.stdout else "they are not", done)
    source = vmrun.read_text(os.path.join(folder, "arena.c"))
    checks.check("only known zeros are left as they are", None if "arena_was_zero && s->untouched" in source else "the text has changed")


# Gives a tensor of %i20:21 elements, each the number %i0, where %i14:15 is the dimension of the argument.
SIZED = """vm.module @sized
vm.dependency @hal_inline 0
vm.import @hal_inline.buffer.allocate cconv "0iI_rr"
vm.import @hal_inline.buffer.storage cconv "0r_r"
vm.import @hal_inline.buffer_view.create cconv "0rIIiiCID_r"
vm.import @hal_inline.buffer_view.assert cconv "0rriiCID_v"
vm.import @hal_inline.buffer_view.buffer cconv "0r_r"
vm.import @hal_inline.buffer_view.dim cconv "0ri_I"
vm.rodata[0] = "input0"
vm.global.i32 mutable @g
vm.export @f
vm.func @f(%r0: !hal.buffer_view, %i0: i32) -> (!hal.buffer_view) {
  %i1 = vm.const.i32 1
  %i2 = vm.const.i32 0x10000020
  %i8:9 = vm.const.i64.zero
  %i10 = vm.const.i32 64
  %i11 = vm.const.i32.zero
  %i12:13 = vm.const.i64 4
  %i14:15 = vm.call @hal_inline.buffer_view.dim(%r0, %i11)
  %r2 = vm.const.ref.rodata 0
  vm.call.variadic @hal_inline.buffer_view.assert segments[65535, 65535, 65535, 65535, 1](%r0, %r2, %i2, %i1, %i14:15)
  %r1 = vm.call @hal_inline.buffer_view.buffer(%r0)
  %r3 = vm.call @hal_inline.buffer.storage(%r1)
@SIZE@  %i22:23 = vm.mul.i64 %i20:21, %i12:13
  %r4, %r5 = vm.call @hal_inline.buffer.allocate(%i10, %i22:23)
  vm.buffer.fill.i32 %r5, %i8:9, %i20:21, %i0
  %r6 = vm.call.variadic @hal_inline.buffer_view.create segments[65535, 65535, 65535, 65535, 65535, 1](%r4, %i8:9, %i22:23, %i2, %i1, %i20:21)
  vm.return %R6
}
"""
# What the size depends on: the text, and whether it depends on dimensions alone.
SIZES = {"a dimension": ("  %i20:21 = vm.mul.i64 %i14:15, %i12:13\n  %i20:21 = vm.add.i64 %i20:21, %i14:15\n", True),
         "a division by a constant": ("  %i20:21 = vm.div.i64.u %i14:15, %i12:13\n", True),
         "a division by a dimension": ("  %i20:21 = vm.div.i64.u %i12:13, %i14:15\n", False),
         "a number": ("  %i20:21 = vm.ext.i32.i64.u %i0\n", False),
         "a global": ("  %i18 = vm.global.load.i32 @g\n  %i18 = vm.add.i32 %i18, %i1\n  %i20:21 = vm.ext.i32.i64.u %i18\n", False),
         "data": ("  %i18 = vm.buffer.load.i32 %r3, %i8:9\n  %i20:21 = vm.ext.i32.i64.u %i18\n", False),
         "a branch": ("  %i16:17 = vm.const.i64 6\n  %i18 = vm.cmp.lt.i64.s %i14:15, %i16:17\n"
                      "  vm.cond_br %i18, ^bb1(%i16 -> %i20, %i17 -> %i21), ^bb2(%i14 -> %i20, %i15 -> %i21)\n^bb1:\n  vm.br ^bb2\n^bb2:\n", False)}
SIZED_CALLER = """#include "@.h"
#include <stdio.h>
int main(void) {
  static @_state s;
  static unsigned char arena[4096];
  const int32_t in[7] = {0};
  const int32_t* out = NULL;
  size_t shape[1];
  for (size_t n = 0; n <= 7; n += 7) {
    const size_t bytes = @_f_arena_size(n);
    @_init(&s, arena, bytes);
    int status = @_f(&s, in, n, 5, &out, shape);
    printf("%d %zu ", status, shape[0]);
    if (bytes == 0) continue;
    @_init(&s, arena, bytes - 16);
    status = @_f(&s, in, n, 5, &out, shape);
    printf("%d ", status);
  }
  printf("%d\\n", @_f_arena_size((size_t)INT32_MAX + 1) == SIZE_MAX);
  return 0;
}
"""


def check_arena_sizes(checks, folder):
    """The header has a function that gives the bytes of the arena if they depend on dimensions alone."""
    for number, (size, (text, is_known)) in enumerate(SIZES.items()):
        name = f"sized{number}"
        module = os.path.join(folder, name + ".vmasm")
        vmrun.write(module, SIZED.replace("@SIZE@", text))
        program = Program(folder, name, module)
        if program.done.returncode != 0:
            checks.check(f"the arena depends on {size}", "refused", program.done)
            continue
        has_function = f"{name}_f_arena_size(size_t a0_d0);" in vmrun.read_text(os.path.join(folder, name + ".h"))
        checks.check(f"the arena depends on {size}", None if has_function == is_known else f"a function is there: {has_function}", program.done)
        for compiler in COMPILERS:
            wrong = program.compile(compiler, "-O1")
            checks.check(f"the arena depends on {size}: {compiler}", wrong)
            if wrong is None:
                compare(checks, program, [["f", "2xi32=3", "4"], ["f", "7xi32=3", "5"], ["f", "0xi32=", "1"]])
        if not has_function or not is_known:
            continue
        vmrun.write(os.path.join(folder, "caller.c"), SIZED_CALLER.replace("@", name))
        done = subprocess.run([COMPILERS[0], *STRICT, "-fsanitize=address,undefined", "-o", "caller", "caller.c", name + ".c", "-lm"], cwd=folder,
                              capture_output=True, text=True)
        checks.check(f"a caller compiles with {size}", None if done.returncode == 0 else "messages", done)
        done = subprocess.run([os.path.join(folder, "caller")], capture_output=True, text=True)
        expected = f"0 0 0 {35 if size == 'a dimension' else 1} 8 1\n"
        checks.check(f"an arena of the size of {size}", None if done.stdout == expected else f"expected {expected}", done)


NAMES_OF_C = ("init", "state", "tensor", "parameter", "parameters", "arena_was_zero", "ARENA_BYTES", "H_")
USED_NAMES = """vm.module @names
vm.import @M.twice cconv "0i_i"
@EXPORTS@vm.export @"twice" = @f
vm.func @f(%i0: i32) -> (i32) {
  %i2:3 = vm.const.i64 16
  %r0 = vm.buffer.alloc %i2:3, %i0
  %i2:3 = vm.const.i64.zero
  %i1 = vm.buffer.load.i32 %r0, %i2:3
  vm.return %i1
}
vm.export @g
vm.func @g(%i0: i32) -> (i32) {
  %i0 = vm.call @M.twice(%i0)
  vm.return %i0
}
"""


def check_export_names(checks, folder):
    """Exports may have the names that the C uses, and those of functions that the user defines."""
    module = os.path.join(folder, "M.vmasm")
    vmrun.write(module, USED_NAMES.replace("@EXPORTS@", "".join(f'vm.export @"{name}" = @f\n' for name in NAMES_OF_C)))
    program = Program(folder, "M", module)
    vmrun.write(os.path.join(folder, "twice.c"), '#include "M.h"\nint M_twice(void* user, int32_t a0, int32_t* o0) {\n  (void)user;\n  *o0 = 2 * a0;\n'
                "  return 0;\n}\n")
    sized = os.path.join(folder, "sized.vmasm")
    vmrun.write(sized, SIZED.replace("@SIZE@", SIZES["a dimension"][0]).replace("vm.export", 'vm.export @"f_arena_size" = @f\nvm.export'))
    for compiler in COMPILERS:
        wrong = program.compile(compiler, "-I", folder, os.path.join(folder, "twice.c"))
        checks.check(f"names that the C uses: {compiler}", wrong)
        for name, expected in [*((name, 0) for name in NAMES_OF_C), ("twice", 0), ("g", 16)] if wrong is None else ():
            done = program.run(f"--function={name}", "--input=8")
            checks.check(f"an export with the name {name}", None if f"i32={expected}\n" in done.stdout else "another result", done)
        for flags in ([], ["--no-plan"]):
            dynamic = Program(folder, "sized", sized, *flags)
            wrong = dynamic.compile(compiler)
            checks.check(f"an export with the name of a function for the arena: {compiler} {flags}", wrong)
            if wrong is None:
                compare(checks, dynamic, [["f", "2xi32=3", "4"], ["f_arena_size", "3xi32=3", "5"]])


def check_given_parameters(checks, folder):
    """A program with objects gets its parameters from the caller, as pointers."""
    if not vmrun.fixtures():
        return
    module = os.path.join(vmrun.fixtures(), "compiled", "parameters.vmvx.vmfb")
    done = vmrun.run("vm-cc", module, "--no-plan", "-o", os.path.join(folder, "given"))
    checks.check("parameters of the caller", None if done.returncode == 0 else "refused", done)
    vmrun.write(os.path.join(folder, "caller.c"), GIVEN)
    for compiler in COMPILERS:
        program = os.path.join(folder, compiler)
        done = subprocess.run([compiler, *STRICT, "-O1", "-fsanitize=address,undefined", "-o", program, "caller.c", "given.c", "-lm"], cwd=folder,
                              capture_output=True, text=True)
        checks.check(f"{compiler} compiles a program with parameters of the caller", None if done.returncode == 0 else "messages", done)
        done = subprocess.run([program], capture_output=True, text=True)
        checks.check(f"parameters of the caller, {compiler}", None if done.stdout == GIVEN_PRINTS else "another result", done)
    program = Program(folder, "empty", module, "--no-plan")
    checks.check("--main with parameters of the caller", program.compile(COMPILERS[0]))
    done = program.run("--function=apply", "--input=1x4xf32=1")
    checks.check("a program without its parameters", None if done.returncode == 1 and "NOT_FOUND" in done.stderr else "another failure", done)


# Returns the parameter of scope "model" with a key.
KEYED = """vm.module @weights
vm.state 0, 1
vm.dependency @hal 7
vm.dependency @io_parameters 0
vm.import @hal.devices.get cconv "0i_r"
vm.import @hal.fence.create cconv "0rI_r"
vm.import @hal.fence.await cconv "0iICrD_i"
vm.import @hal.buffer_view.create cconv "0rIIiiCID_r"
vm.import @io_parameters.load cconv "0rIrrrIiirrr_r"
vm.rodata[0] = "model"
vm.rodata[1] = 00000000@LENGTH@000000
vm.rodata[2] = @KEY@
vm.rodata[3] = 000000000000000000000000000000001000000000000000
vm.export @__init
vm.func @__init() -> () {
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
  %i6:7 = vm.const.i64.zero
  %r6 = vm.call @hal.fence.create(%r0, %i6:7)
  %r7 = vm.call @io_parameters.load(%r0, %i2:3, %r1, %r6, %r2, %i2:3, %i4, %i5, %r3, %r4, %r5)
  %r8 = vm.list.get.ref %r7, %i0 : !hal.buffer
  vm.global.store.ref %r8, .refs[0] : !hal.buffer
  vm.return
}
vm.export @main
vm.func @main() -> (!hal.buffer_view) {
  %r8 = vm.global.load.ref .refs[0] : !hal.buffer
  %i6:7 = vm.const.i64.zero
  %i10:11 = vm.const.i64 16
  %i12:13 = vm.const.i64 4
  %i4 = vm.const.i32 0x21000020
  %i5 = vm.const.i32 1
  %r9 = vm.call.variadic @hal.buffer_view.create segments[65535, 65535, 65535, 65535, 65535, 1](%r8, %i6:7, %i10:11, %i4, %i5, %i12:13)
  vm.return %r9
}
"""
KEYED_CALLER = """#include "keyed.h"
#include <stdio.h>
int main(void) {
  static keyed_state s;
  static const float numbers[4] = {1, 2, 3, 4};
  keyed_parameters parameters = {0};
  float out[4] = {0};
  parameters.@ = numbers;
  printf("%d ", keyed_init(&s, NULL, 0, &parameters));
  printf("%d ", keyed_main(&s, out));
  printf("%g\\n", (double)out[3]);
  return 0;
}
"""


def check_parameter_names(checks, folder):
    """The fields for parameters have names that C and C++ accept, whatever the keys are."""
    for key, field in (("w", "w"), ("a.b", "a_b"), ("default", "default_"), ("class", "class_"), ("xor_eq", "xor_eq_"), ("NULL", "NULL_"), ("7", "m_7")):
        module = os.path.join(folder, "keyed.vmasm")
        vmrun.write(module, KEYED.replace("@LENGTH@", f"{len(key):02}").replace("@KEY@", key.encode().hex()))
        vmrun.succeeds("vm-cc", module, "-o", os.path.join(folder, "keyed"))
        vmrun.write(os.path.join(folder, "caller.c"), KEYED_CALLER.replace("@", field))
        for compiler in COMPILERS:
            done = subprocess.run([compiler, *STRICT, "-o", "caller", "caller.c", "keyed.c"], cwd=folder, capture_output=True, text=True)
            checks.check(f"a parameter with the key {key}: {compiler}", None if done.returncode == 0 else "messages", done)
        done = subprocess.run([os.path.join(folder, "caller")], capture_output=True, text=True)
        checks.check(f"a call with the parameter {key}", None if done.stdout == "0 0 4\n" else "another result", done)
        done = subprocess.run([COMPILERS[0], "-x", "c++", "-fsyntax-only", "-Wall", "-Werror", "keyed.h"], cwd=folder, capture_output=True, text=True)
        checks.check(f"a parameter with the key {key} in C++", None if done.returncode == 0 else "messages", done)


def check_split(checks, folder):
    """Programs in several files: planned and not, with more files than functions; native modules."""
    programs = [(os.path.join(vmrun.SOURCE, "examples", f"{name}.vmasm"), [], list(example_calls(text)))
                for name in ("fib", "host_loop", "elementwise_mul")
                for text in [vmrun.read_text(os.path.join(vmrun.SOURCE, "examples", f"{name}.vmasm"))]]
    fixtures = vmrun.fixtures()
    if fixtures:
        with open(os.path.join(fixtures, "compiled", "cases.json"), encoding="utf-8") as file:
            cases = json.load(file)
        for name in ("mlp.vmvx", "reductions.vmvx", "stateful.vmvx", "control_flow.vmvx", "mlp.vmvx-uk", "parameters.vmvx"):
            calls = [[case["function"], *(value.replace("@", f"@{fixtures}/compiled/") for value in case["inputs"])] for case in cases
                     if case["module"] == f"{name}.vmfb" and case["devices"] == ["local-sync"] and "error" not in case]
            files = [f"--parameters=model={fixtures}/compiled/weights.irpa"] if "parameters" in name else []
            programs.append((os.path.join(fixtures, "compiled", f"{name}.vmfb"), files, calls))
    number = 0
    for module, files, calls in programs:
        for flags in ([], ["--no-plan"]):
            number += 1
            split = (1, 2, 5)[number % 3]
            name = f"{os.path.basename(module)} {' '.join(flags)} in {split} files more"
            program = Program(folder, f"s{number}", module, f"--split={split}", *flags, *files)
            made = sorted(pathlib.Path(folder).glob(f"s{number}_[0-9].c"))
            checks.check(name, None if len(made) == split else f"there are {made}", program.done)
            wrong = program.compile(COMPILERS[number % len(COMPILERS)], "-O0")
            checks.check(f"{name}: compiles", wrong)
            if wrong is None:
                compare(checks, program, calls, "--device=local-sync", *files)
    module = os.path.join(vmrun.SOURCE, "examples", "elementwise_mul.vmasm")
    vmrun.succeeds("vm-cc", module, "--runtime=hal", "--split=2", "-o", os.path.join(folder, "native"))
    includes = [f"-I{os.path.join(vmrun.SOURCE, each, 'include')}" for each in ("vm", "base")]
    for compiler in COMPILERS:
        done = subprocess.run([compiler, *STRICT, "-O1", "-shared", "-fPIC", *includes, "-o", "native.so", "native.c", "native_1.c", "native_2.c"],
                              cwd=folder, capture_output=True, text=True)
        checks.check(f"{compiler} compiles a native module in three files", None if done.returncode == 0 else "messages", done)
        done = vmrun.run("vm-run", f"--module={os.path.join(folder, 'native.so')}", "--device=local-sync", "--function=mul", "--input=8xf32=1,2,3,4,5,6,7,8",
                         "--input=8xf32=2")
        checks.check(f"a native module in three files, {compiler}", None if "8xf32=2 4 6 8 10 12 14 16" in done.stdout else "another result", done)
    for split in ("0", "1000", "x"):
        done = vmrun.run("vm-cc", module, f"--split={split}", "-o", os.path.join(folder, "none"))
        checks.check(f"--split={split}", vmrun.why_bad_failure(done, "--split"), done)


def main(checks, folder):
    vmrun.need_tool("vm-cc")
    for check in (check_programs, check_sameness, check_words, check_functions_without_end, check_long_texts, check_imports, check_errors, check_flags_of_program, check_elements, check_patterns,
                  check_expectations, check_no_checks, check_static, check_arena, check_arena_sizes, check_export_names, check_given_parameters,
                  check_parameter_names, check_split, check_fixtures):
        inner = os.path.join(folder, check.__name__)
        os.makedirs(inner)
        check(checks, inner)
