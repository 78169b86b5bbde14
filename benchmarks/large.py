#!/usr/bin/env python3
"""Large programs on one thread and on two: time of a warm call, peak memory, time to the first result; and small ones, which
should take as long on two threads as on one.

usage: benchmarks/large.py [--json] [--rounds=N] [--only=TEXT] [--keep-cache] [--realtime] [--build=FOLDER]

Every row runs N rounds, one thread and two in turns; of each counts the median. The first result of a process is measured from
its start until the result is printed, in turns with a warm call; from the lower quartile of the one the lower quartile of the
other is taken off: what else the machine does only adds, often more than the difference is, and the shortest time of all may be
luck. Weights are mapped; they are read anew from the disk before, as after a restart, unless --keep-cache is given: files that
have just been written lie in small pieces in memory, and mapping them takes ten times as long. --realtime, for root, is for
machines that do other things as well. VMVX kernels run twice, interpreted and compiled; compiled code is in the cache when a
process starts, as after a first run.
"""

import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import machine

SOURCE = pathlib.Path(__file__).resolve().parent.parent
THREADS = (1, 2)

BERT_INPUTS = [f"@berttiny.0.in{i}.npy" for i in range(3)]
MLP_INPUTS = [f"@mlp.0.in{i}.npy" for i in range(5)]

# name, module, function, inputs, the program in large.py or None for a fixture, how bytecode is run
ROWS = [
    ("GPT-2 shape, prefill", "gpt2.llvm-cpu-v3", "prefill", ["@gpt2.0.in0.npy", "64"], "gpt2", "off"),
    ("GPT-2 shape, decode", "gpt2.llvm-cpu-v3", "decode", ["@gpt2.2.in0.npy"], "gpt2", "off"),
    ("ResNet-18", "resnet18.llvm-cpu-v3", "classify", ["@resnet18.0.in0.npy"], "resnet18", "off"),
    ("BERT-tiny, machine code", "berttiny.llvm-cpu-v3", "encode", BERT_INPUTS, "berttiny", "off"),
    ("BERT-tiny, microkernels", "berttiny.vmvx-uk-dt", "encode", BERT_INPUTS, "berttiny", "auto"),
    ("BERT-tiny, VMVX", "berttiny.vmvx", "encode", BERT_INPUTS, "berttiny", "off"),
    ("BERT-tiny, VMVX compiled", "berttiny.vmvx", "encode", BERT_INPUTS, "berttiny", "always"),
    ("small: pipeline_chain", "pipeline_chain.llvm-cpu", "chain", ["@pipeline_chain.0.in0.npy"], None, "off"),
    ("small: mlp, VMVX", "mlp.vmvx", "mlp", MLP_INPUTS, None, "off"),
    ("small: mlp, microkernels", "mlp.vmvx-uk-dt", "mlp", MLP_INPUTS, None, "off"),
]
MOST_RATIO = {"large": 0.55, "small": 1.05}
MOST_FIRST = 0.020  # seconds more than a warm call


def read_anew(path):
    """Out of the page cache, and in again."""
    with open(path, "rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        while file.read(1 << 24):
            pass


class Runner:
    def __init__(self, build, folder, fixtures, realtime, cache):
        self.bin, self.folder, self.fixtures = build / "bin", folder, os.path.join(fixtures, "compiled")
        self.cache = cache
        self.options = {}
        if realtime:
            # Before the programs, or it would look at the clock when they are done.
            os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(2))
            self.options["preexec_fn"] = lambda: os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))

    def command(self, tool, row, threads):
        _, module, function, inputs, program, jit = row
        flags = [f"--module={module}.vmfb", f"--function={function}", f"--device=local-task?workers={threads}",
                 f"--jit={jit}", f"--jit_cache={self.cache}", *(f"--input={text}" for text in inputs)]
        if program:
            flags.append(f"--parameters=model={large.PROGRAMS[program]}")
        return [str(self.bin / tool), *flags]

    def where(self, row):
        return self.folder if row[4] else self.fixtures

    def warm_call(self, row, threads, seconds):
        """The median in seconds."""
        done = subprocess.run([*self.command("vm-bench", row, threads), "--benchmark_filter=^BM_", "--benchmark_format=json",
                               f"--benchmark_min_time={seconds}"], cwd=self.where(row), capture_output=True, text=True,
                              **self.options)
        if done.returncode != 0:
            sys.exit(f"{' '.join(done.args)} failed: {done.stderr}")
        return json.loads(done.stdout)["benchmarks"][0]["median"]

    def first_result(self, row, threads):
        """Seconds until it is printed, and MiB at most in memory."""
        process = subprocess.Popen(self.command("vm-run", row, threads), cwd=self.where(row), stdout=subprocess.PIPE,
                                   **self.options)
        printed = begin = time.monotonic()  # Popen returns when the new program has begun
        while os.read(process.stdout.fileno(), 1 << 20):
            printed = time.monotonic()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        process.stdout.close()
        if process.returncode != 0:
            sys.exit(f"{' '.join(process.args)} failed")
        return printed - begin, usage.ru_maxrss / 1024


