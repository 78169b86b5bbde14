#!/usr/bin/env python3
"""The second start of a program: processes of vm-run that find its compiled code in the cache, beside processes whose code is
in memory as soon as the module is, and beside interpreted ones.

usage: benchmarks/jit_cache.py [--json] [--rounds=N] [--build=FOLDER]

The programs are one call of each kernel of ../bench/kernels of HALYARD_FIXTURES on local-sync. `cached` is the VMVX module with
--jit=always and a cache that a run before has filled, `native` the same program with native code in its module, `compiled` the
VMVX module with --jit=always and no cache, `interpreted` with --jit=off. All run in turn, N rounds; times are of the wall clock
from the start of the process to its end, medians. `start` is the median of `cached` less `native`, and less the difference that
the kernels themselves make: the time of a warm call of both, by vm-bench.
"""

import json
import statistics
import subprocess
import sys
import tempfile
import time

import jit
import machine

WAYS = {"cached": ("vmvx", ["--jit=always"]), "native": ("llvm-cpu", ["--jit=off"]),
        "compiled": ("vmvx", ["--jit=always", "--jit_cache="]), "interpreted": ("vmvx", ["--jit=off"])}


def command(build, case, way, cache):
    kind, flags = WAYS[way]
    module = case["module"].replace(".vmvx.", f".{kind}.")
    if way == "cached":
        flags = [*flags, f"--jit_cache={cache}"]
    return [str(build / "bin" / "vm-run"), f"--module={module}", f"--function={case['function']}", "--device=local-sync",
            "--output_max_element_count=1", *flags, *case["flags"], *(f"--input={text}" for text in case["inputs"])]


def timed(words, folder):
    begin = time.perf_counter()
    done = subprocess.run(words, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(words)} failed: {done.stderr}")
    return time.perf_counter() - begin


def main():
    arguments = machine.flags(__doc__, 15).parse_args()
    folder = jit.needed_kernels(arguments.build)
    cases = {case["function"]: case for case in json.loads((folder / "cases.json").read_text()) if ".vmvx." in case["module"]}
    rows = []
    with tempfile.TemporaryDirectory() as cache:
        for name, case in cases.items():
            times = {way: [] for way in WAYS}
            timed(command(arguments.build, case, "cached", cache), folder)  # fills the cache
            for _ in range(arguments.rounds):
                for way, samples in times.items():
                    samples.append(timed(command(arguments.build, case, way, cache), folder))
            row = {"name": name, **{way: statistics.median(samples) for way, samples in times.items()}}
            kernels = jit.warm_call(arguments.build, folder, case, "jit") - jit.warm_call(arguments.build, folder, case, "native")
            apart = statistics.median(cached - native for cached, native in zip(times["cached"], times["native"]))
            rows.append({**row, "start": apart - kernels})
    median = statistics.median(row["start"] for row in rows)
    if arguments.json:
        print(json.dumps({"rows": rows, "median_start": median}))
        return
    print(f"{'':<18}{'cached':>11}{'native':>11}{'compiled':>11}{'interpreted':>14}{'start':>11}")
    for row in rows:
        print(f"{row['name']:<18}" + "".join(f"{row[way] * 1e3:>8.1f} ms" for way in ("cached", "native", "compiled")) +
              f"{row['interpreted'] * 1e3:>11.1f} ms{row['start'] * 1e3:>+8.2f} ms")
    print(f"median of start {median * 1e3:+.2f} ms")


if __name__ == "__main__":
    main()
