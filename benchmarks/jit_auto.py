#!/usr/bin/env python3
"""Processes of vm-run with --jit=auto beside --jit=off: what it costs where nothing gets hot, where the program ends soon
after something has, and what it gives where the program goes on.

usage: benchmarks/jit_auto.py [--json] [--rounds=N] [--processors=N] [--build=FOLDER]

The programs are a loop that adds so many numbers, and one call of each kernel of ../bench/kernels of HALYARD_FIXTURES (the sum
of their times). Both ways run in turn, N rounds, without a cache; times are of the wall clock from the start of the process to
its end, medians, and the ratio is the median of the rounds' ratios. Beside it stands the ratio of the CPU times.
"""

import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import jit
import machine
import processor_time

SOURCE = pathlib.Path(__file__).resolve().parent.parent
OVER_OFF = 1.05  # of the wall clock, at most
TURNS = [1_000_000, 4_000_000, 5_000_000, 8_000_000, 16_000_000, 40_000_000, 200_000_000]
LOOP = """
vm.module @m
vm.export @sum
vm.func @sum(%i0: i32) -> (i32) {
  %i1 = vm.const.i32 1
  %i2 = vm.const.i32.zero
  %i3 = vm.const.i32.zero
  vm.br ^bb1
^bb1:
  %i3 = vm.add.i32 %i3, %i2
  %i2 = vm.add.i32 %i2, %i1
  %i4 = vm.cmp.lt.i32.s %i2, %i0
  vm.cond_br %i4, ^bb1, ^bb2
^bb2:
  vm.return %i3
}
"""


def timed(commands, folder):
    """Seconds of all of them: by the wall clock, and of processors."""
    cpu = processor_time.of_children()
    begin = time.perf_counter()
    for command in commands:
        done = subprocess.run(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        if done.returncode != 0:
            sys.exit(f"{' '.join(command)} failed: {done.stderr}")
    return time.perf_counter() - begin, processor_time.of_children() - cpu


def row(name, commands, folder, rounds):
    ways = {"off": [], "auto": []}
    for _ in range(rounds):
        for way, samples in ways.items():
            samples.append(timed([[*command, f"--jit={way}", "--jit_cache="] for command in commands], folder))
    ratio = [statistics.median(auto[i] / off[i] for off, auto in zip(ways["off"], ways["auto"])) for i in (0, 1)]
    return {"name": name, **{way: statistics.median(wall for wall, _ in samples) for way, samples in ways.items()},
            "over_off": ratio[0], "cpu_over_off": ratio[1]}


def main():
    parser = machine.flags(__doc__, 21)
    parser.add_argument("--processors", type=int, help="run on so many processors (default: all)")
    arguments = parser.parse_args()
    if arguments.processors:
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:arguments.processors])
    if not (arguments.build / "lib" / "halyard" / "halyard-jit-llvm.so").exists():
        print("skipped: this build has no compiler (llvm-19-dev was not there)")
        return
    program = str(arguments.build / "bin" / "vm-run")
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "loop.vmasm").write_text(LOOP)
        subprocess.run([arguments.build / "bin" / "vm-as", folder / "loop.vmasm", f"--output={folder / 'loop.vmfb'}"], check=True)
        for turns in TURNS:
            command = [program, f"--module={folder / 'loop.vmfb'}", "--function=sum", f"--input={turns}"]
            rows.append(row(f"loop of {turns // 1_000_000} million turns", [command], folder, arguments.rounds))
        kernels = jit.kernels_folder()
        if (kernels / "cases.json").exists():
            cases = [case for case in json.loads((kernels / "cases.json").read_text()) if ".vmvx." in case["module"]]
            commands = [[program, f"--module={case['module']}", f"--function={case['function']}", "--device=local-sync",
                         *(f"--input={text}" for text in case["inputs"]), "--output_max_element_count=1"] for case in cases]
            rows.append(row(f"one call of {len(commands)} kernels", commands, kernels, max(arguments.rounds // 3, 3)))
    if arguments.json:
        print(json.dumps({"rows": rows, "most_over_off": OVER_OFF}))
        return
    print(f"{'':<28}{'off':>12}{'auto':>12}{'auto/off':>10}{'CPU':>8}")
    for each in rows:
        print(f"{each['name']:<28}{each['off'] * 1e3:>9.1f} ms{each['auto'] * 1e3:>9.1f} ms{each['over_off']:>10.2f}"
              f"{each['cpu_over_off']:>8.2f}")


if __name__ == "__main__":
    main()
