#!/usr/bin/env python3
"""Kernels in three forms in one table: compiled from bytecode at load (jit=always), interpreted, and native code in the
module.

usage: benchmarks/jit.py [--json] [--rounds=N] [--only=TEXT] [--build=FOLDER]

The programs are ../bench/kernels of HALYARD_FIXTURES, each compiled twice: NAME.vmvx.vmfb and NAME.llvm-cpu.vmfb. All three
forms run alternately, N rounds, on local-sync; the result is the minimum CPU time of a warm call.
"""

import argparse
import json
import math
import os
import pathlib
import subprocess
import sys

SOURCE = pathlib.Path(__file__).resolve().parent.parent
OVER_NATIVE = 1.5  # of the geometric mean, at most
WAYS = {"jit": ("vmvx", "local-sync?jit=always"), "interpreted": ("vmvx", "local-sync?jit=off"), "native": ("llvm-cpu", "local-sync")}


def kernels_folder():
    fixtures = pathlib.Path(os.environ.get("HALYARD_FIXTURES", SOURCE / ".." / "shared" / "fixtures"))
    return fixtures / ".." / "bench" / "kernels"


def warm_call(build, folder, case, way):
    """Seconds of CPU time of a warm call, the mean of one process."""
    kind, device = WAYS[way]
    module = case["module"].replace(".vmvx.", f".{kind}.")
    done = subprocess.run([str(build / "bin" / "vm-bench"), f"--module={module}", f"--function={case['function']}",
                           f"--device={device}", *(f"--input={text}" for text in case["inputs"]), "--benchmark_filter=^BM_",
                           "--benchmark_format=json", "--benchmark_min_time=0.1"], cwd=folder, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(done.args)} failed: {done.stderr}")
    row = json.loads(done.stdout)["benchmarks"][0]
    return row["cpu_time"] * {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}[row["time_unit"]]


def mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--json", action="store_true", help="one JSON object instead of a table")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="", help="kernels with this in their name")
    parser.add_argument("--build", type=pathlib.Path, default=SOURCE / "build" / "release")
    arguments = parser.parse_args()
    folder = kernels_folder()
    if not (folder / "cases.json").exists():
        print(f"skipped: no kernels in {folder}")
        return
    build = arguments.build.resolve()
    if not (build / "lib" / "halyard" / "halyard-jit-llvm.so").exists():
        print("skipped: this build has no compiler (llvm-19-dev was not there)")
        return
    cases = {case["function"]: case for case in json.loads((folder / "cases.json").read_text())
             if ".vmvx." in case["module"] and arguments.only in case["function"]}
    rows = []
    if not arguments.json:
        print(f"{'':<18}{'jit':>12}{'interpreted':>14}{'native':>12}{'over native':>13}{'over interpreted':>18}")
    for name, case in cases.items():
        times = {way: min(samples) for way, samples in zip(WAYS, zip(*(
            [warm_call(build, folder, case, way) for way in WAYS] for _ in range(arguments.rounds))))}
        row = {"name": name, **times, "over_native": times["jit"] / times["native"],
               "over_interpreted": times["jit"] / times["interpreted"]}
        rows.append(row)
        if not arguments.json:
            print(f"{name:<18}{times['jit'] * 1e6:>9.1f} us{times['interpreted'] * 1e6:>11.1f} us{times['native'] * 1e6:>9.1f} us"
                  f"{row['over_native']:>13.2f}{row['over_interpreted']:>18.3f}", flush=True)
    if not rows:
        sys.exit(f"no kernel has '{arguments.only}' in its name")
    native = mean([row["over_native"] for row in rows])
    interpreted = mean([row["over_interpreted"] for row in rows])
    if arguments.json:
        print(json.dumps({"rows": rows, "over_native": native, "over_interpreted": interpreted, "most_over_native": OVER_NATIVE}))
    else:
        print(f"geometric mean over native {native:.2f} (at most {OVER_NATIVE}), over interpreted {interpreted:.3f}")


if __name__ == "__main__":
    main()
