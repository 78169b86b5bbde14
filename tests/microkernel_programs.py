"""Programs whose one kernel calls microkernels, made from examples/elementwise_mul.vmasm: arguments and result are SIZE numbers, and
the result begins as a copy of the second argument."""
import os
import random
import struct

import vmrun

SIZE = 1 << 17
BINARY = ["add.2d.f32", "sub.2d.f32", "mul.2d.f32", "div.2d.f32", "add.2d.i32", "sub.2d.i32", "mul.2d.i32", "divs.2d.i32", "divu.2d.i32",
          "and.2d.i32", "or.2d.i32", "xor.2d.i32", "shl.2d.i32", "shrs.2d.i32", "shru.2d.i32"]
UNARY = ["abs.2d.f32", "ceil.2d.f32", "exp.2d.f32", "floor.2d.f32", "log.2d.f32", "neg.2d.f32", "rsqrt.2d.f32", "ctlz.2d.i32"]
CONVENTIONS = {**dict.fromkeys(BINARY, "0rIIIrIIIrIIIII_v"), **dict.fromkeys(UNARY, "0rIIIrIIIII_v"),
               **dict.fromkeys(["copy.2d.x8", "copy.2d.x16", "copy.2d.x32", "copy.2d.x64"], "0rIIIrIIIII_v"),
               "fill.2d.x32": "0irIIII_v", "mmt4d": "0rIIrIIrIIIIIiiii_v", "pack": "0rIIIrIIIIIIIIIIi_v", "unpack": "0rIIIrIIIIIIIIIi_v",
               "query_tile_sizes.2d": "0IIi_II"}
LHS, RHS, OUT, CONSTANTS = "r3", "r4", "r5", "r1"  # registers of the arguments, the result, and a buffer that is read-only


def text(calls, begins_as_copy=True):
    """A program with these calls: a name, and its arguments (numbers, or one of the registers)."""
    source = vmrun.read_text(os.path.join(vmrun.SOURCE, "examples", "elementwise_mul.vmasm"))
    for old, new in ((" vm.const.i64 8\n", f" vm.const.i64 {SIZE}\n"), (" vm.const.i64 32\n", f" vm.const.i64 {4 * SIZE}\n"),
                     ("8xf32", f"{SIZE}xf32")):
        source = source.replace(old, new)
    body = [f"    %{register} = vm.list.get.ref %r2, %i{9 + index} : !vm.buffer" for index, register in enumerate((LHS, RHS, OUT))]
    copy = [("copy.2d.x32", [RHS, 0, 0, 1, OUT, 0, 0, 1, 1, SIZE])] if begins_as_copy else []
    for name, arguments in [*copy, *calls]:
        convention = CONVENTIONS[name]
        given = []
        register = 20
        for kind, argument in zip(convention[1:convention.index('_')], arguments):
            if kind == "r":
                given.append(f"%{argument}")
                continue
            given.append(f"%i{register}:{register + 1}" if kind == "I" else f"%i{register}")
            body.append(f"    {given[-1]} = vm.const.i{64 if kind == 'I' else 32} {argument}")
            register += 2
        results = "%i60:61, %i62:63 = " if name.startswith("query") else ""
        body.append(f"    {results}vm.call @vmvx.{name}({', '.join(given)})")
        if results:  # stores what was answered, in the place of the first number
            body.append(f"    %i64:65 = vm.const.i64 {arguments[3]}\n    vm.buffer.store.i64 %i60:61, %{OUT}, %i64:65")
            body.append(f"    %i64:65 = vm.const.i64 {arguments[3] + 1}\n    vm.buffer.store.i64 %i62:63, %{OUT}, %i64:65")
    begin, end = source.index("    %r3 = vm.list.get.ref"), source.index("    vm.discard.refs %r0, %r1, %r2, %r3")
    source = source[:begin] + "\n".join(body) + "\n" + source[end:]
    imports = "".join(f"  vm.import @vmvx.{name} cconv \"{CONVENTIONS[name]}\"\n" for name in sorted({name for name, _ in [*copy, *calls]}))
    source = source.replace("  vm.module @kernels\n", "  vm.module @kernels\n  vm.dependency @vmvx 0\n" + imports)
    source = source.replace("(%r7, %r5, %i12:13, %i15, %i1, %i1,", "(%r7, %r5, %i12:13, %i1, %i1, %i1,")
    return source


def npy(path, words):
    """Numbers of 32 bits, given by their bits, as f32."""
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({len(words)},), }}".ljust(117) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + struct.pack(f"<{len(words)}I", *words))


