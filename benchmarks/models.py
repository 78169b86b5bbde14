#!/usr/bin/env python3
"""Whole networks beside ONNX Runtime: the time of a warm call of the same shapes with the same number of threads, in turns.

usage: benchmarks/models.py [--json] [--rounds=N] [--seconds=S] [--threads=N,N] [--only=TEXT] [--build=FOLDER]
                            [--onnxruntime=VERSION]

A round runs every program once, ONNX Runtime and Halyard in turns, each in a process of its own. The least time of all rounds
counts. Halyard runs the portable module, compiled: exact, with fused and reordered sums (--jit_math=fast) and, where there is
one, the module with microkernels.

ONNX Runtime is the npm package onnxruntime-node. It is installed below the build folder without its scripts, and is no part of
the product. The networks, their inputs and the scripts for weights and ONNX files lie beside the shared fixtures.
"""

import argparse
import json
import math
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parent.parent
BERT_INPUTS = [f"@berttiny.0.in{i}.npy" for i in range(3)]

# name, ONNX file, module, function, inputs
ROWS = [
    ("BERT-tiny, 32 tokens", "berttiny", "berttiny", "encode", BERT_INPUTS),
    ("MobileNetV2", "mobilenetv2", "mobilenetv2", "classify", ["@mobilenetv2.0.in0.npy"]),
    ("ResNet-18", "resnet18", "resnet18", "classify", ["@resnet18.0.in0.npy"]),
    ("GPT-2 shape, prefill of 64", "gpt2_prefill", "gpt2", "prefill", ["@gpt2.0.in0.npy", "64"]),
    ("GPT-2 shape, one token", "gpt2_decode", "gpt2", "decode", ["@gpt2.2.in0.npy"]),
]
# Functions whose calls change the program's state, with the number of calls of a process: a token is added at the
# next of 64 positions, and calls that warm up take some of them.
CALLS = {"decode": 16}

# column, suffix of the module, flags
WAYS = [
    ("exact", "vmvx", []),
    ("fast", "vmvx", ["--jit_math=fast"]),
    ("microkernels", "vmvx-uk-dt", []),
]


def run(command, **options):
    done = subprocess.run(command, capture_output=True, text=True, **options)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))} failed: {done.stderr[-2000:]}")
    return done.stdout


class Networks:
    """A folder below the build folder with modules, inputs, weights and ONNX files."""

    def __init__(self, build):
        programs = pathlib.Path(large.folder())  # with the weights of all networks but MobileNetV2
        self.models = pathlib.Path(large.source()).parent / "models"
        if not (self.models / "onnx_models.py").exists():
            raise large.Missing("the networks are not here; HALYARD_FIXTURES names the folder of fixtures beside them")
        self.folder = build / "models"
        large.write_weights(self.folder, programs / large.SCRIPT, large.MOBILENET)
        large.link_files([*programs.glob("*.vmfb"), *(programs / weights for weights in large.PROGRAMS.values()),
                          *self.models.glob("*.vmfb"), *self.models.glob("*.npy")], self.folder)
        self.write_onnx()

    def write_onnx(self):
        names = [f"{row[1]}.onnx" for row in ROWS]
        if all((self.folder / name).exists() for name in names):
            return
        with tempfile.TemporaryDirectory(dir=self.folder) as written:
            run([sys.executable, self.models / "onnx_models.py"], cwd=written)
            for name in names:
                os.rename(pathlib.Path(written) / "models" / name, self.folder / name)


class OnnxRuntime:
    def __init__(self, build, version):
        for tool in ("node", "npm"):
            if not shutil.which(tool):
                raise large.Missing(f"{tool} is not here, which runs ONNX Runtime; it is in the Debian package {tool.replace('node', 'nodejs')}")
        self.folder = build / f"onnxruntime-{version}"
        if not (self.folder / "node_modules" / "onnxruntime-node").exists():
            self.folder.mkdir(parents=True, exist_ok=True)
            run(["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix", self.folder,
                 f"onnxruntime-node@{version}"])

    def least(self, model, threads, seconds):
        return json.loads(run(["node", SOURCE / "benchmarks" / "onnxruntime.js", model, str(threads), str(seconds)],
                              env={**os.environ, "NODE_PATH": str(self.folder / "node_modules")}))["least"]


