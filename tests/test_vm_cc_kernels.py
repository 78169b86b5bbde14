"""Generated kernels: vm-run, and the C of vm-cc with and without a plan, print the same. Registers hold what earlier statements left in
them, loops are fused where they may be, and some indices are out of bounds, so a wrong range, merge or fusion shows."""
import collections
import os
import random
import re
import subprocess

import vmrun
from test_vm_cc import COMPILERS, STRICT, failure

SEEDS = int(os.environ.get("HALYARD_SEEDS", "20"))
NUMBERS = [f"%i{n}" for n in range(40, 46)]  # i32
# What the C of kernels has where their loops were given another form.
FORMS = {"kept elements": r"\blast\d+ = ", "strips": r"for \(uint32_t w0 = 0u;"}
INDICES = [f"%i{n}:{n + 1}" for n in range(50, 60, 2)]  # i64


class Kernel:
    """The text of one kernel over three buffers of 8 i32, %r3 to %r5, and one of its own, %r6."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.lines, self.blocks, self.next_register = [], 0, 70
        self.counters = []  # of the loops around: register pair, largest value
        self.say("%i9 = vm.const.i32.zero", "%i10 = vm.const.i32 1", "%i11 = vm.const.i32 2", "%i12:13 = vm.const.i64.zero",
                 "%i14:15 = vm.const.i64 8", "%i16:17 = vm.const.i64 32",
                 "%r3 = vm.list.get.ref %r2, %i9 : !vm.buffer", "%r4 = vm.list.get.ref %r2, %i10 : !vm.buffer",
                 "%r5 = vm.list.get.ref %r2, %i11 : !vm.buffer")
        if self.random.random() < 0.2:
            self.strips()
            self.say("vm.return")
            return
        self.say("%r6 = vm.buffer.alloc %i16:17, %i9", "vm.buffer.fill.i32 %r5, %i12:13, %i14:15, %i10")
        for form, probability in ((self.two_dimensions, 0.4), (self.recurrence, 0.7)):
            if self.random.random() < probability:
                form()
        if self.random.random() < 0.5:
            # Loops of one shape, one after another, over one buffer: those that fusion takes.
            bound = self.random.choice((4, 8))
            for _ in range(self.random.randint(2, 3)):
                self.loop(0, bound, 1, lambda: self.same_element(bound))
        self.statements(3, 4)
        self.say("vm.return")

    def say(self, *lines):
        self.lines += ["    " + line for line in lines]

    def block(self):
        self.blocks += 1
        return f"^bb{self.blocks}"

    def label(self, name):
        self.lines.append(f"  {name}:")

    def constant(self, value):
        register = f"%i{self.next_register}:{self.next_register + 1}"
        self.next_register += 2
        self.say(f"{register} = vm.const.i64 {value}")
        return register

    def same_element(self, bound):
        counter = self.counters[-1][0]
        at = self.random.choice(INDICES)
        self.say(f"{at} = vm.add.i64 {counter}, {self.constant(self.random.choice((0, 0, 8 - bound)))}")
        for _ in range(self.random.randint(1, 3)):
            self.memory(self.random.choice(("%r3", "%r5", "%r6", "%r6")), at)
            self.arithmetic()

    def memory(self, buffer, at):
        number = self.random.choice(NUMBERS)
        if self.random.random() < 0.5:
            self.say(f"{number} = vm.buffer.load.i32 {buffer}, {at}")
        else:
            self.say(f"vm.buffer.store.i32 {number}, {'%r5' if buffer == '%r3' else buffer}, {at}")

    def arithmetic(self):
        a, b, c = (self.random.choice(NUMBERS) for _ in range(3))
        op = self.random.choice(("add", "sub", "mul", "and", "xor", "select", "trunc", "min", "shr", "rem"))
        if op == "select":
            self.say(f"{c} = vm.cmp.lt.i32.s {a}, {b}", f"{a} = vm.select.i32 {c} ? {a} : {b}")
        elif op == "trunc":
            self.say(f"{c} = vm.ext.i8.i32.s {a}")
        elif op == "min":
            self.say(f"{c} = vm.min.i32.s {a}, {b}")
        elif op == "shr":
            self.say(f"{c} = vm.shr.i32.s {a}, %i11")
        elif op == "rem":
            self.say(f"{c} = vm.rem.i32.s {a}, %i11")
        else:
            self.say(f"{c} = vm.{op}.i32 {a}, {b}")

    def index(self):
        """A new index: mostly within 8 elements."""
        at = self.random.choice(INDICES)
        way = self.random.random()
        if self.counters and way < 0.6:
            counter, most = self.random.choice(self.counters)
            if most <= 7 and way < 0.4:
                self.say(f"{at} = vm.add.i64 {counter}, {self.constant(self.random.randint(0, 7 - most))}")
            else:
                self.say(f"{at} = vm.mul.i64 {counter}, {self.constant(self.random.randint(1, 3))}", f"{at} = vm.rem.i64.u {at}, %i14:15")
        elif way < 0.62:
            self.say(f"{at} = vm.const.i64 {self.random.choice((7, 8, -1))}")  # often out of bounds
        elif way < 0.8:
            number = self.random.choice(NUMBERS)
            self.say(f"{at} = vm.ext.i32.i64.u {number}", f"{at} = vm.rem.i64.u {at}, %i14:15")
        else:
            self.say(f"{at} = vm.const.i64 {self.random.randint(0, 7)}")
        return at

    def loop(self, low, high, step, body):
        counter = f"%i{self.next_register}:{self.next_register + 1}"
        test = f"%i{self.next_register + 2}"
        self.next_register += 4
        bound, by = self.constant(high), self.constant(step)
        head, inside, after = self.block(), self.block(), self.block()
        self.say(f"{counter} = vm.const.i64 {low}", f"vm.br {head}")
        self.label(head)
        self.say(f"{test} = vm.cmp.lt.i64.s {counter}, {bound}", f"vm.cond_br {test}, {inside}, {after}")
        self.label(inside)
        self.counters.append((counter, low + (max(high - low, 1) - 1) // step * step))
        body()
        self.counters.pop()
        self.say(f"{counter} = vm.add.i64 {counter}, {by}", f"vm.br {head}")
        self.label(after)

    def two_dimensions(self):
        """A loop whose counter is a row and a column; the first column may have statements of its own."""
        columns = self.random.choice((2, 4))

        def body():
            counter = self.counters.pop()[0]
            row, column = (f"%i{self.next_register + n}:{self.next_register + n + 1}" for n in (0, 2))
            self.next_register += 4
            by = self.constant(columns)
            self.say(f"{row} = vm.div.i64.u {counter}, {by}", f"{column} = vm.rem.i64.u {counter}, {by}")
            self.counters += [(row, 8 // columns - 1), (column, columns - 1)]
            if self.random.random() < 0.2:
                self.counters.append((counter, 7))
            at = self.random.choice(INDICES)
            self.say(f"{at} = vm.mul.i64 {row}, {by}", f"{at} = vm.add.i64 {at}, {column}")
            self.memory("%r6", at)
            if self.random.random() < 0.5:
                self.choice(f"{self.random.choice(('eq', 'ne'))}.i64 {column}, {self.constant(self.random.choice((0, 0, 1)))}",
                            lambda: self.statements(0, 2), lambda: self.previous(column, "%r6", 1))
            else:
                self.statements(1, 2)
            del self.counters[-2:]
            if len(self.counters) > 0 and self.counters[-1][0] == row:
                self.counters.pop()
            self.counters.append((counter, 7))
        self.loop(0, 8, 1, body)

    def previous(self, counter, buffer, distance, float_type=False):
        """The element before the counter's one, in arithmetic, and to the counter's one."""
        at, number = self.random.choice(INDICES), "%i62"
        kind = "f32" if float_type else "i32"
        self.say(f"{at} = vm.sub.i64 {counter}, {self.constant(distance)}", f"{number} = vm.buffer.load.{kind} {buffer}, {at}")
        if self.random.random() < 0.8:
            self.say(f"%i63 = vm.buffer.load.i32 {self.random.choice(('%r3', '%r3', buffer))}, {counter}")
        else:
            self.say(f"%i63 = vm.trunc.i64.i32 {counter}")
        if float_type:
            self.say("%i63 = vm.cast.si32.f32 %i63")
        self.say(f"%i62 = vm.add.{kind} %i62, %i63", f"vm.buffer.store.{kind} %i62, {buffer}, {counter}")
        if self.random.random() < 0.2:
            self.say(f"%i63 = vm.buffer.load.i32 {buffer}, {at}", f"vm.buffer.store.i32 %i63, {buffer}, {counter}")

    def recurrence(self):
        """Each turn loads what the one before stored, or one before that."""
        buffer, distance, floats = self.random.choice(("%r5", "%r6")), self.random.choice((1, 1, 1, 2)), self.random.random() < 0.5
        self.loop(distance, 8, 1, lambda: self.previous(self.counters[-1][0], buffer, distance, floats))

    def strips(self):
        """Two workgroups compute strips of rows of 4 elements, or other elements, or the same ones."""
        width = self.random.choice((2, 2, 2, 1))
        begin = f"%i{self.next_register}:{self.next_register + 1}"
        self.next_register += 2
        self.say(f"{begin} = vm.ext.i32.i64.u %i0", f"{begin} = vm.mul.i64 {begin}, {self.constant(width)}")

        def row():
            at = f"%i{self.next_register}:{self.next_register + 1}"
            self.next_register += 2
            row_counter = self.counters[-1][0]
            self.say(f"{at} = vm.mul.i64 {row_counter}, {self.constant(self.random.choice((4, 4, 4, 2)))}",
                     f"{at} = vm.add.i64 {at}, {begin}")

            def element():
                index = self.random.choice(INDICES)
                self.say(f"{index} = vm.add.i64 {at}, {self.counters[-1][0]}")
                self.say(f"%i62 = vm.buffer.load.i32 {self.random.choice(('%r3', '%r4', '%r5') if self.random.random() < 0.2 else ('%r3',))}, {index}")
                self.arithmetic()
                self.say(f"%i62 = vm.add.i32 %i62, {self.random.choice(NUMBERS)}", f"vm.buffer.store.i32 %i62, %r5, {index}")
            self.loop(0, 2, 1, element)
        self.loop(0, 2, 1, row)

    def choice(self, condition, then, otherwise):
        yes, no, after = self.block(), self.block(), self.block()
        self.say(f"%i60 = vm.cmp.{condition}", f"vm.cond_br %i60, {yes}, {no}")
        self.label(yes)
        then()
        self.say(f"vm.br {after}")
        self.label(no)
        otherwise()
        self.say(f"vm.br {after}")
        self.label(after)

    def statements(self, depth, count):
        for _ in range(self.random.randint(1, count)):
            kind = self.random.random()
            if kind < 0.3:
                self.arithmetic()
            elif kind < 0.65 or depth == 0:
                self.memory(self.random.choice(("%r3", "%r4", "%r5", "%r6")), self.index())
            elif kind < 0.85:
                self.loop(self.random.choice((0, 0, 1)), self.random.choice((0, 1, 3, 5, 8)), self.random.choice((1, 1, 2, 3)),
                          lambda: self.statements(depth - 1, count))
            else:
                self.choice(f"lt.i32.s {self.random.choice(NUMBERS)}, {self.random.choice(NUMBERS)}", lambda: self.statements(depth - 1, 2),
                            lambda: self.statements(depth - 1, 2) if self.random.random() < 0.5 else None)


def program(seed):
    """The example with another kernel, over i32."""
    text = vmrun.read_text(os.path.join(vmrun.SOURCE, "examples", "elementwise_mul.vmasm"))
    begin = text.index("    %i9 = vm.const.i32.zero\n    %i10 = vm.const.i32 1\n    %i11")
    end = text.index("  }\n}\n\n// Ref globals")
    return (text[:begin] + "\n".join(Kernel(seed).lines) + "\n" + text[end:]).replace("0x21000020", "0x10000020").replace("f32>", "i32>")


def outcome(done):
    return done.stdout if done.returncode == 0 else re.sub(r"^.*?: ", "", failure(done.stderr)).split(";")[0]


def main(checks, folder):
    vmrun.need_tool("vm-cc")
    inputs = ["--function=mul", "--input=8xi32=1,-2,3,100,-5,6,70000,8", "--input=8xi32=9,8,-7,6,5,-4,3,2"]
    planned = 0
    found_forms = collections.Counter(dict.fromkeys(FORMS, 0))
    for seed in range(SEEDS):
        module = os.path.join(folder, f"m{seed}.vmasm")
        vmrun.write(module, program(seed))
        expected = outcome(vmrun.run("vm-run", f"--module={module}", "--device=local-sync", *inputs))
        for plan in ("--report", "--no-plan"):
            prefix = os.path.join(folder, f"p{seed}")
            made = vmrun.succeeds("vm-cc", module, "--main", "-o", prefix, plan)
            planned += "none at run time" in made.stdout
            compiler = COMPILERS[seed % len(COMPILERS)]
            done = subprocess.run([compiler, *STRICT, "-O1", "-DVM_ARENA_BYTES=1048576", "-o", prefix, prefix + ".c", prefix + "_main.c", "-lm"],
                                  capture_output=True, text=True)
            checks.check(f"seed {seed} {plan}: {compiler}", None if done.returncode == 0 else done.stderr[:1500])
            if done.returncode == 0:
                found = outcome(subprocess.run([prefix, *inputs], capture_output=True, text=True, timeout=900))
                checks.check(f"seed {seed} {plan}", None if found == expected else f"expected {expected!r}, found {found!r}")
            if plan == "--report" and done.returncode == 0:
                text = vmrun.read_text(prefix + ".c")
                for form, pattern in FORMS.items():
                    found_forms[form] += re.search(pattern, text) is not None
    print(f"{planned} of {SEEDS} programs are planned; {', '.join(f'{count} {form}' for form, count in found_forms.items())}")
    for form, count in found_forms.items():
        checks.check(f"some programs have {form}", None if count else "none")
    checks.check("most programs are planned", None if planned * 2 >= SEEDS else f"{planned} of {SEEDS}")
