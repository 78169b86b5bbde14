"""Programs whose one kernel computes functions of f32, made from examples/elementwise_mul.vmasm: arguments and result are SIZE numbers."""
import microkernel_programs

UNARY = ("atan", "cos", "sin", "exp", "exp2", "expm1", "log", "log10", "log1p", "log2", "tanh", "erf")
BINARY = ("rem", "atan2", "pow")

LOOP = """
    %i12:13 = vm.const.i64.zero
    %i14:15 = vm.const.i64 1
    %i16:17 = vm.const.i64 SIZE
    %i24 = vm.const.f32 0.25
    vm.br ^bb1
  ^bb1:
    %i20 = vm.buffer.load.f32 %r3, %i12:13
    %i21 = vm.buffer.load.f32 %r4, %i12:13
BODY
    vm.buffer.store.f32 %i22, %r5, %i12:13
    %i12:13 = vm.add.i64 %i12:13, %i14:15
    %i18 = vm.cmp.lt.i64.s %i12:13, %i16:17
    vm.cond_br %i18, ^bb1, ^bb2
  ^bb2:
"""


def program(body):
    """`body` computes %i22 from %i20 and %i21."""
    end = "    vm.discard.refs %r0, %r1, %r2, %r3"
    loop = LOOP.strip("\n").replace("SIZE", str(microkernel_programs.SIZE)).replace("BODY", body) + "\n"
    return microkernel_programs.text([], begins_as_copy=False).replace(end, loop + end, 1)


def of(name):
    return program(f"    %i22 = vm.{name}.f32 %i20" + (", %i21" if name in BINARY else ""))


def sum_of_all():
    """Of arguments without NaNs, whose bits differ from processor to processor: logarithms and powers are those of |x| + 1/4."""
    lines = ["    %i23 = vm.abs.f32 %i20", "    %i23 = vm.add.f32 %i23, %i24", "    %i22 = vm.mul.f32 %i20, %i21"]
    for name in UNARY + BINARY:
        x = "%i23" if name.startswith("log") or name == "pow" else "%i20"
        lines.append(f"    %i25 = vm.{name}.f32 {x}" + (", %i21" if name in BINARY else ""))
        lines.append("    %i22 = vm.add.f32 %i22, %i25")
    return program("\n".join(lines))