class Halyard:
    def __init__(self, build, networks, cache):
        self.tool, self.folder, self.cache = build / "bin" / "vm-bench", networks.folder, cache

    def least(self, row, way, threads, seconds):
        """None: there is no such module."""
        _, _, network, function, inputs = row
        _, suffix, flags = way
        module = self.folder / f"{network}.{suffix}.vmfb"
        if not module.exists():
            return None
        device = "local-sync" if threads == 1 else f"local-task?workers={threads}"
        printed = run([self.tool, f"--module={module}", f"--function={function}", f"--device={device}",
                       f"--parameters=model={(large.PROGRAMS | large.MOBILENET)[network]}", "--jit=always", f"--jit_cache={self.cache}", *flags,
                       *(f"--input={text}" for text in inputs), "--benchmark_filter=^BM_", "--benchmark_format=json",
                       f"--benchmark_min_time={f'{CALLS[function]}x' if function in CALLS else seconds}"], cwd=self.folder)
        return json.loads(printed)["benchmarks"][0]["min"]


def measure(row, threads, rounds, seconds, peer, halyard):
    times = {"onnxruntime": []} | {way[0]: [] for way in WAYS}
    for _ in range(rounds):
        times["onnxruntime"].append(peer.least(halyard.folder / f"{row[1]}.onnx", threads, seconds))
        for way in WAYS:
            times[way[0]].append(halyard.least(row, way, threads, seconds))
    least = {name: min(values) for name, values in times.items() if None not in values}
    ratios = {name: value / least["onnxruntime"] for name, value in least.items() if name != "onnxruntime"}
    return {"name": row[0], "threads": threads, "seconds": least, "ratio": ratios}


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def means(results):
    """Of a number of threads: exact, and the better one of the other ways."""
    return {"exact": geometric_mean([result["ratio"]["exact"] for result in results]),
            "fast or microkernels": geometric_mean(
                [min(ratio for name, ratio in result["ratio"].items() if name != "exact") for result in results])}


def print_head(threads):
    print(f"\n{'milliseconds, over ONNX Runtime':<32}{'ONNX Runtime':>12}" + "".join(f"{way[0]:>20}" for way in WAYS) +
          f"    {threads} thread{'s' if threads > 1 else ''}")


def print_row(result):
    line = f"{result['name']:<32}{result['seconds']['onnxruntime'] * 1e3:>12.2f}"
    for name, *_ in WAYS:
        if name in result["ratio"]:
            line += f"{result['seconds'][name] * 1e3:>12.2f} ({result['ratio'][name]:.2f})"
    print(line, flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--json", action="store_true", help="one JSON object instead of tables")
    parser.add_argument("--rounds", type=int, default=5, help="5 unless said otherwise")
    parser.add_argument("--seconds", type=float, default=0.5, help="of each program in a round; 0.5 unless said otherwise")
    parser.add_argument("--threads", default="1,2", help="numbers of threads; 1,2 unless said otherwise")
    parser.add_argument("--only", default="", help="networks with this in their name")
    parser.add_argument("--build", type=pathlib.Path, default=SOURCE / "build" / "release")
    parser.add_argument("--onnxruntime", default="1.30.0", metavar="VERSION", help="1.30.0 unless said otherwise")
    arguments = parser.parse_args()
    build = arguments.build.resolve()
    os.environ["HALYARD_BUILD"], os.environ["HALYARD_SOURCE"] = str(build), str(SOURCE)
    sys.path.insert(0, str(SOURCE / "tests"))
    global large
    import large  # it wants to know the build
    try:
        peer = OnnxRuntime(build, arguments.onnxruntime)
        networks = Networks(build)
    except large.Missing as missing:
        print("skipped:", missing)
        return 0
    report = {"onnxruntime": arguments.onnxruntime, "rounds": arguments.rounds, "rows": [], "mean": {}}
    with tempfile.TemporaryDirectory() as cache:
        halyard = Halyard(build, networks, cache)
        for threads in map(int, arguments.threads.split(",")):
            results = []
            if not arguments.json:
                print_head(threads)
            for row in ROWS:
                if arguments.only in row[0]:
                    results.append(measure(row, threads, arguments.rounds, arguments.seconds, peer, halyard))
                    if not arguments.json:
                        print_row(results[-1])
            report["rows"] += results
            if results:
                report["mean"][threads] = means(results)
                if not arguments.json:
                    print("geometric mean: " + ", ".join(f"{name} {value:.2f}" for name, value in report["mean"][threads].items()))
    if arguments.json:
        print(json.dumps(report, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