def inputs(folder, special):
    """Two files with numbers; with `special`, the first has all kinds of them, and the second all but NaNs."""
    chance = random.Random(7)
    kinds = [0, 0x80000000, 1, 0x807FFFFF, 0x00800000, 0x7F800000, 0xFF800000, 0x3F800000, 0xBF800000, 0x7F7FFFFF, 0x42B17218, 0xC2AEAC50]
    files = []
    for nans in ([0x7FC00000], []):
        words = [struct.unpack("<I", struct.pack("<f", chance.uniform(-4, 4)))[0] for _ in range(SIZE)]
        if special:
            for at in range(0, SIZE, 3):
                words[at] = chance.choice(kinds + nans) if chance.random() < 0.5 else chance.getrandbits(31) % 0x7F800000
        files.append(os.path.join(folder, f"words{int(special)}{len(files)}.npy"))
        npy(files[-1], words)
    return files


def elementwise_calls(names):
    """Shapes and strides of all kinds; the results are in places of their own."""
    at = 0
    for name in names:
        # Rows that are longer than their stride, of one element, of one element for all, columns, long rows.
        layouts = [((3, 17), (17, 1), (17, 1), (17, 1)), ((4, 33), (40, 1), (0, 1), (50, 1)), ((2, 300), (300, 1), (0, 0), (300, 1)),
                   ((1, 1), (0, 0), (0, 0), (1, 1))]
        if not name.startswith(("exp", "log")):  # of strided elements, devices compute these with the C library
            layouts += [((5, 9), (1, 0), (9, 1), (9, 1)), ((7, 5), (1, 7), (5, 1), (5, 1)), ((6, 8), (8, 1), (8, 1), (1, 6)),
                        ((3, 4), (10, 2), (1, 3), (20, 5))]
        for number, (size, first, second, result) in enumerate(layouts):
            begin, end = 11 * at % 4000, at
            at += 600 + number
            operands = [LHS, begin, *first] + ([RHS, begin + 1, *second] if name in BINARY else [])
            yield name, [*operands, OUT, end, *result, *size]
    for name in names:  # what is written is read again
        if not name.startswith(("exp", "log", "div")):
            yield name, [OUT, at, 20, 1] + ([RHS, at, 20, 1] if name in BINARY else []) + [OUT, at + 1, 20, 1, 3, 20]
            at += 100


def copy_calls():
    at = 0
    for name in ("copy.2d.x8", "copy.2d.x16", "copy.2d.x32", "copy.2d.x64"):
        for size, first, result in (((3, 50), (64, 1), (50, 1)), ((9, 7), (1, 9), (7, 1)), ((4, 4), (0, 0), (8, 2))):
            yield name, [LHS, 5, *first, OUT, at, *result, *size]
            at += 200
        yield name, [OUT, at, 16, 1, OUT, at + 3, 16, 1, 4, 16]
        at += 200
    yield "fill.2d.x32", [0x12345678, OUT, 5000, 40, 7, 33]
    yield "fill.2d.x32", [1, OUT, 6000, 0, 0, 5]
    yield "fill.2d.x32", [1, OUT, 6000, 0, 5, 0]


def tile_calls():
    at = 0
    for number, (t0, t1) in enumerate(((16, 1), (8, 4), (4, 2), (3, 5), (1, 1), (16, 16))):
        for flags in (0, 0x100, 0x200, 0x300):
            for kind, width in ((1, 4), (2, 1)):
                rows, columns = 2 * (t1 if flags & 0x100 else t0) + 1 - number % 2, 3 * (t0 if flags & 0x100 else t1) - number % 3
                grid = (3, 3) if number % 2 == 0 else (2, 4)
                grid = grid[::-1] if flags & 0x200 else grid
                padding = 0x1234567 + number
                row = grid[1] * t0 * t1 + number  # rows of tiles with a gap
                yield "pack", [LHS, 7, columns + 3, 1, OUT, at, row, t0 * t1, rows, columns, *grid, t0, t1, padding, kind | flags]
                at += grid[0] * row
                if width == 4:
                    yield "unpack", [RHS, 9, row, t0 * t1, OUT, at, 2 * columns, 1 + number % 2, *grid, t0, t1, rows, columns, 3 | flags]
                    at += 2 * columns * (rows + 1)
    yield "pack", [LHS, 0, 1, 40, OUT, at, 96, 32, 24, 11, 3, 3, 8, 4, 0, 1]  # columns of the matrix are contiguous
    yield "unpack", [RHS, 0, 96, 32, OUT, at + 300, 1, 40, 3, 3, 8, 4, 24, 11, 1]


def overlapping_tile_calls():
    """Tiles that partly are what is read: the plain loops define the result."""
    at = 0
    for shift in (0, 1, 4, 40, 200):
        yield "pack", [OUT, at, 16, 1, OUT, at + shift, 128, 32, 16, 16, 2, 4, 8, 4, 0, 1]
        yield "pack", [OUT, at, 16, 1, OUT, at + shift, 128, 32, 16, 16, 2, 4, 8, 4, 0, 0x301]
        yield "unpack", [OUT, at + shift, 128, 64, OUT, at, 16, 1, 2, 2, 8, 8, 16, 16, 1]
        at += 600


