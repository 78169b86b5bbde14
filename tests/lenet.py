"""LeNet-5 in the machine's text form, with kernels and host code as iree-compile writes them: two convolutions of 5 x 5 with ReLU, each
with a pool of 2 x 2, and three dense layers, for an image of 28 x 28. Weights are random numbers.

usage: tests/lenet.py FILE.vmasm
"""
import random
import struct
import sys

IMAGE = 28
CLASSES = 10


class Layer:
    """A kernel over the buffers `input`, `output` and the weights; sizes are (rows, columns, channels)."""

    def __init__(self, name, kind, before, after, window=1):
        self.name, self.kind, self.before, self.after, self.window = name, kind, before, after, window

    def weight_count(self):
        """Without those of the bias."""
        if self.kind == "conv":
            return self.window ** 2 * self.before[2] * self.after[2]
        return self.before[0] * self.before[1] * self.before[2] * self.after[2] if self.kind == "dense" else 0


LAYERS = [
    Layer("pad_28x28x1", "pad", (28, 28, 1), (32, 32, 1), 2),
    Layer("conv_28x28x6x5x5x1", "conv", (32, 32, 1), (28, 28, 6), 5),
    Layer("pool_14x14x6x2x2", "pool", (28, 28, 6), (14, 14, 6), 2),
    Layer("conv_10x10x16x5x5x6", "conv", (14, 14, 6), (10, 10, 16), 5),
    Layer("pool_5x5x16x2x2", "pool", (10, 10, 16), (5, 5, 16), 2),
    Layer("matmul_1x120x400", "dense", (5, 5, 16), (1, 1, 120)),
    Layer("matmul_1x84x120", "dense", (1, 1, 120), (1, 1, 84)),
    Layer("matmul_1x10x84", "dense", (1, 1, 84), (1, 1, CLASSES)),
]


def count(size):
    return size[0] * size[1] * size[2]


def weights():
    """For each layer its weights and its bias, rounded to f32."""
    chance = random.Random(5)

    def numbers(amount, scale):
        return [struct.unpack("<f", struct.pack("<f", chance.gauss(0, scale)))[0] for _ in range(amount)]
    return [(numbers(layer.weight_count(), (layer.after[2] / layer.weight_count()) ** 0.5), numbers(layer.after[2], 0.1))
            if layer.weight_count() else ([], []) for layer in LAYERS]


def reference(image):
    """The ten results, computed in f64."""
    values = list(image)
    for layer, (factors, bias) in zip(LAYERS, weights()):
        rows, columns, channels = layer.before
        if layer.kind == "pad":
            padded = [0.0] * count(layer.after)
            for i in range(rows):
                for j in range(columns):
                    padded[(i + layer.window) * layer.after[1] + j + layer.window] = values[i * columns + j]
            values = padded
            continue
        made = []
        for i in range(layer.after[0]):
            for j in range(layer.after[1]):
                for out in range(layer.after[2]):
                    if layer.kind == "pool":
                        made.append(max(values[((2 * i + y) * columns + 2 * j + x) * channels + out] for y in (0, 1) for x in (0, 1)))
                        continue
                    terms = (values if layer.kind == "dense" else
                             [values[((i + y) * columns + j + x) * channels + c] for y in range(layer.window) for x in range(layer.window)
                              for c in range(channels)])
                    total = bias[out] + sum(term * factor for term, factor in zip(terms, factors[out::layer.after[2]]))
                    made.append(total if layer is LAYERS[-1] else max(total, 0.0))
        values = made
    return values


