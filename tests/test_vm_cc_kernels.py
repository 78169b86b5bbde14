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


# f runs @COUNT@ workgroups of a kernel over its argument, %r3, and its result, %r4, which begins with zeros.
DISPATCH = """vm.module @m
vm.dependency @hal_inline 0
vm.dependency @hal_loader 0
vm.import @hal_inline.buffer.allocate cconv "0iI_rr"
vm.import @hal_inline.buffer.storage cconv "0r_r"
vm.import @hal_inline.buffer_view.create cconv "0rIIiiCID_r"
vm.import @hal_inline.buffer_view.assert cconv "0rriiCID_v"
vm.import @hal_inline.buffer_view.buffer cconv "0r_r"
vm.import @hal_loader.executable.query_support cconv "0r_i"
vm.import @hal_loader.executable.load cconv "0rrr_r"
vm.import @hal_loader.executable.dispatch cconv "0riiiiCiDCrIID_v"
vm.rodata[0] = "vmvx-bytecode-fb"
vm.rodata[1] = "input0"
vm.rodata[2] = module {
  vm.module @kernels
  vm.export @k
  vm.attr @k "binding_count" "2"
  vm.attr @k "constant_count" "1"
  vm.func @k(%r0: !vm.buffer, %r1: !vm.buffer, %r2: !vm.list<!vm.buffer>, %i0: i32, %i1: i32, %i2: i32, %i3: i32, %i4: i32, %i5: i32, %i6: i32, %i7: i32, %i8: i32) -> () {
    %i9 = vm.const.i32.zero
    %i10 = vm.const.i32 1
    %i12:13 = vm.const.i64.zero
    %r3 = vm.list.get.ref %r2, %i9 : !vm.buffer
    %r4 = vm.list.get.ref %r2, %i10 : !vm.buffer
@BODY@  }
}
vm.export @__init
vm.func @__init() -> () {
  %r0 = vm.const.ref.rodata 0
  %r1 = vm.const.ref.rodata 2
  %r2 = vm.const.ref.zero
  %r3 = vm.call @hal_loader.executable.load(%r0, %r1, %r2)
  vm.global.store.ref %R3, .refs[0] : !hal.executable
  vm.return
}
vm.export @f
vm.func @f(%r0: !hal.buffer_view, %i0: i32) -> (!hal.buffer_view) {
  %i1 = vm.const.i32 1
  %i2 = vm.const.i32 0x10000020
  %i3 = vm.const.i32 @COUNT@
  %i4:5 = vm.const.i64 8
  %i6:7 = vm.const.i64 32
  %i8:9 = vm.const.i64.zero
  %i10 = vm.const.i32 64
  %i11 = vm.const.i32.zero
  %r1 = vm.global.load.ref .refs[0] : !hal.executable
  %r2 = vm.const.ref.rodata 1
  vm.call.variadic @hal_inline.buffer_view.assert segments[65535, 65535, 65535, 65535, 1](%r0, %r2, %i2, %i1, %i4:5)
  %r2 = vm.call @hal_inline.buffer_view.buffer(%r0)
  %r3 = vm.call @hal_inline.buffer.storage(%r2)
  %r4, %r5 = vm.call @hal_inline.buffer.allocate(%i10, %i6:7)
  vm.buffer.fill.i8 %r5, %i8:9, %i6:7, %i11
  vm.call.variadic @hal_loader.executable.dispatch segments[65535, 65535, 65535, 65535, 65535, 1, 2](%r1, %i11, %i3, %i1, %i1, %i0, %r3, %i8:9, %i6:7, %r5, %i8:9, %i6:7)
  %r6 = vm.call.variadic @hal_inline.buffer_view.create segments[65535, 65535, 65535, 65535, 65535, 1](%r4, %i8:9, %i6:7, %i2, %i1, %i4:5)
  vm.return %R6
}
"""
OPERATIONS = [f"{name}.{{}}{end}" for name, ends in (("cmp.lt", (".s", ".u")), ("cmp.eq", ("",)), ("cmp.ne", ("",)), ("min", (".s", ".u")),
                                                     ("max", (".s", ".u"))) for end in ends]