def lower_quartile(values):
    return statistics.quantiles(values, n=4, method="inclusive")[0]


def measure(runner, row, rounds):
    seconds = 1.0 if row[5] == "auto" else 0.2  # what is hot is compiled after the first 0.2
    warm = {threads: [] for threads in THREADS}
    first = {threads: [] for threads in THREADS}
    peak = 0
    for number in range(rounds):
        for threads in THREADS if number % 2 == 0 else reversed(THREADS):
            warm[threads].append(runner.warm_call(row, threads, seconds))
            if row[4]:
                taken, memory = runner.first_result(row, threads)
                first[threads].append(taken)
                peak = max(peak, memory)
    one, two = (statistics.median(warm[threads]) for threads in THREADS)
    result = {"name": row[0], "one": one, "two": two, "ratio": two / one,
              "most_ratio": MOST_RATIO["large" if row[4] else "small"]}
    if row[4]:
        result |= {"peak": peak, "most_peak": large.MOST_MEMORY[row[4]], "most_first": MOST_FIRST,
                   **{f"first_{name}": lower_quartile(first[threads]) - lower_quartile(warm[threads])
                      for threads, name in zip(THREADS, ("one", "two"))}}
    return result


def print_head():
    print(f"{'':<26}{'one thread':>12}{'two':>11}{'ratio':>7}{'most':>6}{'peak MiB':>10}{'most':>5}"
          f"{'first on one':>14}{'on two':>8}{'most':>6}")


def print_row(row):
    line = f"{row['name']:<26}{row['one'] * 1e3:>9.3f} ms{row['two'] * 1e3:>8.3f} ms{row['ratio']:>7.2f}{row['most_ratio']:>6.2f}"
    if "peak" in row:
        line += (f"{row['peak']:>10.1f}{row['most_peak']:>5}{row['first_one'] * 1e3:>+11.1f} ms{row['first_two'] * 1e3:>+8.1f}"
                 f"{row['most_first'] * 1e3:>+6.0f}")
    print(line, flush=True)


def main():
    parser = machine.flags(__doc__, 15)
    parser.add_argument("--only", default="", help="rows with this in their name")
    parser.add_argument("--keep-cache", action="store_true", help="leave weights in memory as they are")
    parser.add_argument("--realtime", action="store_true", help="at real-time priority; for root")
    arguments = parser.parse_args()
    if arguments.rounds < 2:
        parser.error(f"--rounds: expected 2 at least, since quartiles are compared; found {arguments.rounds}")
    os.environ["HALYARD_BUILD"], os.environ["HALYARD_SOURCE"] = str(arguments.build.resolve()), str(SOURCE)
    sys.path.insert(0, str(SOURCE / "tests"))
    global large
    import large  # it wants to know the build
    import vmrun

    try:
        folder = large.folder()
    except large.Missing as missing:
        print("skipped:", missing)
        return 0
    if not arguments.keep_cache:
        for weights in large.PROGRAMS.values():
            read_anew(os.path.join(folder, weights))
    results = []
    if not arguments.json:
        print_head()
    with tempfile.TemporaryDirectory() as cache:
        runner = Runner(arguments.build.resolve(), folder, vmrun.fixtures(), arguments.realtime, cache)
        for row in ROWS:
            if arguments.only in row[0]:
                results.append(measure(runner, row, arguments.rounds))
                if not arguments.json:
                    print_row(results[-1])
    if arguments.json:
        print(json.dumps(results, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