class Kernel:
    """The text of one kernel: counted loops over elements of its buffers."""

    def __init__(self, layer, place):
        self.layer, self.lines, self.constants, self.registers, self.blocks = layer, [], [], 10, 0
        self.zero, self.one = self.number(0), self.number(1)
        self.input, self.output, self.weights = "%r3", "%r4", "%r5"
        self.write(place)

    def say(self, line):
        self.lines.append("    " + line)

    def pair(self):
        self.registers += 2
        return f"%i{self.registers - 2}:{self.registers - 1}"

    def single(self):
        return self.pair().split(":")[0]

    def number(self, value):
        made = self.pair()
        self.constants.append(f"    {made} = vm.const.i64 {value}")
        return made

    def f32(self, value):
        made = self.single()
        self.constants.append(f"    {made} = vm.const.f32 {value}")
        return made

    def loops(self, counts, body):
        """Nested loops; `body` is called with the counters."""
        if not counts:
            return body()
        counter, bound = self.pair(), self.number(counts[0])
        head, inside, end = (f"^bb{self.blocks + i}" for i in (1, 2, 3))
        self.blocks += 3
        halves = [(f"%i{self.zero[2:].split(':')[half]}", f"%i{counter[2:].split(':')[half]}") for half in (0, 1)]
        self.say(f"vm.br {head}({', '.join(f'{a} -> {b}' for a, b in halves)})")
        self.lines.append(f"  {head}:")
        again = self.single()
        self.say(f"{again} = vm.cmp.lt.i64.s {counter}, {bound}")
        self.say(f"vm.cond_br {again}, {inside}, {end}")
        self.lines.append(f"  {inside}:")
        self.loops(counts[1:], lambda *inner: body(counter, *inner))
        self.say(f"{counter} = vm.add.i64 {counter}, {self.one}")
        self.say(f"vm.br {head}")
        self.lines.append(f"  {end}:")
        return None

    def index(self, offset, *parts):
        """offset + the sum of counter * stride."""
        total = self.number(offset)
        for counter, stride in parts:
            made = self.pair()
            self.say(f"{made} = vm.fma.i64 {counter}, {self.number(stride)}, {total}")
            total = made
        return total

    def load(self, buffer, index):
        made = self.single()
        self.say(f"{made} = vm.buffer.load.f32 {buffer}, {index}")
        return made

    def store(self, value, index):
        self.say(f"vm.buffer.store.f32 {value}, {self.output}, {index}")

    def compute(self, operation, *operands):
        made = self.single()
        self.say(f"{made} = vm.{operation} {', '.join(operands)}")
        return made

    def write(self, place):
        layer = self.layer
        rows, columns, channels = layer.after
        _, before_columns, before_channels = layer.before
        at = lambda i, j, c: ((i, columns * channels), (j, channels), (c, 1))
        if layer.kind == "pad":
            self.loops(layer.before, lambda i, j, c: self.store(
                self.load(self.input, self.index(0, (i, before_columns), (j, 1))),
                self.index((columns + 1) * layer.window, (i, columns), (j, 1))))
            return
        first = self.f32("-inf" if layer.kind == "pool" else "0.0")
        self.loops(layer.after, lambda i, j, c: self.store(first, self.index(0, *at(i, j, c))))

        def term(i, j, out, *inner):
            to = self.index(0, *at(i, j, out))
            if layer.kind == "dense":
                x = self.load(self.input, self.index(0, (inner[0], 1)))
                y = self.load(self.weights, self.index(place, (inner[0], channels), (out, 1)))
            else:
                step = 2 if layer.kind == "pool" else 1
                y_at, x_at, c = inner if layer.kind == "conv" else (*inner, out)
                x = self.load(self.input, self.index(0, (i, step * before_columns * before_channels), (j, step * before_channels),
                                                     (y_at, before_columns * before_channels), (x_at, before_channels), (c, 1)))
                y = layer.kind == "conv" and self.load(self.weights, self.index(
                    place, (y_at, layer.window * before_channels * channels), (x_at, before_channels * channels), (c, channels), (out, 1)))
            value = self.load(self.output, to)
            self.store(self.compute("max.f32", x, value) if layer.kind == "pool" else self.compute("fma.f32", x, y, value), to)
        inner = {"pool": (2, 2), "conv": (layer.window, layer.window, before_channels), "dense": (count(layer.before),)}[layer.kind]
        self.loops((*layer.after, *inner), term)
        if layer.kind == "pool":
            return
        zero = self.f32("0.0")

        def finish(i, j, out):
            to = self.index(0, *at(i, j, out))
            bias = self.load(self.weights, self.index(place + layer.weight_count(), (out, 1)))
            value = self.compute("add.f32", self.load(self.output, to), bias)
            self.store(value if layer is LAYERS[-1] else self.compute("max.f32", value, zero), to)
        self.loops(layer.after, finish)

    def text(self):
        bindings = 3 if self.layer.weight_count() else 2
        registers = ", ".join(f"%i{n}: i32" for n in range(9))
        head = [f"  vm.func @{self.layer.name}(%r0: !vm.buffer, %r1: !vm.buffer, %r2: !vm.list<!vm.buffer>, {registers}) -> () {{",
                f"    .attr \"binding_count\" \"{bindings}\"", "    .requires ext_f32"]
        for n in range(bindings):
            self.constants.append(f"    %i9 = vm.const.i32 {n}\n    %r{3 + n} = vm.list.get.ref %r2, %i9 : !vm.buffer")
        return "\n".join([*head, *self.constants, *self.lines, "    vm.return", "  }"]) + "\n"


