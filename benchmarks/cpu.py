#!/usr/bin/env python3
"""The kernels of the local devices in four tables: a whole call beside OpenBLAS, products beside the processor's peak,
matrices times a few rows beside memcpy and memchr, movers of bytes beside memcpy and memset.

usage: benchmarks/cpu.py [--json] [--rounds=N] [--build=FOLDER]

Every program runs N rounds in turn; of a row counts the median of its speeds, and all rows of a table come from the same
rounds. OpenBLAS stands twice: with the code that it chooses for this processor, and with the code for SKYLAKEX (AVX-512),
which older versions do not choose for processors that they do not know.
"""

import json
import os
import pathlib
import statistics
import subprocess
import sys

import machine

SOURCE = pathlib.Path(__file__).resolve().parent.parent

# The peak that limits products of each type, by instruction set.
PEAKS = {
    "avx512-bf16": {"f32": "avx512_f32", "s16": "avx512_s16", "s8": "avx512_s8", "bf16": "avx512_bf16"},
    "avx512-vnni": {"f32": "avx512_f32", "s16": "avx512_s16", "s8": "avx512_s8", "bf16": "avx512_f32"},
    "avx2": {"f32": "avx2_f32", "bf16": "avx2_f32"},
}
LEAST = {"f32f32f32": 0.9}
MOVERS = {"copy": ("memcpy", 0.9), "fill": ("memset", 0.9), "pack_lhs_f32": ("memcpy", 0.7),
          "pack_rhs_f32": ("memcpy", 0.7), "pack_lhs_s8": ("memcpy", 0.7), "pack_rhs_s8": ("memcpy", 0.7),
          "unpack_f32": ("memcpy", 0.7), "pack_lhs_f32_8x4": ("memcpy", None), "pack_rhs_f32_8x4": ("memcpy", 0.7),
          "pack_lhs_s8_8x4": ("memcpy", None), "pack_rhs_s8_8x4": ("memcpy", 0.7), "unpack_f32_8x8": ("memcpy", 0.7)}
LEAST_OF_MEMCHR = {"1x8x4": 0.85, "2x8x4": 0.85}


def run(program, filters, environment=None, repetitions=1):
    """The speeds of every row of a Google Benchmark program, and its labels."""
    report = subprocess.run([program, "--benchmark_format=json", "--benchmark_min_time=0.05",
                             f"--benchmark_filter={filters}", f"--benchmark_repetitions={repetitions}",
                             "--benchmark_enable_random_interleaving=true"],
                            check=True, capture_output=True, text=True, env={**os.environ, **(environment or {})})
    speeds, labels = {}, {}
    for row in json.loads(report.stdout)["benchmarks"]:
        if row.get("run_type") != "iteration" or row.get("error_occurred"):
            continue
        name = row["run_name"].removesuffix("/real_time")
        speeds.setdefault(name, []).append(row["speed"])
        labels[name] = row.get("label", "")
    return speeds, labels


def whole_calls(build, rounds):
    program = build / "benchmarks" / "cpu"
    speeds = {}
    for _ in range(rounds):
        for environment, suffix in (({}, ""), ({"OPENBLAS_CORETYPE": "SKYLAKEX"}, " as SkylakeX")):
            found, labels = run(program, "." if not suffix else "openblas", environment)
            for name, values in found.items():
                name = name.removeprefix("matmul_512/")
                if name == "openblas":
                    name += suffix or f" as {labels['matmul_512/openblas']}"
                speeds.setdefault(name, []).extend(values)
    speeds = {name: statistics.median(values) for name, values in speeds.items()}
    reference = next((value for name, value in speeds.items() if name.startswith("openblas")), None)
    return [{"name": name, "milliseconds": 512**3 / speed * 1e3,
             "over_openblas": speed / reference if reference else None} for name, speed in speeds.items()]


