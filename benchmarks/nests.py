#!/usr/bin/env python3
"""Nests of sums, compiled from bytecode beside interpreted: products of floats and of 8-bit integers, with and without zero
points, B as it is or transposed, many rows or one.

usage: benchmarks/nests.py [--json] [--rounds=N] [--only=TEXT] [--build=FOLDER]

Every nest is a function of host code that this script writes: it fills two buffers and adds all terms to a third one, several
times. The time of one nest is the difference between two numbers of times, so that filling does not count. All rows run N rounds
in turn, and the least time of each counts.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parent.parent
INTEGER = {"i8": "i8.s", "u8": "i8.u"}
ZERO_POINTS = {"none": (), "constants": ("vm.const.i32 -128", "vm.const.i32 5"),
               "arguments": ("vm.trunc.i64.i32 %i2:3", "vm.trunc.i64.i32 %i2:3")}

# name, element of A and B, rows, outputs of a row, terms, whether B is transposed, zero points
ROWS = [
    ("f32", "f32", "f32", 64, 64, 256, False, "none"),
    ("f32, B transposed", "f32", "f32", 64, 64, 256, True, "none"),
    ("f32, one row", "f32", "f32", 1, 512, 512, False, "none"),
    ("i8 x i8", "i8", "i8", 64, 64, 256, False, "none"),
    ("i8 x i8, B transposed", "i8", "i8", 64, 64, 256, True, "none"),
    ("i8 x i8, zero points", "i8", "i8", 64, 64, 256, False, "constants"),
    ("i8 x i8, zero points known late", "i8", "i8", 64, 64, 256, False, "arguments"),
    ("u8 x i8", "u8", "i8", 64, 64, 256, False, "none"),
    ("i8 x i8, 7 rows", "i8", "i8", 7, 64, 255, False, "none"),
    ("i8 x i8, one row", "i8", "i8", 1, 512, 512, False, "none"),
    ("i8 x i8, one row, B transposed", "i8", "i8", 1, 512, 512, True, "none"),
]


def loop(block, counter, limit, body):
    return f"""
  {counter} = vm.const.i64.zero
  vm.br ^bb{block}
^bb{block}:
  %i10 = vm.cmp.lt.i64.s {counter}, {limit}
  vm.cond_br %i10, ^bb{block + 1}, ^bb{block + 2}
^bb{block + 1}:
  {body}
  {counter} = vm.add.i64 {counter}, %i8:9
  vm.br ^bb{block}
^bb{block + 2}:
"""


def program(a, b, rows, outputs, terms, is_transposed, zero_points):
    kind = "f32" if a == "f32" else "i32"
    fill = "\n".join(f"vm.buffer.store.i8 %i34, %r{i}, %i4:5" for i in (0, 1))
    if kind == "f32":  # of bytes 0x3D: 0.046
        fill = "%i34 = vm.const.i32 61\n" + fill
    offsets = ZERO_POINTS[zero_points]
    before = "".join(f"%i{36 + i} = {offset}\n" for i, offset in enumerate(offsets))
    subtract = "".join(f"%i{26 + i} = vm.sub.i32 %i{26 + i}, %i{36 + i}\n" for i in range(len(offsets)))
    right = "%i12:13, %i18:19, %i14:15" if is_transposed else "%i14:15, %i16:17, %i12:13"
    nest = loop(7, "%i6:7", "%i20:21", loop(10, "%i12:13", "%i16:17", loop(13, "%i14:15", "%i18:19", f"""
  %i22:23 = vm.fma.i64 %i6:7, %i18:19, %i14:15
  %i26 = vm.buffer.load.{INTEGER.get(a, a)} %r0, %i22:23
  %i22:23 = vm.fma.i64 {right}
  %i27 = vm.buffer.load.{INTEGER.get(b, b)} %r1, %i22:23
  {subtract}
  %i22:23 = vm.fma.i64 %i6:7, %i16:17, %i12:13
  %i28 = vm.buffer.load.{kind} %r2, %i22:23
  %i28 = vm.fma.{kind} %i26, %i27, %i28
  vm.buffer.store.{kind} %i28, %r2, %i22:23
""")))
    return f"""
vm.module @m
vm.type !vm.buffer
{"vm.type f32" if kind == "f32" else ""}
vm.export @nest
vm.func @nest(%i0:1: i64, %i2:3: i64) -> (i64) {{
  {".requires ext_f32" if kind == "f32" else ""}
  %i8:9 = vm.const.i64 1
  %i16:17 = vm.const.i64 {outputs}
  %i18:19 = vm.const.i64 {terms}
  %i20:21 = vm.const.i64 {rows}
  %i30:31 = vm.const.i64 {4 * max(rows * terms, terms * outputs, rows * outputs)}
  %i34 = vm.const.i32.zero
  {before}
  %r0 = vm.buffer.alloc %i30:31, %i34
  %r1 = vm.buffer.alloc %i30:31, %i34
  %r2 = vm.buffer.alloc %i30:31, %i34
""" + loop(1, "%i4:5", "%i30:31", "%i34 = vm.trunc.i64.i32 %i4:5\n" + fill) + loop(4, "%i4:5", "%i0:1", nest) + """
  vm.return %i4:5
}
"""


def seconds_of(build, text, times, jit):
    done = subprocess.run([build / "bin" / "vm-bench", f"--module={text}", "--function=nest", f"--input={times}", "--input=3",
                           f"--jit={jit}", "--jit_cache=", "--benchmark_filter=^BM_", "--benchmark_format=json",
                           "--benchmark_min_time=0.05"], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"vm-bench failed for {text}: {done.stderr}")
    row = json.loads(done.stdout)["benchmarks"][0]
    return row["cpu_time"] * {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}[row["time_unit"]]


def measure(build, text, jit, rounds):
    few, many = (1, 401) if jit == "always" else (1, 2)
    least = {times: min(seconds_of(build, text, times, jit) for _ in range(rounds)) for times in (few, many)}
    return (least[many] - least[few]) / (many - few)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--json", action="store_true", help="one JSON object instead of a table")
    parser.add_argument("--rounds", type=int, default=3, help="3 unless said otherwise")
    parser.add_argument("--only", default="", help="nests with this in their name")
    parser.add_argument("--build", type=pathlib.Path, default=SOURCE / "build" / "release")
    arguments = parser.parse_args()
    results = []
    if not arguments.json:
        print(f"{'nest':<34}{'rows, outputs, terms':>22}{'compiled':>12}{'G terms/s':>11}{'over interpreted':>18}")
    with tempfile.TemporaryDirectory() as folder:
        for name, a, b, rows, outputs, terms, is_transposed, zero_points in ROWS:
            if arguments.only not in name:
                continue
            text = pathlib.Path(folder) / "nest.vmasm"
            text.write_text(program(a, b, rows, outputs, terms, is_transposed, zero_points))
            compiled = measure(arguments.build.resolve(), text, "always", arguments.rounds)
            interpreted = measure(arguments.build.resolve(), text, "off", arguments.rounds)
            results.append({"name": name, "rows": rows, "outputs": outputs, "terms": terms, "seconds": compiled,
                            "terms_per_second": rows * outputs * terms / compiled, "over_interpreted": compiled / interpreted})
            if not arguments.json:
                print(f"{name:<34}{f'{rows}, {outputs}, {terms}':>22}{compiled * 1e6:>9.1f} us"
                      f"{results[-1]['terms_per_second'] / 1e9:>11.2f}{results[-1]['over_interpreted']:>18.4f}", flush=True)
    if arguments.json:
        print(json.dumps({"rows": results}, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