HOST = """
vm.rodata[2] = "input0"
vm.rodata[3] = "tensor"
vm.rodata[4] = "hal.executable.format"
vm.rodata[5] = "vmvx-bytecode-fb"
vm.export @classify
vm.attr @classify "iree.abi.declaration" "sync func @classify(%input0: tensor<1x28x28x1xf32>) -> (%output0: tensor<1x10xf32>)"
vm.export @__init
"""


def text():
    place, code, data = 0, "", []
    for layer, (factors, bias) in zip(LAYERS, weights()):
        code += Kernel(layer, place).text()
        data += factors + bias
        place = len(data)
    blob = struct.pack(f"<{len(data)}f", *data).hex()
    exports = "".join(f"  vm.export @{layer.name}\n" for layer in LAYERS)
    hexes = "\n".join(blob[at:at + 128] for at in range(0, len(blob), 128))
    return (f"vm.module @lenet\nvm.state 0, 4\nvm.dependency @hal 6\n{IMPORTS}"
            f"vm.rodata[0] = module {{\n  vm.module @kernels\n{exports}{code}}}\nvm.rodata[1] = hex {{\n{hexes}\n}}\n{HOST}"
            f"{host(4 * len(data))}")


IMPORTS = "".join(f"vm.import @hal.{name} cconv \"{convention}\"\n" for name, convention in {
    "ex.file.from_memory": "0rIirIIi_r", "allocator.allocate": "0rIiiI_r", "allocator.import": "0riIiirII_r", "buffer.assert": "0rrrIii_v", "buffer_view.create": "0rIIiiCID_r",
    "buffer_view.assert": "0rriiCID_v", "buffer_view.buffer": "0r_r", "command_buffer.create": "0riiIi_r",
    "command_buffer.finalize": "0r_v", "command_buffer.execution_barrier": "0riiI_v", "command_buffer.fill_buffer": "0rrIIiIiI_v",
    "command_buffer.dispatch": "0rriiiiICiDCiirIID_v", "device.allocator": "0r_r", "device.query.i64": "0rrr_iI",
    "device.queue.alloca": "0rIrrIiiII_r", "device.queue.read": "0rIrrrIrIII_v", "device.queue.execute.indirect": "0rIrrrICrIID_v", "devices.count": "0v_i",
    "devices.get": "0i_r", "executable.create": "0rIrrr_r", "fence.create": "0rI_r", "fence.await": "0iICrD_i"}.items())