def decided():
    """A kernel with comparisons, minima and maxima of which operands or types decide some: numbers at the ends of the types, a number
    and itself, and numbers of 32 bits as numbers of 64."""
    lines = ["%i20 = vm.const.i32 -1", "%i21 = vm.const.i32 0x80000000", "%i22 = vm.const.i32 0x7FFFFFFF", "%i24:25 = vm.const.i64 -1",
             "%i26:27 = vm.const.i64 -9223372036854775808", "%i28:29 = vm.const.i64 0x1FFFFFFFF", "%i30:31 = vm.const.i64 8", "%i32 = vm.const.i32 31",
             "%i34:35 = vm.const.i64 1", "%i36:37 = vm.const.i64.zero", "vm.br ^bb1", "^bb1:", "%i38 = vm.cmp.lt.i64.s %i36:37, %i30:31",
             "vm.cond_br %i38, ^bb2, ^bb3", "^bb2:", "%i40 = vm.buffer.load.i32 %r3, %i36:37", "%i41 = vm.const.i32.zero",
             "%i42:43 = vm.ext.i32.i64.u %i40", "%i44:45 = vm.mul.i64 %i42:43, %i28:29"]
    for bank, numbers, edges in (("i32", ("%i40",), ("%i9", "%i20", "%i21", "%i22")),
                                 ("i64", ("%i36:37", "%i42:43", "%i44:45"), ("%i12:13", "%i24:25", "%i26:27", "%i28:29"))):
        for number in numbers:
            for a, b in [(number, number), *((number, edge) for edge in edges), *((edge, number) for edge in edges)]:
                for operation in OPERATIONS:
                    is_wide = bank == "i64" and not operation.startswith("cmp")
                    lines += [f"{'%i46:47' if is_wide else '%i46'} = vm.{operation.format(bank)} {a}, {b}"]
                    if is_wide:
                        lines += ["%i48:49 = vm.shr.i64.u %i46:47, %i32", "%i46 = vm.trunc.i64.i32 %i46:47", "%i48 = vm.trunc.i64.i32 %i48:49",
                                  "%i46 = vm.xor.i32 %i46, %i48"]
                    lines += ["%i41 = vm.mul.i32 %i41, %i32", "%i41 = vm.add.i32 %i41, %i46"]
    lines += ["vm.buffer.store.i32 %i41, %r4, %i36:37", "%i36:37 = vm.add.i64 %i36:37, %i34:35", "vm.br ^bb1", "^bb3:", "vm.return"]
    return "".join(f"    {line}\n" for line in lines)


def check_planned(checks, folder, name, text):
    """The program is planned, compiles without a warning, and prints what vm-run does."""
    module, prefix = os.path.join(folder, name + ".vmasm"), os.path.join(folder, name)
    vmrun.write(module, text)
    inputs = ["--function=f", "--input=8xi32=0,1,-1,2147483647,-2147483648,-2147483647,65536,-8", "--input=3"]
    expected = vmrun.succeeds("vm-run", f"--module={module}", *inputs).stdout
    made = vmrun.succeeds("vm-cc", module, "--main", "-o", prefix, "--report")
    checks.check(f"{name} is planned", None if "none at run time" in made.stdout else "it is not", made)
    for compiler in COMPILERS:
        done = subprocess.run([compiler, *STRICT, "-O1", "-o", prefix, prefix + ".c", prefix + "_main.c", "-lm"], capture_output=True, text=True)
        checks.check(f"{name}: {compiler}", None if done.returncode == 0 else done.stderr[:1500])
        if done.returncode == 0:
            found = subprocess.run([prefix, *inputs], capture_output=True, text=True, timeout=900)
            checks.check(f"{name}: results of {compiler}", None if found.stdout == expected else f"expected {expected!r}", found)


def check_known(checks, folder):
    """Comparisons that are known when the C is written, and dispatches of no workgroup, leave nothing that compilers warn about."""
    check_planned(checks, folder, "decided", DISPATCH.replace("@COUNT@", "1").replace("@BODY@", decided()))
    store = "    vm.buffer.store.i32 %i10, %r4, %i12:13\n    vm.return\n"
    for count in (0, 1, 2):
        check_planned(checks, folder, f"workgroups{count}", DISPATCH.replace("@COUNT@", str(count)).replace("@BODY@", store))


def main(checks, folder):
    vmrun.need_tool("vm-cc")
    check_known(checks, folder)
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