def kernels(build, rounds):
    program = build / "benchmarks" / "kernels"
    speeds = {}
    for filters in ("peak|mmt4d/(" + "|".join(PEAKS) + ")/", "move|matvec/(" + "|".join(PEAKS) + ")/"):
        found, _ = run(program, filters, repetitions=rounds)
        speeds.update({name: statistics.median(values) for name, values in found.items()})
    products = []
    for name, speed in speeds.items():
        if not name.startswith("mmt4d/"):
            continue
        _, instructions, kind, *rest = name.split("/")
        family = next((family for family in ("bf16", "s8", "s16") if kind.startswith(family)), "f32")
        peak = speeds.get("peak/" + PEAKS[instructions].get(family, ""))
        products.append({"instructions": instructions, "type": "/".join([kind, *rest]), "gigaproducts": speed / 1e9,
                         "of_peak": speed / peak if peak else None,
                         "least": LEAST.get(kind) if not rest else None})
    vectors = []
    for name, speed in speeds.items():
        if not name.startswith("matvec/"):
            continue
        _, instructions, kind, tile = name.split("/")
        vectors.append({"instructions": instructions, "type": f"{kind}/{tile}", "gigabytes_per_second": speed / 1e9,
                        "over_memcpy": speed / speeds[f"move/memcpy/{1 << 26}"],
                        "over_memchr": speed / speeds[f"move/read/{1 << 26}"], "least": LEAST_OF_MEMCHR.get(tile)})
    movers = []
    for name, speed in speeds.items():
        if not name.startswith("move/"):
            continue
        _, mover, size = name.split("/")
        if mover in MOVERS:
            reference, least = MOVERS[mover]
            movers.append({"name": mover, "bytes": int(size), "gigabytes_per_second": speed / 1e9,
                           "reference": reference, "over_reference": speed / speeds[f"move/{reference}/{size}"],
                           "least": least if int(size) >= 1 << 26 else None})
    def place(row):
        return list(PEAKS).index(row["instructions"]), row["type"]

    return (sorted(products, key=place), sorted(vectors, key=place),
            sorted(movers, key=lambda row: (list(MOVERS).index(row["name"]), row["bytes"])))


def number(value, digits=2):
    return "" if value is None else f"{value:.{digits}f}"


def print_tables(calls, products, vectors, movers):
    print(f"{'512 x 512 x 512, f32':<36}{'ms':>10}{'over OpenBLAS':>16}")
    for row in calls:
        print(f"{row['name']:<36}{row['milliseconds']:>10.2f}{number(row['over_openblas']):>16}")
    print(f"\n{'products alone':<36}{'G/s':>10}{'of peak':>16}{'at least':>10}")
    for row in products:
        print(f"{row['instructions'] + ' ' + row['type']:<36}{row['gigaproducts']:>10.1f}{number(row['of_peak']):>16}"
              f"{number(row['least']):>10}")
    print(f"\n{'64 MiB times a few rows':<36}{'GB/s':>10}{'over memcpy':>16}{'over memchr':>16}{'at least':>10}")
    for row in vectors:
        print(f"{row['instructions'] + ' ' + row['type']:<36}{row['gigabytes_per_second']:>10.1f}"
              f"{number(row['over_memcpy']):>16}{number(row['over_memchr']):>16}{number(row['least']):>10}")
    print(f"\n{'movers of bytes':<36}{'GB/s':>10}{'over':>16}{'at least':>10}")
    for row in movers:
        print(f"{row['name'] + ' ' + str(row['bytes']):<36}{row['gigabytes_per_second']:>10.1f}"
              f"{row['reference'] + ' ' + number(row['over_reference']):>16}{number(row['least']):>10}")


def main():
    arguments = machine.flags(__doc__, 7).parse_args()
    calls = whole_calls(arguments.build, arguments.rounds)
    products, vectors, movers = kernels(arguments.build, arguments.rounds)
    if arguments.json:
        print(json.dumps({"calls": calls, "products": products, "vectors": vectors, "movers": movers}, indent=2))
    else:
        print_tables(calls, products, vectors, movers)
    return 0


if __name__ == "__main__":
    sys.exit(main())
