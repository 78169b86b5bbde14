#!/usr/bin/env python3
"""Kernels in three forms in one table: compiled from bytecode at load (jit=always), interpreted, and native code in the
module. And host code in four: compiled, interpreted, in Lua 5.4, and in C.

usage: benchmarks/jit.py [--json] [--rounds=N] [--only=TEXT] [--build=FOLDER]

The kernels are ../bench/kernels of HALYARD_FIXTURES, each compiled twice: NAME.vmvx.vmfb and NAME.llvm-cpu.vmfb; and so are the
cases, of the folder `compiled`, of which most are so small that a call is little more than its way to the device. All three
forms run alternately, N rounds, on local-sync; the result is the minimum CPU time of a warm call. Beside it stands the least
CPU time of loading the program with jit=always, most of which is compiling its kernels. The programs of host code
are those of machine.py: the least CPU time of N warm calls, beside that of N processes of Lua and of the C program.
"""

import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

import machine
import processor_time

SOURCE = pathlib.Path(__file__).resolve().parent.parent
OVER_NATIVE = 1.5  # of the geometric mean, at most
MEDIAN_TO_COMPILE = 0.020  # seconds, at most
PROGRAMS_OVER_LUA, PROGRAMS_OVER_NATIVE = 0.08, 2
CASES = pathlib.Path("..", "..", "fixtures", "compiled")  # beside the folder of kernels
WAYS = {"jit": ("vmvx", "local-sync?jit=always"), "interpreted": ("vmvx", "local-sync?jit=off"), "native": ("llvm-cpu", "local-sync")}


def kernels_folder():
    fixtures = pathlib.Path(os.environ.get("HALYARD_FIXTURES", SOURCE / ".." / "shared" / "fixtures"))
    return fixtures / ".." / "bench" / "kernels"


def measured(build, folder, flags, seconds, row="^BM_"):
    """Seconds of CPU time of a warm call, or of another row of vm-bench, the mean of one process."""
    done = subprocess.run([str(build / "bin" / "vm-bench"), *flags, f"--benchmark_filter={row}", "--benchmark_format=json",
                           f"--benchmark_min_time={seconds}"], cwd=folder, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(done.args)} failed: {done.stderr}")
    row = json.loads(done.stdout)["benchmarks"][0]
    return row["cpu_time"] * {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}[row["time_unit"]]


def warm_call(build, folder, case, way, row="^BM_"):
    kind, device = WAYS[way]
    module = case["module"].replace(".vmvx.", f".{kind}.")
    return measured(build, folder, [f"--module={module}", f"--function={case['function']}", f"--device={device}", "--jit=off",
                                    "--jit_cache=", *case["flags"], *(f"--input={text}" for text in case["inputs"])], 0.1, row)


def process(command):
    """Seconds of processor time of a process."""
    before = processor_time.of_children()
    subprocess.run([str(part) for part in command], capture_output=True, check=True)
    return processor_time.of_children() - before


def program_rows(build, rounds, only):
    """Rows of host code; none where Lua or the programs are missing."""
    bench = machine.bench_folder()
    programs = {name: sizes for name, sizes in machine.PROGRAMS.items() if only in name}
    lua = machine.find_lua(bench) if programs else None
    if not lua:
        return []
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        machine.build_programs(build, bench, folder)
        for program, (size, repeats) in programs.items():
            times = {"jit": [], "interpreted": [], "lua": [], "native": []}
            flags = [f"--module={folder / 'core.vmfb'}", f"--function={program}", f"--input={size}", "--jit_cache="]
            for _ in range(rounds):
                times["jit"].append(measured(build, folder, [*flags, "--jit=always"], 0.1))
                times["interpreted"].append(measured(build, folder, [*flags, "--jit=off"], 0.1))
                times["lua"].append(process([lua, bench / "core.lua", program, size]))
                times["native"].append(process([folder / "native", program, size, repeats]) / repeats)
            least = {who: min(samples) for who, samples in times.items()}
            rows.append({"name": program, **least, **{f"over_{who}": least["jit"] / least[who] for who in least if who != "jit"}})
    return rows


def mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def kernel_rows(build, folder, arguments):
    """A row for each function of a folder that has a VMVX module and one of native code: its last case."""
    cases = {}
    for case in json.loads((folder / "cases.json").read_text()):
        if case["module"].endswith(".vmvx.vmfb") and (folder / case["module"].replace(".vmvx.", ".llvm-cpu.")).exists():
            cases[f"{case['module'].partition('.')[0]}.{case['function']}"] = case
    rows = []
    for name, case in cases.items():
        if arguments.only not in name:
            continue
        times = {way: min(samples) for way, samples in zip(WAYS, zip(*(
            [warm_call(build, folder, case, way) for way in WAYS] for _ in range(arguments.rounds))))}
        rows.append({"name": name, **times, "over_native": times["jit"] / times["native"],
                     "over_interpreted": times["jit"] / times["interpreted"],
                     "to_compile": min(warm_call(build, folder, case, "jit", "^init$") for _ in range(arguments.rounds))})
    return rows


def means(rows):
    return {**{key: mean([row[key] for row in rows]) for key in ("over_native", "over_interpreted")},
            "to_compile": statistics.median(row["to_compile"] for row in rows)}


def print_kernels(title, rows):
    """A case may have many kernels, so that there is no limit on the time to compile them."""
    if not rows:
        return
    print(f"{title:<28}{'jit':>12}{'interpreted':>14}{'native':>12}{'over native':>13}{'over interpreted':>18}{'to compile':>13}")
    for row in rows:
        print(f"{row['name']:<28}{row['jit'] * 1e6:>9.1f} us{row['interpreted'] * 1e6:>11.1f} us{row['native'] * 1e6:>9.1f} us"
              f"{row['over_native']:>13.2f}{row['over_interpreted']:>18.3f}{row['to_compile'] * 1e3:>10.1f} ms")
    of = means(rows)
    limit = f" (at most {MEDIAN_TO_COMPILE * 1e3:.0f})" if title == "kernels" else ""
    print(f"geometric mean over native {of['over_native']:.2f} (at most {OVER_NATIVE}), over interpreted "
          f"{of['over_interpreted']:.3f}; median to compile {of['to_compile'] * 1e3:.1f} ms{limit}", flush=True)


def needed_kernels(build):
    """The folder of the kernels; ends the benchmark where they are not here, or the build has no compiler."""
    folder = kernels_folder()
    if not (folder / "cases.json").exists():
        print(f"skipped: no kernels in {folder}")
        sys.exit(0)
    if not (build / "lib" / "halyard" / "halyard-jit-llvm.so").exists():
        print("skipped: this build has no compiler (llvm-19-dev was not there)")
        sys.exit(0)
    return folder


def main():
    parser = machine.flags(__doc__, 5)
    parser.add_argument("--only", default="", help="kernels and programs with this in their name")
    arguments = parser.parse_args()
    folder = needed_kernels(arguments.build)
    tables = {"kernels": kernel_rows(arguments.build, folder, arguments), "cases": kernel_rows(arguments.build, folder / CASES, arguments)}
    if not arguments.json:
        for title, rows in tables.items():
            print_kernels(title, rows)
    programs = program_rows(arguments.build, arguments.rounds, arguments.only)
    if not any(tables.values()) and not programs:
        sys.exit(f"no kernel or program has '{arguments.only}' in its name")
    program_means = {key: mean([row[key] for row in programs]) for key in ("over_lua", "over_native") if programs}
    if arguments.json:
        print(json.dumps({**{title: {"rows": rows, **means(rows)} for title, rows in tables.items() if rows},
                          "most_over_native": OVER_NATIVE, "programs": programs,
                          "program_means": program_means, "most_program_means": [PROGRAMS_OVER_LUA, PROGRAMS_OVER_NATIVE]}))
        return
    if not programs:
        return
    print(f"{'':<18}{'jit':>12}{'interpreted':>14}{'Lua':>12}{'native':>12}{'over Lua':>10}{'over native':>13}")
    for row in programs:
        print(f"{row['name']:<18}{row['jit'] * 1e3:>9.1f} ms{row['interpreted'] * 1e3:>11.1f} ms{row['lua'] * 1e3:>9.1f} ms"
              f"{row['native'] * 1e3:>9.1f} ms{row['over_lua']:>10.3f}{row['over_native']:>13.2f}")
    print(f"geometric mean over Lua {program_means['over_lua']:.3f} (at most {PROGRAMS_OVER_LUA}), over native "
          f"{program_means['over_native']:.2f} (at most {PROGRAMS_OVER_NATIVE})")


if __name__ == "__main__":
    main()
