#!/usr/bin/env python3
"""What vm-cc makes, beside the same written by hand: seven kernels beside their loops in C and beside the compiled bytecode, and
host code beside native code.

usage: benchmarks/vm-cc.py [--json] [--rounds=N] [--only=TEXT] [--build=FOLDER] [--instructions]

The modules lie beside the fixtures, in ../bench of HALYARD_FIXTURES. Everything is built by the C compiler of this machine
($CC, default gcc): kernels with -O3 -march=native, host code with -O2. All runs of a row take turns, N rounds, and the least time of
each counts. The goal is 1.1 of the time by hand. --instructions counts instructions with callgrind instead (-mavx2 in place of
-march=native, for valgrind), which a loaded machine does not change.
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import processor_time

SOURCE = pathlib.Path(__file__).resolve().parent.parent
KERNELS = {"depthwise_conv": 200, "gelu": 10, "matmul_128": 200, "relu_bias": 50, "requantize_i8": 200, "scan": 200, "softmax": 100}
HOST = {"loop_sum": 60_000_000, "fib": 32, "sieve": 12_000_000, "matmul_f32": 220, "orbit_f64": 10_000_000, "list_sum": 20_000_000}
GOAL = 1.1


def succeed(command, **options):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, **options)
    if done.returncode != 0:
        sys.exit(f"{command[0]} failed with {done.returncode}: {done.stderr[:2000]}")
    return done.stdout


def instructions(command):
    """Those of the whole process."""
    done = subprocess.run(["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", *map(str, command)], capture_output=True,
                          text=True)
    found = re.search(r"Collected : (\d+)", done.stderr)
    return int(found[1]) if found else sys.exit(f"valgrind failed: {done.stderr[:2000]}")


def processor_seconds(command):
    before = processor_time.of_children()
    succeed(command)
    return processor_time.of_children() - before


class Bench:
    def __init__(self, options, folder):
        self.options, self.folder, self.cc = options, folder, os.environ.get("CC", "gcc")
        fixtures = pathlib.Path(os.environ.get("HALYARD_FIXTURES", SOURCE / ".." / "shared" / "fixtures"))
        self.modules = fixtures / ".." / "bench"
        self.tool = options.build / "bin" / "vm-cc"

    def compile(self, name, *arguments):
        """With the flags for kernels."""
        target = self.folder / name
        machine = "-mavx2" if self.options.instructions else "-march=native"
        succeed([self.cc, "-std=c11", "-O3", machine, *arguments, "-o", target, "-lm"], cwd=self.folder)
        return target

    def kernel(self, name):
        """By hand, by vm-cc, compiled bytecode (or None): seconds, or instructions, of a call."""
        module = self.modules / "kernels" / f"{name}.vmvx.vmfb"
        succeed([self.tool, module, "-o", self.folder / "model"])
        source = SOURCE / "benchmarks" / "kernels_by_hand.c"
        hand = self.compile("hand", f"-DKERNEL={name}", source)
        made = self.compile("made", f"-DKERNEL={name}", "-DMODEL", "-I", self.folder, source, self.folder / "model.c")
        if self.options.instructions:
            return *[instructions([each, 2]) - instructions([each, 1]) for each in (hand, made)], None
        sums = [succeed([each, 1]).split()[1] for each in (hand, made)]
        # Functions of the C library differ in the last bits.
        if abs(float(sums[0]) - float(sums[1])) > 1e-4 * max(1.0, abs(float(sums[0]))):
            sys.exit(f"{name}: by hand the sum is {sums[0]}, by vm-cc {sums[1]}")
        times = [[], [], []]
        for _ in range(self.options.rounds):
            for program, found in zip((hand, made), times):
                found.append(float(succeed([program, KERNELS[name]]).split()[0]))
            times[2].append(self.compiled(name, module))
        return [min(each) if None not in each else None for each in times]

    def compiled(self, name, module):
        inputs = sorted(module.parent.glob(f"{name}.in*.npy"))
        done = subprocess.run([self.options.build / "bin" / "vm-bench", f"--module={module}", "--device=local-sync?jit=always", f"--function={name}",
                               *(f"--input=@{each}" for each in inputs), "--benchmark_filter=^BM_",
                               "--benchmark_format=json"], capture_output=True, text=True)
        if done.returncode != 0:
            return None
        rows = json.loads(done.stdout)["benchmarks"]
        return min(row["cpu_time"] * {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1}[row["time_unit"]] for row in rows)

    def host(self):
        """Name, and seconds or instructions of native code, of vm-cc, and of vm-cc without checks of bounds."""
        native = self.folder / "native"
        succeed([self.cc, "-O2", "-fno-tree-vectorize", "-o", native, self.modules / "native.c"])
        programs = [native]
        for checks in ("all", "none"):
            prefix = self.folder / f"core_{checks}"
            succeed([self.tool, self.modules / "core.vmasm", "--main", f"--checks={checks}", "-o", prefix])
            succeed([self.cc, "-std=c11", "-O2", "-fno-tree-vectorize", "-DVM_ARENA_BYTES=1u<<29", "-o", f"{prefix}.out", f"{prefix}.c",
                     f"{prefix}_main.c", "-lm"])
            programs.append(f"{prefix}.out")
        for name, size in HOST.items():
            if self.options.only not in name:
                continue

            def command(program, size):
                return [program, name, size] if program == native else [program, f"--function={name}", f"--input={size}"]

            if self.options.instructions:
                few = {"fib": 18, "matmul_f32": 40}.get(name, 60_000)
                yield name, [instructions(command(each, few)) - instructions(command(each, 2)) for each in programs]
                continue
            times = [[], [], []]
            for _ in range(self.options.rounds):
                for program, found in zip(programs, times):
                    found.append(processor_seconds(command(program, size)))
            yield name, [min(each) for each in times]


def text(value, unit):
    return "-" if value is None else f"{value:,}" if unit == "instructions" else f"{value * 1e6:,.1f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="")
    parser.add_argument("--build", type=pathlib.Path, default=SOURCE / "build" / "release")
    parser.add_argument("--instructions", action="store_true")
    options = parser.parse_args()
    for program in [os.environ.get("CC", "gcc"), *(["valgrind"] if options.instructions else [])]:
        if not shutil.which(program):
            sys.exit(f"{program} is not installed")
    unit = "instructions" if options.instructions else "microseconds"
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(options, pathlib.Path(folder))
        if not (bench.modules / "kernels").is_dir():
            print("left out: the modules are not here; HALYARD_FIXTURES names the folder beside theirs")
            return
        for name in KERNELS:
            if options.only in name:
                hand, made, compiled = bench.kernel(name)
                rows.append({"row": name, "by hand": hand, "vm-cc": made, "ratio": made / hand, "compiled bytecode": compiled})
        for name, (native, made, unchecked) in bench.host():
            rows.append({"row": name, "by hand": native, "vm-cc": made, "ratio": made / native, "--checks=none": unchecked})
    if options.json:
        print(json.dumps({"unit": unit, "goal": GOAL, "rows": rows}, indent=1))
        return
    print(f"{'row':16}{'by hand':>16}{'vm-cc':>16}{'ratio':>8}{'compiled or --checks=none':>28}  ({unit}; goal {GOAL})")
    for row in rows:
        other = row.get("compiled bytecode", row.get("--checks=none"))
        print(f"{row['row']:16}{text(row['by hand'], unit):>16}{text(row['vm-cc'], unit):>16}{row['ratio']:8.2f}{text(other, unit):>28}")


if __name__ == "__main__":
    main()