def host(constants):
    """@__init records all dispatches once; a call runs the recording with its image, the result and a buffer for each layer."""
    sizes = [4 * count(layer.after) for layer in LAYERS]
    record, registers = [], {}

    def number(value, kind="i64"):
        if (value, kind) not in registers:
            first = 100 + 2 * len(registers)
            registers[value, kind] = f"%i{first}:{first + 1}" if kind == "i64" else f"%i{first}"
        return registers[value, kind]

    # Slots of the table: the image, then the result of each layer.
    def binding(slot, length, buffer="%r9"):
        return [number(0, "i32"), number(slot, "i32"), buffer, number(0), number(length)]
    record.append(f"vm.call @hal.command_buffer.fill_buffer(%r4, %r9, {number(0)}, {number(sizes[0])}, {number(1, 'i32')}, {number(0)}, "
                  f"{number(1, 'i32')}, {number(0)})")
    barrier = f"vm.call @hal.command_buffer.execution_barrier(%r4, {number(28, 'i32')}, {number(13, 'i32')}, {number(0)})"
    for n, layer in enumerate(LAYERS):
        record.append(barrier)
        given = [*binding(n, 4 * count(layer.before)), *binding(n + 1, sizes[n])]
        if layer.weight_count():
            given += binding(0, constants, "%r3")
        one = number(1, "i32")
        record.append(f"vm.call.variadic @hal.command_buffer.dispatch segments[65535, 65535, 65535, 65535, 65535, 65535, 65535, 0, {len(given) // 5}]"
                      f"(%r4, %r2, {number(n, 'i32')}, {one}, {one}, {one}, {number(0)}, {', '.join(given)})")
    record.append(barrier)
    known = "".join(f"  {register} = vm.const.{kind} {value}\n" for (value, kind), register in registers.items())
    recorded = "".join(f"  {line}\n" for line in record)
    image, result = 4 * IMAGE * IMAGE, 4 * CLASSES
    # Each allocation waits for the one before.
    allocations, table = "", "%r4, %i8:9, %i16:17"
    for n, size in enumerate(sizes):
        length = f"%i{32 + 2 * n}:{33 + 2 * n}"
        allocations += (f"  {length} = vm.const.i64 {size}\n  %r{30 + n} = vm.call @hal.fence.create(%r1, %i8:9)\n"
                        f"  %r{10 + n} = vm.call @hal.device.queue.alloca(%r1, %i6:7, %r{29 + n}, %r{30 + n}, %i8:9, %i4, %i3, {length}, "
                        "%i8:9)\n")
        table += f", %r{10 + n}, %i8:9, {length}"
    last = len(LAYERS) - 1
    return f"""
vm.func @__init() -> () {{
  .requires yield, unwind
  %i0 = vm.const.i32.zero
  %r1 = vm.call @hal.devices.get(%i0)
  %r5 = vm.const.ref.rodata 4
  %r6 = vm.const.ref.rodata 5
  %i1, %i2:3 = vm.call @hal.device.query.i64(%r1, %r5, %r6)
  vm.cond_br %i1, ^bb1, ^bb3
^bb1:
  vm.global.store.ref %r1, .refs[0] : !hal.device
  %i4:5 = vm.const.i64 -1
  %r5 = vm.const.ref.rodata 0
  %r7 = vm.const.ref.zero
  %r2 = vm.call @hal.executable.create(%r1, %i4:5, %r6, %r5, %r7)
  %r5 = vm.call @hal.device.allocator(%r1)
  %r6 = vm.const.ref.rodata 1
  %i6 = vm.const.i32 1
  %i7 = vm.const.i32 48
  %i8 = vm.const.i32 527363
  %i10:11 = vm.const.i64.zero
  %i12:13 = vm.const.i64 {constants}
  %r3 = vm.call @hal.allocator.import(%r5, %i6, %i4:5, %i7, %i8, %r6, %i10:11, %i12:13)
  %i14 = vm.cmp.nz.ref %r3
  vm.cond_br %i14, ^bb5, ^bb2
^bb2:  // the constants are not memory of the device, so they are copied
  %r3 = vm.call @hal.allocator.allocate(%r5, %i4:5, %i7, %i8, %i12:13)
  %r8 = vm.call @hal.ex.file.from_memory(%r1, %i4:5, %i6, %r6, %i10:11, %i12:13, %i0)
  %r9 = vm.call @hal.fence.create(%r1, %i10:11)
  vm.call @hal.device.queue.read(%r1, %i4:5, %r7, %r9, %r8, %i10:11, %r3, %i10:11, %i12:13, %i10:11)
  %i16 = vm.const.i32 -1
  vm.call.variadic.yieldable @hal.fence.await segments[65535, 65535, 1](%i16, %i10:11, %r9) -> ^bb4(%i17)
^bb4:
  vm.cond_br %i17, ^bb3, ^bb5
^bb5:
  %i15 = vm.const.i32 3
  %i18 = vm.const.i32 {len(LAYERS) + 1}
  %r4 = vm.call @hal.command_buffer.create(%r1, %i0, %i15, %i4:5, %i18)
  %r9 = vm.const.ref.zero
{known}{recorded}  vm.call @hal.command_buffer.finalize(%r4)
  vm.global.store.ref %r4, .refs[1] : !hal.command_buffer
  vm.return
^bb3:
  %i14 = vm.const.i32 14
  vm.fail %i14, "no device runs bytecode kernels, or the constants cannot be copied"
}}
vm.func @classify(%r0: !vm.ref<?>) -> (!vm.ref<?>) {{
  .requires yield, unwind
  %i0 = vm.const.i32 553648160
  %i1 = vm.const.i32 1
  %i2 = vm.const.i32 16
  %i3 = vm.const.i32 3075
  %i4 = vm.const.i32 48
  %i5 = vm.const.i32 -1
  %i6:7 = vm.const.i64 -1
  %i8:9 = vm.const.i64.zero
  %i10:11 = vm.const.i64 1
  %i12:13 = vm.const.i64 {IMAGE}
  %i14:15 = vm.const.i64 {CLASSES}
  %i16:17 = vm.const.i64 {image}
  %i18:19 = vm.const.i64 {result}
  %r1 = vm.global.load.ref .refs[0] : !hal.device
  %r2 = vm.global.load.ref .refs[1] : !hal.command_buffer
  %r3 = vm.const.ref.rodata 2
  vm.call.variadic @hal.buffer_view.assert segments[65535, 65535, 65535, 65535, 4](%r0, %r3, %i0, %i1, %i10:11, %i12:13, %i12:13, %i10:11)
  %r4 = vm.call @hal.buffer_view.buffer(%r0)
  %r3 = vm.const.ref.rodata 3
  %r5 = vm.call @hal.device.allocator(%r1)
  vm.call @hal.buffer.assert(%r4, %r3, %r5, %i16:17, %i2, %i3)
  %r29 = vm.const.ref.zero
{allocations}  %r7 = vm.call @hal.fence.create(%r1, %i8:9)
  vm.call.variadic @hal.device.queue.execute.indirect segments[65535, 65535, 65535, 65535, 65535, 65535, {len(LAYERS) + 1}](%r1, %i6:7, %r{30 + last}, %r7, %r2, %i8:9, {table})
  vm.call.variadic.yieldable @hal.fence.await segments[65535, 65535, 1](%i5, %i8:9, %r7) -> ^bb1(%i22)
^bb1:
  vm.cond_br %i22, ^bb3, ^bb2
^bb2:
  %r0 = vm.call.variadic @hal.buffer_view.create segments[65535, 65535, 65535, 65535, 65535, 2](%r{10 + last}, %i8:9, %i18:19, %i0, %i1, %i10:11, %i14:15)
  vm.return %r0
^bb3:
  vm.fail %i22, "failed to wait on timepoint"
}}
"""


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__.strip())
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        file.write(text())
