#!/usr/bin/env python3
"""The machine in one table: six programs against Lua 5.4 and native code, and what the machine charges for its own work.

usage: benchmarks/machine.py [--json] [--rounds=N] [--build=FOLDER]

The programs (core.vmasm, core.lua, native.c) lie beside the fixtures, in ../bench of HALYARD_FIXTURES; without them their
rows are left out. All three run in turn, N rounds; what counts is the processor time of each process, and of N the
least (the median stands beside). The other rows come from the programs `machine` and `decode`.
"""

import argparse
import json
import math
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

import processor_time

SOURCE = pathlib.Path(__file__).resolve().parent.parent

# Sizes for which the machine and Lua take at least 0.1 s, and the repetitions that native code needs for that.
PROGRAMS = {
    "loop_sum": (60_000_000, 8),
    "fib": (32, 16),
    "sieve": (12_000_000, 3),
    "matmul_f32": (220, 12),
    "orbit_f64": (10_000_000, 4),
    "list_sum": (20_000_000, 8),
}
OVER_LUA = 0.33  # of the geometric mean, at most

# Runs the program as often as the third argument says.
REPEAT = """
#include <stdlib.h>
int program(int argc, char** argv);
int main(int argc, char** argv) {
  if (argc != 4) return 2;
  for (int turns = atoi(argv[3]); turns > 0; --turns) if (program(3, argv)) return 2;
  return 0;
}
"""


def bench_folder():
    fixtures = pathlib.Path(os.environ.get("HALYARD_FIXTURES", SOURCE / ".." / "shared" / "fixtures"))
    return fixtures / ".." / "bench"


def timed(command):
    """What the command printed last, as a number modulo 2^32, and its processor time in seconds."""
    before = processor_time.of_children()
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    seconds = processor_time.of_children() - before
    if done.returncode != 0:
        sys.exit(f"{command[0]} failed with {done.returncode}: {done.stderr.strip()}")
    return int(float(done.stdout.split()[-1].split("=")[-1])) & 0xFFFFFFFF, seconds


def find_lua(bench):
    """Lua 5.4's program; None where it or the programs are missing, which is said."""
    lua = shutil.which("lua5.4")
    if not (bench / "core.vmasm").exists():
        print(f"no programs in {bench}; expected core.vmasm, core.lua and native.c", file=sys.stderr)
        return None
    if not lua:
        print("lua5.4 is not installed; `./dev bench machine` installs it", file=sys.stderr)
        return None
    return lua


def build_programs(build, bench, folder):
    """Makes core.vmfb and native in the folder."""
    (folder / "repeat.c").write_text(REPEAT)
    subprocess.run(["gcc", "-O2", "-fno-tree-vectorize", "-Dmain=program", "-c", bench / "native.c", "-o",
                    folder / "native.o"], check=True)
    subprocess.run(["gcc", "-O2", folder / "repeat.c", folder / "native.o", "-o", folder / "native"], check=True)
    subprocess.run([build / "bin" / "vm-as", bench / "core.vmasm", f"--output={folder / 'core.vmfb'}"], check=True)


def measure_programs(build, rounds):
    """Seconds of each program by who ran it; None where something is missing."""
    bench = bench_folder()
    lua = find_lua(bench)
    if not lua:
        return None
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        build_programs(build, bench, folder)
        times = {program: {"machine": [], "lua": [], "native": []} for program in PROGRAMS}
        for _ in range(rounds):
            for program, (size, repeats) in PROGRAMS.items():
                commands = {
                    "machine": [build / "bin" / "vm-run", f"--module={folder / 'core.vmfb'}",
                                f"--function={program}", f"--input={size}", "--jit=off"],
                    "lua": [lua, bench / "core.lua", program, size],
                    "native": [folder / "native", program, size, repeats],
                }
                results = {}
                for who, command in commands.items():
                    results[who], seconds = timed(command)
                    times[program][who].append(seconds / (repeats if who == "native" else 1))
                if len(set(results.values())) != 1:
                    sys.exit(f"{program} {size} gives different results: {results}")
    return times


def geometric_mean(numbers):
    return math.exp(statistics.fmean(math.log(number) for number in numbers))


