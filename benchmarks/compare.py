#!/usr/bin/env python3
"""Compares two builds of Halyard, to find slower rows.

usage: benchmarks/compare.py BEFORE AFTER [--rounds=N] [--json] [--only=TEXT]

BEFORE and AFTER are build folders (build/release of two work trees). Every program runs alternately from each build, for
N rounds; a row compares the minimum times. A row is marked if AFTER takes more than 1.03 times BEFORE.

Rows: the benchmark programs `call`, `cpu` and `machine`, the programs of core.vmasm by `vm-run` (if ../bench of
HALYARD_FIXTURES exists), and Vulkan's dispatch, as the ratio to the hand-written one that the program itself measures.
"""

import argparse
import json
import math
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

import machine
import processor_time

LIMIT = 1.03
SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}


def google_benchmark(build, program):
    """Seconds of each row of one run."""
    path = build / "benchmarks" / program
    if not path.exists():
        return {}
    done = subprocess.run([path, "--benchmark_format=json", "--benchmark_min_time=0.2"], capture_output=True, text=True,
                          check=True)
    rows = {}
    for row in json.loads(done.stdout)["benchmarks"]:
        if not row.get("error_occurred") and not row["name"].startswith("native"):
            time = row["real_time"] if row["name"].endswith("/real_time") else row["cpu_time"]
            rows[f"{program}: {row['name'].removesuffix('/real_time')}"] = time * SECONDS[row["time_unit"]]
    return rows


def vulkan_dispatch(build):
    """Ratios of the driver to Vulkan by hand."""
    path = build / "benchmarks" / "vulkan_dispatch"
    if not path.exists():
        return {}
    text = subprocess.run([path], capture_output=True, text=True, check=False).stdout
    return {f"vulkan over by hand: {name.strip()}": float(ratio)
            for name, ratio in re.findall(r"^(recorded.*?)\s+[\d.]+\s+[\d.]+\s+([\d.]+)$", text, re.MULTILINE)}


def jit_off(build):
    """The machine itself is compared; vm-run before 0.2 has no compiler and no such flag."""
    text = subprocess.run([build / "bin" / "vm-run", "--help"], capture_output=True, text=True, check=True).stdout
    return ["--jit=off"] if "--jit=" in text else []


def core_program(build, module, program):
    more = jit_off(build)
    before = processor_time.of_children()
    subprocess.run([build / "bin" / "vm-run", f"--module={module}", f"--function={program}",
                    f"--input={machine.PROGRAMS[program][0]}", *more], capture_output=True, check=True)
    return processor_time.of_children() - before


def core_programs(build, module):
    return {f"vm-run: {name}": core_program(build, module, name) for name in machine.PROGRAMS} if module else {}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=pathlib.Path)
    parser.add_argument("after", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--only", default="", help="parts whose name has this text: call, cpu, machine, vm-run, vulkan")
    arguments = parser.parse_args()
    builds = {"before": arguments.before.resolve(), "after": arguments.after.resolve()}
    for build in builds.values():
        if not (build / "bin" / "vm-run").exists():
            sys.exit(f"{build} has no bin/vm-run: build both trees first")
    with tempfile.TemporaryDirectory() as folder:
        module = pathlib.Path(folder) / "core.vmfb"
        source = machine.bench_folder() / "core.vmasm"
        if source.exists():
            subprocess.run([builds["after"] / "bin" / "vm-as", source, f"--output={module}"], check=True)
        else:
            module = None
        parts = {
            "call": lambda build: google_benchmark(build, "call"),
            "cpu": lambda build: google_benchmark(build, "cpu"),
            "machine": lambda build: google_benchmark(build, "machine"),
            "vm-run": lambda build: core_programs(build, module),
            "vulkan": vulkan_dispatch,
        }
        times = {}
        for part, measure in parts.items():
            if arguments.only not in part:
                continue
            for turn in range(arguments.rounds):
                # Who comes first changes, so that neither always runs on a warmer machine.
                for which in (("before", "after") if turn % 2 == 0 else ("after", "before")):
                    for name, value in measure(builds[which]).items():
                        times.setdefault(name, {}).setdefault(which, []).append(value)
    rows = []
    for name, by in times.items():
        if len(by) == 2:
            # A ratio has no least value that means anything: its median counts.
            of = statistics.median if name.startswith("vulkan") else min
            before, after = of(by["before"]), of(by["after"])
            rows.append({"name": name, "before": before, "after": after, "ratio": after / before})
    core = [row["ratio"] for row in rows if row["name"].startswith("vm-run")]
    if core:
        rows.append({"name": "vm-run: geometric mean", "ratio": math.exp(statistics.fmean(map(math.log, core)))})
    if arguments.json:
        print(json.dumps(rows, indent=2))
    else:
        print(f"{'row':<46} {'before':>11} {'after':>11} {'ratio':>6}")
        for row in rows:
            values = [f"{row[key]:11.4g}" if key in row else " " * 11 for key in ("before", "after")]
            print(f"{row['name']:<46} {values[0]} {values[1]} {row['ratio']:6.3f}{' *' if row['ratio'] > LIMIT else ''}")
        print(f"least of {arguments.rounds} rounds in turns, seconds (Vulkan: medians of ratios); *: more than {LIMIT}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