def product_calls(kinds):
    yield from wide_product_calls(kinds)
    at = SIZE // 2
    tiles = [(16, 16, 1), (16, 16, 4), (8, 8, 4), (4, 8, 4), (2, 8, 4), (1, 8, 4), (3, 8, 4), (13, 8, 4), (8, 8, 1), (5, 3, 2), (16, 16, 2)]
    for kind in kinds:
        for number, (m0, n0, k0) in enumerate(tiles):
            for m, n, k in ((1, 1, 1), (2, 3, 5), (3, 5, 70 if number < 4 else 2), (1, 9, 3), (2, 1, 300 if number in (0, 3, 4, 5) else 0)):
                accumulate = 0x100 * ((m + number) % 2)
                lhs_row, rhs_row, out_row = k * m0 * k0 + number, k * n0 * k0 + 3, n * m0 * n0 + number % 3
                if at + m * out_row > SIZE:
                    at = SIZE // 2
                yield "mmt4d", [LHS, number, lhs_row, RHS, 2 * number, rhs_row, OUT, at, out_row, m, n, k, m0, n0, k0, kind | accumulate]
                at += m * out_row
    yield "mmt4d", [LHS, 0, 0, RHS, 0, 0, OUT, at, 0, 4, 1, 5, 8, 8, 4, 0x101]  # all rows are one row


def wide_product_calls(kinds):
    """More tiles of columns, and of bytes more steps, than are multiplied at a time."""
    at, m, n = 0, 2, 35
    for kind in kinds:
        for number, (m0, n0, k) in enumerate([(m0, 8, 70 if kind == 1 else 300) for m0 in (1, 2, 3, 4, 7, 8)] + [(16, 16, 20)]):
            accumulate = 0x100 * (number % 2)
            yield "mmt4d", [LHS, number, k * m0 * 4 + 1, RHS, 3, k * n0 * 4 + 5, OUT, at, n * m0 * n0, m, n, k, m0, n0, 4, kind | accumulate]
            at += m * n * m0 * n0


def size_calls():
    return [("query_tile_sizes.2d", [8, 8, role | operation << 8, 16 * operation + 4 * role]) for operation in range(1, 7) for role in (1, 2, 3)]


# Calls that fail, with the code of the status.
FAILING = {
    "beyond a buffer": (11, ("add.2d.f32", [LHS, SIZE - 5, 2, 1, RHS, 0, 2, 1, OUT, 0, 2, 1, 3, 2])),
    "an offset that wraps": (11, ("abs.2d.f32", [LHS, -1, 1, 1, OUT, 0, 1, 1, 1, 2])),
    "a read-only buffer": (7, ("neg.2d.f32", [LHS, 0, 1, 1, CONSTANTS, 0, 1, 1, 1, 1])),
    "a stride backwards": (3, ("mul.2d.f32", [LHS, 9, -1, 1, RHS, 0, 2, 1, OUT, 0, 2, 1, 3, 2])),
    "a size of more than 32 bits": (3, ("copy.2d.x8", [LHS, 0, 0, 0, OUT, 0, 0, 0, 1 << 32, 1])),
    "a divisor of 0": (3, ("divs.2d.i32", [LHS, 0, 0, 1, RHS, 0, 0, 1, OUT, 0, 0, 1, 1, 9])),
    "an unsigned divisor of 0": (3, ("divu.2d.i32", [LHS, 0, 0, 1, RHS, 0, 0, 1, OUT, 0, 0, 1, 1, 9])),
    "a product of an unknown type": (3, ("mmt4d", [LHS, 0, 4, RHS, 0, 4, OUT, 0, 4, 1, 1, 1, 2, 2, 2, 3])),
    "a product beyond a buffer": (11, ("mmt4d", [LHS, SIZE - 31, 32, RHS, 0, 32, OUT, 0, 64, 1, 1, 1, 8, 8, 4, 1])),
    "a result beyond a buffer": (11, ("mmt4d", [LHS, 0, 32, RHS, 0, 32, OUT, SIZE - 63, 64, 1, 1, 1, 8, 8, 4, 2])),
    "too many tiles": (3, ("mmt4d", [LHS, 0, 0, RHS, 0, 0, OUT, 0, 0, 1 << 31, 1, 0, 8, 8, 4, 1])),
    "tiles that are too few": (3, ("pack", [LHS, 0, 9, 1, OUT, 0, 64, 32, 9, 9, 1, 2, 8, 4, 0, 1])),
    "tiles beyond a buffer": (11, ("pack", [LHS, 0, 8, 1, OUT, SIZE - 63, 64, 32, 8, 8, 1, 2, 8, 4, 0, 1])),
    "bytes are not unpacked": (3, ("unpack", [LHS, 0, 64, 32, OUT, 0, 8, 1, 1, 2, 8, 4, 8, 8, 2])),
    "an unknown operand": (3, ("query_tile_sizes.2d", [8, 8, 0x104, 0])),
    "an unknown operation": (3, ("query_tile_sizes.2d", [8, 8, 0x701, 0])),
}