def program_rows(times):
    rows = []
    for program, by in times.items():
        least = {who: min(seconds) for who, seconds in by.items()}
        middle = {who: statistics.median(seconds) for who, seconds in by.items()}
        rows.append({"name": program, "size": PROGRAMS[program][0], "seconds": least["machine"],
                     "over_lua": least["machine"] / least["lua"],
                     "over_lua_median": middle["machine"] / middle["lua"],
                     "over_native": least["machine"] / least["native"]})
    rows.append({"name": "geometric mean", **{key: geometric_mean([row[key] for row in rows])
                                              for key in ("over_lua", "over_lua_median", "over_native")}})
    rows[-1]["limit_over_lua"] = OVER_LUA
    return rows


def benchmark(build, program, rounds):
    """The least of every counter of every row of a Google Benchmark program, in interleaved repetitions."""
    report = subprocess.run([build / "benchmarks" / program, "--benchmark_format=json", "--benchmark_min_time=0.1",
                             f"--benchmark_repetitions={rounds}", "--benchmark_enable_random_interleaving=true"],
                            check=True, capture_output=True, text=True, env={**os.environ})
    rows = {}
    for row in json.loads(report.stdout)["benchmarks"]:
        if row.get("run_type") != "iteration" or row.get("error_occurred"):
            continue
        known = rows.setdefault(row["run_name"], {})
        for counter, best in (("each", min), ("speed", max)):
            if counter in row:
                known[counter] = best(row[counter], known.get(counter, row[counter]))
    return rows


def cost_rows(build, rounds):
    machine = benchmark(build, "machine", rounds)
    decode = benchmark(build, "decode", rounds)
    turn = machine["native_turn"]["each"]
    each = {name: row["each"] for name, row in machine.items() if "each" in row}
    rows = []

    def add(name, seconds, limit=None):
        rows.append({"name": name, "turns": seconds / turn, "nanoseconds": seconds * 1e9, "limit": limit})

    add("turn of a native loop", turn)
    add("turn of the loop that calls", each["loop/turn"])
    add("internal call", each["loop/internal_call"] - each["loop/turn"], 20)
    add("import call", each["loop/import_call"] - each["loop/turn"], 33)
    add("call from outside", each["call_from_outside"], 200)
    if "saxpy" in each:
        add("saxpy.vmvx, an element", each["saxpy"], 30)
    speeds = [{"name": name, "megabytes_per_second": row["speed"] / 1e6,
               "limit": 100 if name in ("decode/synthetic", "decode/compiled") else None}
              for name, row in decode.items() if "speed" in row]
    return rows, speeds


def limit(text):
    return "" if text is None else str(text)


def print_tables(programs, costs, speeds):
    if programs:
        print(f"{'program':<28}{'over Lua':>10}{'(median)':>10}{'over native':>13}{'at most':>10}")
        for row in programs:
            print(f"{row['name'] + (' ' + str(row['size']) if 'size' in row else ''):<28}{row['over_lua']:>10.2f}"
                  f"{row['over_lua_median']:>10.2f}{row['over_native']:>13.1f}"
                  f"{limit(row.get('limit_over_lua')):>10}")
        print()
    print(f"{'what it costs':<28}{'turns':>10}{'ns':>10}{'':>13}{'at most':>10}")
    for row in costs:
        print(f"{row['name']:<28}{row['turns']:>10.1f}{row['nanoseconds']:>10.2f}{'':>13}{limit(row['limit']):>10}")
    print()
    print(f"{'bytecode made ready':<28}{'MB/s':>10}{'':>23}{'at least':>10}")
    for row in speeds:
        print(f"{row['name']:<28}{row['megabytes_per_second']:>10.0f}{'':>23}{limit(row['limit']):>10}")


def flags(document, rounds):
    """A parser of the flags that the benchmarks share."""
    parser = argparse.ArgumentParser(description=document.split("\n\n")[0])
    parser.add_argument("--json", action="store_true", help="one JSON object instead of tables")
    parser.add_argument("--rounds", type=int, default=rounds, help=f"{rounds} unless said otherwise")
    parser.add_argument("--build", type=lambda path: pathlib.Path(path).resolve(), default=SOURCE / "build" / "release")
    return parser


def main():
    arguments = flags(__doc__, 5).parse_args()
    times = measure_programs(arguments.build, arguments.rounds)
    programs = program_rows(times) if times else []
    costs, speeds = cost_rows(arguments.build, arguments.rounds)
    if arguments.json:
        print(json.dumps({"programs": programs, "costs": costs, "bytecode": speeds}, indent=2))
    else:
        print_tables(programs, costs, speeds)


if __name__ == "__main__":
    main()
