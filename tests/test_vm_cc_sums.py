"""Generated products of matrices: vm-run, and the C of vm-cc, with rows of sums several at a time and without, print the same. Sizes are no
multiples, rows overlap, elements are NaNs whose bits count, loops have no turns, and what is stored is loaded again."""
import collections
import os
import random
import subprocess

import vmrun
from test_vm_cc import COMPILERS, STRICT
from test_vm_cc_kernels import Kernel, outcome

SEEDS = int(os.environ.get("HALYARD_SEEDS", "24"))
# What the C has where it computes rows of sums: several at a time, one at a time, and in strips that overlap.
FORMS = {"several rows": r"[VM_ROWS][", "strips": "_strip * ", "single rows": "_column] = ", "overlapping rows": "u - VM_ROWS", "sums in memory": " sum"}
# Rows at a time; without vectors, the C has no rows of sums.
VARIANTS = (["-DVM_ROWS=1u"], ["-DVM_ROWS=2u"], ["-DVM_ROWS=4u"], ["-U__SSE2__", "-U__ARM_NEON"])
INPUTS = ["--function=mul", "--input=8xi32=1,-2,3,100,-5,6,70000,8", "--input=8xi32=9,8,-7,6,5,-4,3,2"]


class Product(Kernel):
    """c[m][n] = f(c[m][n], a[m][k], b[k][n]) for all k, then something with c, then its elements as 8 numbers."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.lines, self.blocks, self.next_register, self.counters = [], 0, 70, []
        pick = self.random.choice
        self.rows = pick((2, 3, 4, 5, 6, 7, 8, 9))
        self.columns = pick((2, 3, 4, 5, 8, 15, 16, 17, 31, 32, 33, 40, 64, 70, 130, 140))
        self.terms = pick((2, 3, 5))
        # Programs with such loops are not planned.
        self.is_short = self.random.random() < 0.1
        if self.is_short:
            self.rows, self.columns, self.terms = (pick((n, 1, 1, 0)) for n in (self.rows, self.columns, self.terms))
        self.kind = pick(("i32", "f32", "f32", "i8", "select"))
        # Rows of c one after another; with bytes between them; overlapping.
        self.pitch = pick((self.columns, self.columns, self.columns, self.columns + 3, max(self.columns - 1, 0), 1, 0))
        self.first = pick((0, 0, 0, 1, 3))  # of the counters of columns
        self.form = pick(("store", "store", "loop", "memory", "memory"))
        self.ending = pick(("none", "none", "bias", "bias in place", "read back"))
        self.alias = self.random.random() < 0.15  # the elements of b are those of c
        self.size = self.rows * max(self.pitch, self.columns) + self.columns + self.first + 8
        self.say("%i9 = vm.const.i32.zero", "%i10 = vm.const.i32 1", "%i11 = vm.const.i32 2", "%i14:15 = vm.const.i64 8",
                 "%r3 = vm.list.get.ref %r2, %i9 : !vm.buffer", "%r4 = vm.list.get.ref %r2, %i10 : !vm.buffer",
                 "%r5 = vm.list.get.ref %r2, %i11 : !vm.buffer")
        for buffer, count in (("%r6", self.rows * max(self.terms, 1)), ("%r7", max(self.terms, 1) * (self.columns + self.first + 1)),
                              ("%r8", self.size), ("%r9", self.columns + self.first)):
            length = self.constant(4 * count)
            self.say(f"{buffer} = vm.buffer.alloc {length}, %i9")
            self.fill(buffer, count)
        self.product()
        self.checksum()
        self.say("vm.return")

    def pair(self):
        self.next_register += 2
        return f"%i{self.next_register - 2}:{self.next_register - 1}"

    def number(self):
        self.next_register += 2
        return f"%i{self.next_register - 2}"

    def i32(self, value):
        register = self.number()
        self.say(f"{register} = vm.const.i32 {value}")
        return register

    def fill(self, buffer, count):
        """Elements that differ, from the inputs."""
        factor, shift = self.random.randint(3, 1000) * 2 + 1, self.i32(self.random.choice((3, 20, 25)))
        special = self.random.choice((0x7F800001, 0x7FC12345, -0x3FFFFF, -0x800000, -0x80000000))

        def element():
            counter = self.counters[-1][0]
            at, turn, value, test = self.pair(), self.number(), self.number(), self.number()
            self.say(f"{at} = vm.rem.i64.u {counter}, %i14:15", f"{value} = vm.buffer.load.i32 %r3, {at}",
                     f"{turn} = vm.trunc.i64.i32 {counter}", f"{turn} = vm.mul.i32 {turn}, {self.i32(factor)}",
                     f"{value} = vm.add.i32 {value}, {turn}")
            if self.kind != "i32":
                self.say(f"{value} = vm.shl.i32 {value}, {shift}", f"{value} = vm.shr.i32.s {value}, {shift}")
            if self.kind in ("f32", "select"):
                self.say(f"{value} = vm.cast.si32.f32 {value}")
                if self.kind == "select" or special == -0x800000:
                    self.say(f"{test} = vm.rem.i32.u {turn}, {self.i32(7)}", f"{test} = vm.cmp.nz.i32 {test}",
                             f"{value} = vm.select.i32 {test} ? {value} : {self.i32(special)}")
            self.say(f"vm.buffer.store.i32 {value}, {buffer}, {counter}")
        self.loop(0, count, 1, element)

    def add(self, total, a, b):
        """total = f(total, a, b)"""
        if self.kind == "f32":
            self.say(f"{a} = vm.mul.f32 {a}, {b}", f"{total} = vm.add.f32 {a}, {total}")
        elif self.kind == "select":
            test = self.number()
            self.say(f"{test} = vm.cmp.lt.f32.o {total}, {a}", f"{total} = vm.select.f32 {test} ? {b} : {total}")
        else:
            if self.kind == "i8":
                self.say(f"{a} = vm.ext.i8.i32.s {a}", f"{b} = vm.ext.i8.i32.s {b}")
            self.say(f"{a} = vm.mul.i32 {a}, {b}", f"{total} = vm.add.i32 {a}, {total}")

    def load(self, register, buffer, at):
        self.say(f"{register} = vm.buffer.load.{'f32' if self.kind in ('f32', 'select') else 'i32'} {buffer}, {at}")

    def store(self, register, buffer, at):
        self.say(f"vm.buffer.store.{'f32' if self.kind in ('f32', 'select') else 'i32'} {register}, {buffer}, {at}")

    def product(self):
        pitch, width, terms, begin = (self.constant(n) for n in (self.pitch, self.columns, self.terms, self.random.choice((0, 0, 2))))
        zero = self.number()
        self.say(f"{zero} = vm.const.f32.zero" if self.kind in ("f32", "select") else f"{zero} = vm.const.i32.zero")
        low, high = self.first, self.first + self.columns

        def place(row, column):
            at = self.pair()
            self.say(f"{at} = vm.mul.i64 {row}, {pitch}", f"{at} = vm.add.i64 {at}, {column}", f"{at} = vm.add.i64 {at}, {begin}")
            return at

        def over(body):
            self.loop(0, self.rows, 1, lambda: self.loop(low, high, 1, lambda: body(self.counters[-2][0], self.counters[-1][0])))

        def sums(row, column):
            at = place(row, column)
            if self.form == "store":
                self.store(zero, "%r8", at)

            def term():
                k, a_at, b_at, a, b, total = self.counters[-1][0], self.pair(), self.pair(), self.number(), self.number(), self.number()
                self.say(f"{a_at} = vm.mul.i64 {row}, {terms}", f"{a_at} = vm.add.i64 {a_at}, {k}",
                         f"{b_at} = vm.mul.i64 {k}, {width}", f"{b_at} = vm.add.i64 {b_at}, {column}")
                self.load(a, "%r6", a_at)
                self.load(b, "%r8" if self.alias else "%r7", b_at)
                self.load(total, "%r8", at)
                self.add(total, a, b)
                self.store(total, "%r8", at)
            self.loop(0, self.terms, 1, term)

        def ending(row, column):
            at, value, bias, bias_at = place(row, column), self.number(), self.number(), self.pair()
            self.load(value, "%r8", at)
            self.say(f"{bias_at} = vm.sub.i64 {column}, {self.constant(low)}")
            self.load(bias, "%r9", bias_at)
            self.add(value, bias, bias)
            if self.ending == "bias":
                self.store(value, "%r9", bias_at)
            else:
                self.store(value, "%r8", at)
            if self.ending == "read back":
                before = self.pair()
                self.say(f"{before} = vm.rem.i64.u {column}, %i14:15")
                self.load(value, "%r8", before)
                self.store(value, "%r8", at)

        if self.form == "loop":
            over(lambda row, column: self.store(zero, "%r8", place(row, column)))
        over(sums)
        if self.ending != "none":
            over(ending)

    def checksum(self):
        """NaNs that arithmetic gives count as one number."""
        def element(buffer):
            counter, at, value, total, nan, test = (self.counters[-1][0], self.pair(), self.number(), self.number(), self.number(), self.number())
            self.say(f"{at} = vm.rem.i64.u {counter}, %i14:15", f"{value} = vm.buffer.load.i32 {buffer}, {counter}")
            if self.kind == "f32":
                self.say(f"{nan} = vm.buffer.load.f32 {buffer}, {counter}", f"{test} = vm.cmp.nan.f32 {nan}",
                         f"{value} = vm.select.i32 {test} ? %i11 : {value}")
            self.say(f"{total} = vm.buffer.load.i32 %r5, {at}", f"{total} = vm.mul.i32 {total}, {self.i32(31)}",
                     f"{total} = vm.xor.i32 {total}, {value}", f"vm.buffer.store.i32 {total}, %r5, {at}")
        self.loop(0, 8, 1, lambda: self.say(f"vm.buffer.store.i32 %i9, %r5, {self.counters[-1][0]}"))
        for buffer, count in (("%r8", self.size), ("%r9", self.columns)):
            self.loop(0, count, 1, lambda buffer=buffer: element(buffer))


def program(seed):
    """The example with such a kernel, over i32."""
    text = vmrun.read_text(os.path.join(vmrun.SOURCE, "examples", "elementwise_mul.vmasm"))
    begin = text.index("    %i9 = vm.const.i32.zero\n    %i10 = vm.const.i32 1\n    %i11")
    end = text.index("  }\n}\n\n// Ref globals")
    return (text[:begin] + "\n".join(Product(seed).lines) + "\n" + text[end:]).replace("0x21000020", "0x10000020").replace("f32>", "i32>")


def main(checks, folder):
    vmrun.need_tool("vm-cc")
    found_forms = collections.Counter(dict.fromkeys(FORMS, 0))
    planned = 0
    for seed in range(SEEDS):
        module, prefix = os.path.join(folder, f"m{seed}.vmasm"), os.path.join(folder, f"p{seed}")
        vmrun.write(module, program(seed))
        expected = outcome(vmrun.run("vm-run", f"--module={module}", "--device=local-sync", *INPUTS))
        checks.check(f"seed {seed} runs", None if "8xi32" in expected else expected)
        made = vmrun.succeeds("vm-cc", module, "--main", "-o", prefix, "--report")
        planned += "none at run time" in made.stdout
        text = vmrun.read_text(prefix + ".c")
        for form, pattern in FORMS.items():
            found_forms[form] += pattern in text
        compiler = COMPILERS[seed % len(COMPILERS)]
        for variant in VARIANTS:
            done = subprocess.run([compiler, *STRICT, "-O2", "-fsanitize=undefined", "-fno-sanitize-recover", *variant, "-DVM_ARENA_BYTES=1048576",
                                   "-o", prefix, prefix + ".c", prefix + "_main.c", "-lm"], capture_output=True, text=True)
            checks.check(f"seed {seed} {variant}: {compiler}", None if done.returncode == 0 else done.stderr[:1500])
            if done.returncode == 0:
                found = outcome(subprocess.run([prefix, *INPUTS], capture_output=True, text=True, timeout=900))
                checks.check(f"seed {seed} {variant}", None if found == expected else f"expected {expected!r}, found {found!r}")
    print(f"{planned} of {SEEDS} programs are planned; {', '.join(f'{count} {form}' for form, count in found_forms.items())}")
    for form, count in found_forms.items():
        checks.check(f"some programs have {form}", None if count else "none")
    checks.check("most programs are planned", None if planned * 10 >= SEEDS * 8 else f"{planned} of {SEEDS}")
