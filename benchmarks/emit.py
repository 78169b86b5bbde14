#!/usr/bin/env python3
"""Kernels ahead of time (vm-cc --emit=vmfb) beside the same kernels compiled at run time: times of calls on local-sync.

usage: benchmarks/emit.py [--json] [--rounds=N] [--only=TEXT] [--build=FOLDER] [--target=PROCESSOR] [--models=FOLDER] [--products]

The kernels lie beside the fixtures, in ../bench of HALYARD_FIXTURES, and the models in ../models and ../large; --models names a folder with the
weights and inputs of models (berttiny.irpa, berttiny.0.in0.npy, ...), which are left out without it. The processor is the best
x86-64 level of this machine, with avx512vnni where it has that. The runs of a row take turns, N rounds, and the least time of
each counts. The goal is 1.05 of the time of code that is compiled at run time. --products measures the microkernel mmt4d instead: products
of few rows with 8x4 tiles, with a right side in the cache and one of 64 MiB, beside a device with the instructions of the processor.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parent.parent
KERNELS = ["depthwise_conv", "gelu", "matmul_128", "relu_bias", "requantize_i8", "scan", "softmax"]
# By model: its function, and the module's file; the second one of BERT-tiny has microkernels.
MODELS = [("berttiny", "encode", "models/berttiny.vmvx.vmfb"), ("resnet18", "classify", "models/resnet18.vmvx.vmfb"),
          ("mobilenetv2", "classify", "models/mobilenetv2.vmvx.vmfb"), ("berttiny", "encode", "large/berttiny.vmvx-uk-dt.vmfb")]
SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1}
GOAL = 1.05
# Of a device, by processor.
INSTRUCTIONS = {"x86-64-v2": "sse4", "x86-64-v3": "avx2", "x86-64-v4": "avx512", "x86-64-v4+avx512vnni": "avx512-vnni"}
PRODUCTS = [(name, kind, rows) for name, kind in (("f32", 1), ("s8", 2)) for rows in (1, 2, 4)]


def best_processor():
    flags = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").split()
    for name, feature in {"x86-64-v4": "avx512bw", "x86-64-v3": "avx2", "x86-64-v2": "sse4_2"}.items():
        if feature in flags:
            return name + ("+avx512vnni" if name == "x86-64-v4" and "avx512_vnni" in flags else "")
    return sys.exit("no x86-64 processor of a known level; name one with --target")


def run(command):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{command[0]} failed with {done.returncode}: {done.stderr[:2000]}")
    return done.stdout


def seconds(bench, module, device, flags):
    rows = json.loads(run([bench, f"--module={module}", f"--device={device}", *flags, "--jit_cache=", "--benchmark_filter=^BM_",
                           "--benchmark_format=json"]))["benchmarks"]
    return min(row["real_time"] * SECONDS[row["time_unit"]] for row in rows)


def product_programs(folder):
    """Name, module and flags: with a right side that is in a cache, a hundred in a call, and with one of 64 MiB."""
    sys.path.insert(0, str(SOURCE / "tests"))
    import microkernel_programs as calls
    for place, size, count in (("", calls.SIZE, 100), (", from memory", 1 << 24, 4)):
        calls.SIZE = size
        inputs = [f"--input={size}xf32={number}" for number in (1, 2)]
        for name, kind, rows in PRODUCTS:
            tiles, steps = 16, 64  # of the right side
            if place:
                tiles, steps = 4096 // (4 if kind == 1 else 1), 512
            module = folder / f"{name}_{rows}_{count}.vmasm"
            call = [calls.LHS, 0, steps * rows * 4, calls.RHS, 0, steps * 32, calls.OUT, 0, tiles * rows * 8, 1, tiles, steps, rows, 8, 4, kind]
            module.write_text(calls.text([("mmt4d", call)] * count, begins_as_copy=False), encoding="utf-8")
            yield f"{name}, {rows} rows{place}", module, ["--function=mul", *inputs]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="")
    parser.add_argument("--build", type=pathlib.Path, default=SOURCE / "build" / "release")
    parser.add_argument("--target", default="")
    parser.add_argument("--models", type=pathlib.Path)
    parser.add_argument("--products", action="store_true")
    options = parser.parse_args()
    shared = pathlib.Path(os.environ.get("HALYARD_FIXTURES", SOURCE / ".." / "shared" / "fixtures")) / ".."
    kernels = shared / "bench" / "kernels"
    if not kernels.is_dir():
        print("left out: the modules are not here; HALYARD_FIXTURES names the folder beside theirs")
        return
    target = options.target or best_processor()
    programs = [(name, kernels / f"{name}.vmvx.vmfb",
                 [f"--function={name}", *(f"--input=@{each}" for each in sorted(kernels.glob(f"{name}.in*.npy")))]) for name in KERNELS]
    if options.models:
        programs += [(name + ("-uk" if "-uk" in module else ""), shared / module,
                      [f"--function={function}", f"--parameters=model={options.models / name}.irpa",
                       *(f"--input=@{each}" for each in sorted(options.models.glob(f"{name}.0.in*.npy")))])
                     for name, function, module in MODELS if (options.models / f"{name}.irpa").exists() and (shared / module).exists()]
    device = f"local-sync?isa={INSTRUCTIONS[target]}" if options.products else "local-sync?jit=always"
    rows = []
    bench = options.build / "bin" / "vm-bench"
    with tempfile.TemporaryDirectory() as folder:
        made = pathlib.Path(folder) / "made.vmfb"
        if options.products:
            programs = list(product_programs(pathlib.Path(folder)))
        for name, module, flags in programs:
            if options.only not in name:
                continue
            run([options.build / "bin" / "vm-cc", module, "--emit=vmfb", f"--target={target}", "--no-portable", "-o", made])
            times = [[], []]
            for _ in range(options.rounds):
                times[0].append(seconds(bench, module, device, flags))
                times[1].append(seconds(bench, made, "local-sync?jit=off", flags))
            at_run_time, ahead = map(min, times)
            rows.append({"row": name, "at run time": at_run_time, "ahead of time": ahead, "ratio": ahead / at_run_time})
    if options.json:
        print(json.dumps({"unit": "seconds", "target": target, "goal": GOAL, "rows": rows}, indent=1))
        return
    print(f"{'row':24}{'at run time':>14}{'ahead of time':>16}{'ratio':>8}  (microseconds; {target}; goal {GOAL})")
    for row in rows:
        print(f"{row['row']:24}{row['at run time'] * 1e6:14,.1f}{row['ahead of time'] * 1e6:16,.1f}{row['ratio']:8.2f}")


if __name__ == "__main__":
    main()
