"""vm-cc: what it writes compiles without a warning, runs as vm-run does, and is the same each time; what it cannot write is
refused. The programs are the examples, those of vm/tests/text_programs_test.cpp, and the shared fixtures that need no device."""
import json
import os
import pathlib
import re
import shutil
import subprocess

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
        self.program = os.path.join(self.folder, f"{self.name}.{compiler}")
        done = subprocess.run([compiler, *STRICT, *options, "-o", self.program, *sources, "-lm"], capture_output=True, text=True,
                              timeout=300)
        return None if done.returncode == 0 else done.stderr[:2000]

    def run(self, *flags):
        return subprocess.run([self.program, *flags], capture_output=True, text=True, timeout=60)


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
    fails("a folder that is missing", vmrun.run("vm-cc", fib, f"--output={folder}/no/out"), "no/out")
    for name, text, *parts in (
            ("an import with objects", 'vm.import @box.open cconv "0r_v"\nvm.export @f\nvm.func @f(%i0: i32) -> () {\n'
             "  %r0 = vm.const.ref.zero\n  vm.call @box.open(%r0)\n  vm.return\n}\n", "UNIMPLEMENTED", "'box.open' (0r_v)", "only numbers"),
            ("a function with objects", "vm.export @f\nvm.func @f(%r0: !vm.buffer) -> () {\n  vm.return\n}\n", "UNIMPLEMENTED",
             "'f' (0r_v)", "objects"),
            ("an import of hal that is not there", 'vm.import @hal.channel.rank_and_count cconv "0r_ii"\nvm.export @f\nvm.func @f() -> () {\n'
             "  %r0 = vm.const.ref.zero\n  %i0, %i1 = vm.call @hal.channel.rank_and_count(%r0)\n  vm.return\n}\n", "UNIMPLEMENTED",
             "'hal.channel.rank_and_count' (0r_ii)", "docs/vm-cc.md"),
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


def main(checks, folder):
    vmrun.need_tool("vm-cc")
    for check in (check_programs, check_sameness, check_words, check_imports, check_errors, check_flags_of_program, check_fixtures):
        inner = os.path.join(folder, check.__name__)
        os.makedirs(inner)
        check(checks, inner)
