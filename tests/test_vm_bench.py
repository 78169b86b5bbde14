"""vm-bench from the command line: its rows and counters, Google Benchmark's flags and forms, batches, threads,
another runner beside it, failures, Ctrl-C. No times."""
import csv
import io
import json
import os
import pty
import signal
import stat
import struct
import subprocess
import sys
import time

import installed
import vmrun
from npy import npy_array
from perfetto import Trace

MUL = ["--module=examples/elementwise_mul.vmasm", "--device=local-sync", "--function=mul", "--input=8xf32=1,2,3,4,5,6,7,8",
       "--input=8xf32=10"]
PROGRAM_ROWS = ["load", "verify", "decode", "init"]


def is_running(process):
    try:
        return vmrun.read_text(f"/proc/{process}/stat").rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


# @limited works 300 times in one context: the warm-up makes fewer calls.
MODULE = """
vm.module @bench
vm.global.i32 mutable @calls
vm.export @empty
vm.export @allocates
vm.export @sum
vm.export @limited
vm.export @fails
vm.export @endless
vm.export @__hidden
vm.export @hid$den
vm.func @empty() -> () {
  vm.return
}
vm.func @allocates() -> () {
  %i0 = vm.const.i32 4
  %r0 = vm.list.alloc %i0 : !vm.list<i32>
  vm.discard.refs %r0
  vm.return
}
vm.func @sum(%i0: i32, %i1: i32) -> (i32) {
  %i0 = vm.add.i32 %i0, %i1
  vm.return %i0
}
vm.func @limited() -> () {
  %i0 = vm.global.load.i32 @calls
  %i1 = vm.const.i32 1
  %i0 = vm.add.i32 %i0, %i1
  vm.global.store.i32 %i0, @calls
  %i2 = vm.const.i32 300
  %i3 = vm.cmp.lt.i32.s %i2, %i0
  vm.cond_br %i3, ^bb1, ^bb2
^bb1:
  %i4 = vm.const.i32 8
  vm.fail %i4, "one call too many"
^bb2:
  vm.return
}
vm.func @fails() -> () {
  %i0 = vm.const.i32 9
  vm.fail %i0, "on purpose"
}
vm.func @endless() -> () {
  .endless
  vm.br ^bb1
^bb1:
  vm.br ^bb1
}
vm.func @__hidden() -> () {
  vm.return
}
vm.func @hid$den() -> () {
  vm.return
}
"""

# An asynchronous function that hands its tensor on, and one that wants to be chained to the call before it in every
# second call of a context.
ASYNC = """
vm.module @later
vm.dependency @hal 7
vm.import @hal.devices.get cconv "0i_r"
vm.import @hal.device.queue.barrier cconv "0rIrrI_v"
vm.global.i32 mutable @calls
vm.export @pass
vm.attr @pass "iree.abi.model" "coarse-fences"
vm.export @chained
vm.attr @chained "iree.abi.model" "coarse-fences"
vm.export @limited_async
vm.attr @limited_async "iree.abi.model" "coarse-fences"
vm.func @after(%r0: !hal.fence, %r1: !hal.fence) -> () {
  %i0 = vm.const.i32.zero
  %r2 = vm.call @hal.devices.get(%i0)
  %i2:3 = vm.const.i64 -1
  %i4:5 = vm.const.i64.zero
  vm.call @hal.device.queue.barrier(%r2, %i2:3, %r0, %r1, %i4:5)
  vm.discard.refs %r0, %r1, %r2
  vm.return
}
vm.func @pass(%r0: !hal.buffer_view, %r1: !hal.fence, %r2: !hal.fence) -> (!hal.buffer_view) {
  vm.call @after(%r1, %r2)
  vm.return %R0
}
vm.func @chained(%r0: !hal.fence, %r1: !hal.fence) -> () {
  %i0 = vm.global.load.i32 @calls
  %i1 = vm.const.i32 1
  %i0 = vm.add.i32 %i0, %i1
  vm.global.store.i32 %i0, @calls
  %i2 = vm.cmp.nz.ref %r0
  %i3 = vm.xor.i32 %i0, %i2
  %i3 = vm.and.i32 %i3, %i1
  vm.cond_br %i3, ^bb2, ^bb1
^bb1:
  %i4 = vm.const.i32 9
  vm.fail %i4, "not chained as it should be"
^bb2:
  vm.call @after(%r0, %r1)
  vm.return
}
vm.func @limited_async(%r0: !hal.fence, %r1: !hal.fence) -> () {
  %i0 = vm.global.load.i32 @calls
  %i1 = vm.const.i32 1
  %i0 = vm.add.i32 %i0, %i1
  vm.global.store.i32 %i0, @calls
  %i2 = vm.const.i32 300
  %i3 = vm.cmp.lt.i32.s %i2, %i0
  vm.cond_br %i3, ^bb1, ^bb2
^bb1:
  %i4 = vm.const.i32 8
  vm.fail %i4, "one call too many"
^bb2:
  vm.call @after(%r0, %r1)
  vm.return
}
"""

# Compilers generate these to repeat a dispatch; the argument is the number of repetitions.
DISPATCH = """
vm.module @dispatches
vm.export @seven
vm.attr @seven "iree.benchmark" "dispatch"
vm.func @seven(%i0: i32) -> () {
  %i1 = vm.const.i32 7
  %i2 = vm.cmp.eq.i32 %i0, %i1
  vm.cond_br %i2, ^bb1, ^bb2
^bb1:
  vm.return
^bb2:
  %i3 = vm.const.i32 3
  vm.fail %i3, "expected seven turns"
}
"""

FAILING_INIT = vmrun.with_exports("""
vm.module @unready
vm.func @__init() -> () {
  %i0 = vm.const.i32 9
  vm.fail %i0, "not today"
}
vm.func @empty() -> () {
  vm.return
}
""")

# Another runner: records its arguments, then runs the test's Python code, in which `turn` counts its runs.
RUNNER = """#!{python}
import json, os, signal, sys, time
log = {log!r}
with open(log, "a") as file:
    file.write(json.dumps({{"arguments": sys.argv[1:], "pid": os.getpid()}}) + "\\n")
with open(log) as file:
    turn = len(file.readlines())
def row(time, **more):
    return {{"name": "BM_empty/process_time/real_time", "run_type": "iteration", "iterations": 1, "real_time": time,
            "cpu_time": time, "time_unit": "ms", **more}}
def say(*rows):
    print(json.dumps({{"context": {{}}, "benchmarks": rows}}))
{body}
"""


class VmBench(vmrun.FolderCase):
    def setUp(self):
        super().setUp()
        self.module = self.write("bench.vmasm", MODULE)

    def bench(self, *flags, min_time="0.002s"):
        return vmrun.run("vm-bench", *flags, *([f"--benchmark_min_time={min_time}"] if min_time else []))

    def rows(self, *flags, code=0, min_time="0.002s"):
        """The rows of a run in JSON, by name."""
        done = self.bench(*flags, "--benchmark_format=json", min_time=min_time)
        self.assertEqual(done.returncode, code, done.stdout[-2000:] + done.stderr)
        rows = json.loads(done.stdout, parse_constant=self.fail)["benchmarks"]
        self.assertEqual(len({row["name"] for row in rows}), len(rows))
        return {row["name"]: row for row in rows}

    def refuses(self, code, parts, *flags):
        done = self.bench(*flags)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        self.assert_says(done, *parts)

    def assert_says(self, done, *parts):
        at = done.stderr.find("vm-bench: ")  # behind the description of the machine
        self.assertGreaterEqual(at, 0, done.stderr)
        done.stderr = done.stderr[at:]
        self.assertIsNone(vmrun.why_bad_failure(done, *parts), done.stderr)

    def small(self, function, *flags):
        return [f"--module={self.module}", f"--function={function}", *flags]

    def assert_plausible(self, row):
        self.assertGreater(row["iterations"], 0)
        self.assertGreaterEqual(row["real_time"], 0)
        self.assertGreater(row["samples"], 0)
        self.assertLessEqual(0, row["min"])
        self.assertLessEqual(row["min"], row["median"])
        self.assertLessEqual(row["median"], row["p99"])

    # ---- Rows

    def test_rows_of_a_program(self):
        rows = self.rows(*MUL)
        self.assertEqual(list(rows), [*PROGRAM_ROWS, "mul/cold_call", "BM_mul/process_time/real_time", "mul/transfer"])
        for name, row in rows.items():
            with self.subTest(name):
                self.assert_plausible(row)
                self.assertEqual(row["name"], row["run_name"])
                self.assertEqual(row["time_unit"], "ms" if name.startswith("BM_") else "us")
        call = rows["BM_mul/process_time/real_time"]
        self.assertGreater(call["items_per_second"], 0)
        self.assertGreaterEqual(call["calls_per_sample"], 1)
        self.assertEqual([row["family_index"] for row in rows.values()], list(range(len(rows))))

    def test_rows_that_do_not_apply(self):
        self.assertEqual(list(self.rows(*self.small("sum"), "--input=1", "--input=2")),
                         [*PROGRAM_ROWS, "sum/cold_call", "BM_sum/process_time/real_time"])

    def test_asynchronous_functions(self):
        module = self.write("later.vmasm", ASYNC)
        for device in ["local-sync", "local-task"]:
            with self.subTest(device):
                rows = self.rows(f"--module={module}", f"--device={device}", "--function=pass", "--input=4xf32=1")
                self.assertEqual(list(rows), [*PROGRAM_ROWS, "pass/cold_call", "BM_pass/process_time/real_time",
                                              "pass/submit", "pass/wait", "pass/transfer"])
                for row in rows.values():
                    self.assert_plausible(row)

    def test_compiled_modules(self):
        fixtures = vmrun.fixtures()
        if fixtures is None:
            self.skipTest("the shared fixtures are not here")
        inputs = ["--function=simple_mul", "--input=4xf32=1,2,3,4", "--input=4xf32=2"]
        for name, steps in [("simple_mul.vmvx.vmfb", []), ("simple_mul.async.vmfb", ["submit", "wait"])]:
            for mode in ["preload", "mmap"]:
                with self.subTest(name + mode):
                    rows = self.rows(f"--module={fixtures}/compiled/{name}", "--device=local-task", f"--module_mode={mode}",
                                     *inputs)
                    self.assertEqual(list(rows), [*PROGRAM_ROWS, "simple_mul/cold_call",
                                                  "BM_simple_mul/process_time/real_time",
                                                  *(f"simple_mul/{step}" for step in [*steps, "transfer"])])

    def test_every_function_without_parameters(self):
        names = self.bench(f"--module={self.module}", "--benchmark_list_tests").stdout.split()
        functions = ["empty", "allocates", "limited", "fails", "endless"]
        self.assertEqual(names, PROGRAM_ROWS + [row for name in functions
                                                for row in (f"{name}/cold_call", f"BM_{name}/process_time/real_time")])
        rows = self.rows(f"--module={self.module}", "--benchmark_filter=(empty|allocates)")
        self.assertEqual(len(rows), 4)

    def test_standard_input(self):
        vmrun.write(self.path("module.vmfb"), vmrun.assemble(MODULE, self.folder))
        with open(self.path("module.vmfb"), "rb") as file:
            done = subprocess.run([os.path.join(vmrun.BIN, "vm-bench"), "--module=-", "--function=empty",
                                   "--benchmark_min_time=10x", "--benchmark_format=json"], stdin=file, capture_output=True,
                                  timeout=vmrun.TIMEOUT)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len(json.loads(done.stdout)["benchmarks"]), 6)

    def test_native_modules_are_loaded_once(self):
        library = os.path.join(vmrun.BUILD, "examples", "libtoolbox.so")
        if not os.path.exists(library):
            self.skipTest("the example of a native module is not built")
        rows = self.rows(f"--module={library}", "--module=examples/native_module/toolbox.vmasm", "--function=length",
                         "--input=3", "--input=4")
        self.assertIn("load", rows)
        self.assertIn("BM_length/process_time/real_time", rows)

    def test_functions_that_repeat_a_dispatch(self):
        module = self.write("dispatches.vmasm", DISPATCH)
        row = self.rows(f"--module={module}", "--batch_size=7")["BM_seven/process_time/real_time"]
        self.assertEqual(row["time_unit"], "us")
        self.assertEqual(row["iterations"] % 7, 0)
        self.rows(f"--module={module}", "--batch_size=6", code=1)

    # ---- Counters

    def test_allocations(self):
        if installed.cache("HALYARD_SANITIZE"):
            self.assertNotIn("allocations", self.rows(*self.small("empty"))["BM_empty/process_time/real_time"])
            return
        def allocations(*flags):
            return next(row for name, row in self.rows(*flags).items() if name.startswith("BM_"))["allocations"]

        self.assertEqual(allocations(*self.small("empty")), 0)
        self.assertGreaterEqual(allocations(*self.small("allocates")), 1)
        self.assertEqual(allocations(*MUL), 0)

    def test_shares(self):
        def shares(*flags):
            row = next(row for name, row in self.rows(*flags, "--benchmark_filter=BM_").items())
            return [row[f"{part}_percent"] for part in ["machine", "hal", "device"]]

        machine, hal, device = shares("--module=examples/fib.vmasm", "--function=iterative", "--input=200000")
        self.assertGreater(machine, 50)
        self.assertEqual((hal, device), (0, 0))
        for part in shares(*MUL):  # of the one thread that works
            self.assertGreater(part, 0)
        self.assertLessEqual(sum(shares(*MUL)), 100)

    # ---- Batches and threads

    def test_batch_divides(self):
        # As many turns, but a call for each of them, or one for all.
        name = "BM_limited/process_time/real_time"
        for flag in ["--batch=1000", "--batch_size=1000"]:
            row = self.rows(*self.small("limited", flag), min_time="1000x")[name]
            self.assertEqual(row["iterations"], 1000)
        row = self.rows(*self.small("limited"), code=1, min_time="1000x")[name]
        self.assertTrue(row["error_occurred"])
        self.assertIn("one call too many", row["error_message"])

    def test_batch_of_asynchronous_calls(self):
        module = f"--module={self.write('later.vmasm', ASYNC)}"
        name = "BM_limited_async/process_time/real_time"
        row = self.rows(module, "--function=limited_async", "--batch=1000", code=1, min_time="1000x")[name]
        self.assertIn("one call too many", row["error_message"])
        # In batches of two with one under way the second waits for the first; with two, neither does.
        self.rows(module, "--function=chained", "--batch=2", "--benchmark_filter=BM_")
        row = self.rows(module, "--function=chained", "--batch=2", "--batch_concurrency=2", "--benchmark_filter=BM_", code=1)
        self.assertIn("not chained", row["BM_chained/process_time/real_time"]["error_message"])
        for flags in [("--batch=64", "--batch_concurrency=5"), ("--batch=3", "--batch_concurrency=9")]:
            self.rows(module, "--function=pass", "--input=4xf32=1", "--device=local-task", "--benchmark_filter=BM_", *flags)

    def test_threads(self):
        for flags in [self.small("empty"), MUL]:
            (row,) = self.rows(*flags, "--threads=3", "--benchmark_filter=BM_").values()
            self.assertTrue(row["name"].endswith("/process_time/real_time/threads:3"), row["name"])
            self.assertEqual(row["threads"], 3)
            self.assert_plausible(row)
        (row,) = self.rows(*self.small("fails"), "--threads=3", "--benchmark_filter=BM_", code=1).values()
        self.assertIn("on purpose", row["error_message"])

    # ---- Google Benchmark's flags and forms

    def test_table(self):
        done = self.bench(*MUL)
        self.assertRegex(done.stdout, r"\nBM_mul/process_time/real_time +[\d.e+-]+ ms +[\d.e+-]+ ms +\d+ .*items_per_second=\S+/s .*"
                                      r"median=[\d.]+[mun]?s min=[\d.]+[mun]?s p99=[\d.]+[mun]?s")
        self.assertNotIn("\x1b", done.stdout + done.stderr)
        self.assertNotIn("\r", done.stdout + done.stderr)

    def test_progress_on_a_terminal(self):
        terminal, end = pty.openpty()
        with subprocess.Popen([os.path.join(vmrun.BIN, "vm-bench"), *self.small("empty"), "--benchmark_min_time=0.05"],
                              stdout=subprocess.DEVNULL, stderr=end) as process:
            os.close(end)
            shown = b""
            try:
                while piece := os.read(terminal, 4096):
                    shown += piece
            except OSError:  # the other end of the terminal is closed
                pass
        os.close(terminal)
        self.assertEqual(process.returncode, 0, shown)
        self.assertRegex(shown, rb"\r\x1b\[Kmeasuring \d/6 \S+")
        self.assertTrue(shown.rstrip().endswith(b"\x1b[K") or b"\x1b[K" in shown[-40:], shown[-80:])

    def test_filter(self):
        for pattern, names in [("load", ["load"]), ("^(load|init)$", ["load", "init"]), ("cold_call$", ["empty/cold_call"]),
                               ("BM_.*real_time$", ["BM_empty/process_time/real_time"]),
                               ("-empty", PROGRAM_ROWS), ("-(decode|verify|empty)", ["load", "init"])]:
            with self.subTest(pattern):
                self.assertEqual(list(self.rows(*self.small("empty"), f"--benchmark_filter={pattern}")), names)
        self.refuses(3, ["--benchmark_filter=nothing", "empty/cold_call"], *self.small("empty"), "--benchmark_filter=nothing")
        self.refuses(3, ["--benchmark_filter=(", "regular expression"], *self.small("empty"), "--benchmark_filter=(")

    def test_csv(self):
        done = self.bench(*MUL, "--benchmark_format=csv")
        rows = list(csv.DictReader(io.StringIO(done.stdout)))
        self.assertEqual([row["name"] for row in rows], [*PROGRAM_ROWS, "mul/cold_call", "BM_mul/process_time/real_time",
                                                         "mul/transfer"])
        for row in rows:
            self.assertNotIn(None, row)
            self.assertGreaterEqual(float(row["p99"]), float(row["median"]))

    def test_files(self):
        file = self.path("rows.json")
        done = self.bench(*MUL, f"--benchmark_out={file}")
        names = [row["name"] for row in json.loads(vmrun.read_text(file))["benchmarks"]]
        self.assertEqual(names, [line.split()[0] for line in done.stdout.splitlines()[3:]])
        done = self.bench(*self.small("empty"), f"--benchmark_out={file}", "--benchmark_out_format=csv")
        with open(file) as written:
            self.assertEqual(len(list(csv.DictReader(written))), 6)
        self.refuses(5, ["--benchmark_out=/no/such/folder/x"], *self.small("empty"), "--benchmark_out=/no/such/folder/x")

    def test_repetitions(self):
        def names(*flags):
            done = self.bench(*self.small("empty"), "--benchmark_filter=(load|BM_)", "--benchmark_repetitions=3",
                              "--benchmark_format=json", *flags)
            self.assertEqual(done.returncode, 0, done.stderr)
            rows = json.loads(done.stdout, parse_constant=self.fail)["benchmarks"]
            return [(row["run_name"], row.get("aggregate_name", "")) for row in rows]

        kinds = ["mean", "median", "stddev", "cv"]
        rows = ["load", "BM_empty/process_time/real_time"]
        self.assertEqual(names(), [(row, kind) for row in rows for kind in ["", "", "", *kinds]])
        only = [(row, kind) for row in rows for kind in kinds]
        self.assertEqual(names("--benchmark_report_aggregates_only"), only)
        self.assertEqual(names("--benchmark_display_aggregates_only"), only)
        self.assertEqual(sorted(names("--benchmark_enable_random_interleaving")), sorted(names()))

    def test_units_and_numbers(self):
        for flag in ["--time_unit=ns", "--benchmark_time_unit=ns"]:
            self.assertEqual({row["time_unit"] for row in self.rows(*MUL, flag).values()}, {"ns"})
        for row in self.rows(*MUL, min_time="40x").values():
            self.assertEqual(row["iterations"], 40)
        done = self.bench(*self.small("empty"), "--benchmark_context=where=here,who=me", "--benchmark_format=json")
        context = json.loads(done.stdout)["context"]
        self.assertEqual((context["where"], context["who"]), ("here", "me"))
        self.assertIn("halyard", context)

    def test_many_samples_are_thinned_out(self):
        (row,) = self.rows(*self.small("empty"), "--benchmark_filter=init", min_time="80000x").values()
        self.assertEqual(row["iterations"], 80000)
        self.assertLess(row["samples"], 65536)
        self.assertGreaterEqual(row["samples"], 32768)
        self.assert_plausible(row)

    def test_output_that_cannot_be_written(self):
        with open("/dev/full", "w") as full:
            done = vmrun.run("vm-bench", *self.small("empty"), "--benchmark_min_time=10x", stdout=full)
        self.assertNotEqual(done.returncode, 0)
        self.assert_says(done, "UNAVAILABLE", "standard output")

    def test_statistics(self):
        done = self.bench(*MUL, "--print_statistics")
        self.assertRegex(done.stderr, r"Device: local-sync\n\[\[ iree_hal_allocator_t memory statistics \]\]\n")

    # ---- Failures

    def test_arguments_from_a_folder(self):
        folder = self.path("inputs")
        os.mkdir(folder)
        missing = self.path("missing")
        for name, number in (("in2", 2), ("in10", 10)):
            vmrun.write(os.path.join(folder, name + ".npy"), npy_array("<f4", (8,), struct.pack("<f", number) * 8))
        mul = [flag for flag in MUL if not flag.startswith("--input")]
        row = "BM_mul/process_time/real_time"
        self.assertIn(row, self.rows(*mul, f"--inputs_from={folder}"))
        runner = self.runner(f"say(dict(row(1), name='{row}'))")
        self.rows(*mul, f"--inputs_from={folder}", f"--against={runner}")
        self.assertEqual([flag for flag in self.runs()[0]["arguments"] if flag.startswith("--input")],
                         [f"--input=*{folder}/in2.npy", f"--input=*{folder}/in10.npy"])
        self.refuses(5, ["NOT_FOUND", f"--inputs_from={missing}"], *mul, f"--inputs_from={missing}")
        self.refuses(3, ["INVALID_ARGUMENT", "--input and --inputs_from"], *MUL, f"--inputs_from={missing}")
        # The argument of a function that repeats a dispatch is a number.
        self.refuses(3, ["INVALID_ARGUMENT", f"--inputs_from=*{folder}/in2.npy"],
                     "--module=" + self.write("dispatches.vmasm", DISPATCH), "--function=seven", f"--inputs_from={folder}")

    def test_failing_calls(self):
        done = self.bench(*self.small("fails"))
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stdout, r"BM_fails/process_time/real_time +ERROR OCCURRED: 'FAILED_PRECONDITION; on purpose")
        self.assertRegex(done.stdout, r"\ninit +[\d.]+ us")
        self.assertRegex(done.stderr, r"\nvm-bench: FAILED_PRECONDITION; on purpose.*in the call of function 'fails'")
        rows = self.rows(f"--module={self.module}", "--benchmark_filter=BM_(fails|empty)", code=1)
        self.assertEqual([row.get("error_occurred", False) for row in rows.values()], [False, True])

    def test_set_up_errors(self):
        self.refuses(5, ["NOT_FOUND", "/no/such.vmfb"], "--module=/no/such.vmfb")
        self.refuses(5, ["NOT_FOUND", "'emptty'", "did you mean 'empty'", "allocates"], *self.small("emptty"))
        self.refuses(5, ["NOT_FOUND", "nowhere"], *self.small("empty"), "--device=nowhere")
        self.refuses(3, ["INVALID_ARGUMENT", "--module"])
        self.refuses(3, ["expected 2 arguments, found 1"], *self.small("sum"), "--input=1")
        self.refuses(3, ["INVALID_ARGUMENT"], *self.small("sum"), "--input=1", "--input=2", "--input=3")
        self.refuses(9, ["FAILED_PRECONDITION", "not today"], f"--module={self.write('unready.vmasm', FAILING_INIT)}")
        self.refuses(3, ["several functions", "a, b", "--function"], "--module=" + self.write("two.vmasm", vmrun.with_exports("""
vm.module @two
vm.func @a(%i0: i32) -> () {
  vm.return
}
vm.func @b(%i0: i32) -> () {
  vm.return
}
""")))

    def test_wrong_flags(self):
        for flag, parts in [("--thread=2", ["'--thread'", "did you mean '--threads'"]),
                            ("--benchmark_filtr=x", ["did you mean '--benchmark_filter'"])]:
            self.refuses(1, parts, *self.small("empty"), flag)
        for flag in ["--time_unit=h", "--benchmark_format=xml", "--benchmark_out_format=xml", "--benchmark_color=red",
                     "--benchmark_time_unit=m", "--verify=never"]:
            with self.subTest(flag):
                self.refuses(1, [flag], *self.small("empty"), flag)
        for flag in ["--threads=0", "--threads=x", "--batch=0", "--batch_size=-1", "--batch_concurrency=0",
                     "--benchmark_repetitions=0", "--benchmark_context=x", "--benchmark_min_warmup_time=-1"]:
            with self.subTest(flag):
                self.refuses(3, [flag], *self.small("empty"), flag)
        for text in ["0", "-1", "x", "0x", "1.5x", "s", "inf", "nan", ""]:
            with self.subTest(text):
                done = self.bench(*self.small("empty"), "--benchmark_min_time=" + text, min_time=None)
                self.assertEqual(done.returncode, 3, done.stderr)
                self.assert_says(done, "--benchmark_min_time=" + text, "0.5s", "100x")

    # ---- Ctrl-C

    def start(self, *flags):
        process = subprocess.Popen([os.path.join(vmrun.BIN, "vm-bench"), *flags], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True, cwd=vmrun.SOURCE,
                                   preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
        self.addCleanup(self.end, process)
        return process

    @staticmethod
    def end(process):
        process.kill()
        with process:
            pass

    def interrupt(self, *flags, after, of="stdout"):
        """Sends SIGINT once `after` has been printed; the exit code and both texts."""
        process = self.start(*flags)
        printed = {"stdout": "", "stderr": ""}
        while after not in printed[of]:
            line = getattr(process, of).readline()
            self.assertTrue(line, f"ended before {after!r} was printed")
            printed[of] += line
        process.send_signal(signal.SIGINT)
        # Not communicate(), which would ignore bytes that are already in the buffer.
        for stream in printed:
            printed[stream] += getattr(process, stream).read()
        return process.wait(vmrun.TIMEOUT), printed["stdout"], printed["stderr"]

    def test_interrupted_in_an_endless_call(self):
        code, out, error = self.interrupt(*self.small("endless", "--benchmark_min_time=0.01", "--benchmark_filter=load|BM_"),
                                          after="\nload ")
        self.assertEqual(code, 130, error)
        self.assertRegex(out, r"\nload +\S+ us")
        self.assertNotIn("BM_", out)
        self.assertIn("stopped by Ctrl-C", error)

    def test_interrupted_between_calls(self):
        for more in [["--benchmark_filter=BM_"], ["--benchmark_filter=BM_", "--threads=2"], ["--benchmark_filter=init"]]:
            with self.subTest(more):
                code, out, error = self.interrupt(*self.small("empty", "--benchmark_min_time=1000", *more),
                                                  after="Load Average", of="stderr")
                self.assertEqual((code, out), (130, ""), error)
                self.assertIn("stopped by Ctrl-C", error)

    def test_interrupted_json(self):
        code, out, _ = self.interrupt(*self.small("endless", "--benchmark_min_time=0.01", "--benchmark_format=json"),
                                      after='"name": "init"')
        self.assertEqual(code, 130)
        self.assertEqual([row["name"] for row in json.loads(out)["benchmarks"]], PROGRAM_ROWS)

    # ---- Another runner

    def runner(self, body):
        path = self.write("runner", RUNNER.format(python=sys.executable, log=self.path("log"), body=body))
        os.chmod(path, os.stat(path).st_mode | stat.S_IXUSR)
        return path

    def runs(self):
        with open(self.path("log")) as file:
            return [json.loads(line) for line in file]

    def test_against_itself(self):
        for more in [[], ["--benchmark_repetitions=2"]]:
            rows = self.rows(*MUL, "--against=" + os.path.join(vmrun.BIN, "vm-bench"), *more)
            own, other = rows["BM_mul/process_time/real_time"], rows["mul/against"]
            self.assertEqual((own["rounds"], other["rounds"]), (5, 5))
            self.assertAlmostEqual(other["ratio"], own["real_time"] / other["real_time"], delta=1e-6 * other["ratio"])
            self.assertLessEqual(other["ratio_min"], other["ratio_max"])

    def test_against_a_runner(self):
        runner = self.runner("say(row([3, 1, 5, 4, 2, 7, 6][turn - 1]), row(99, run_type='aggregate'))")
        rows = self.rows(*self.small("empty"), f"--against={runner} --its-own='a b'", "--rounds=7", "--batch=2")
        self.assertEqual(list(rows), ["BM_empty/process_time/real_time", "empty/against"])
        other = rows["empty/against"]
        self.assertEqual((other["real_time"], other["time_unit"], other["rounds"]), (4, "ms", 7))
        self.assertIn("--its-own='a b'", other["label"])
        runs = self.runs()
        self.assertEqual(len(runs), 7)
        for run in runs:
            self.assertEqual(run["arguments"][0], "--its-own=a b")
            for flag in [f"--module={self.module}", "--function=empty", "--batch_size=2", "--benchmark_format=json",
                         "--benchmark_min_time=0.002s", "--benchmark_filter=^BM_empty(/|$)"]:
                self.assertIn(flag, run["arguments"])

    def test_against_passes_the_program_on(self):
        runner = self.runner("say(dict(row(1), name='BM_mul/process_time/real_time', time_unit='us'))")
        done = self.bench(*MUL, f"--against={runner}")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"\nmul: [\d.]+ \wse?c?.*against 1 us of '.*runner': ratio of medians [\d.]+")
        for flag in MUL:
            self.assertIn(flag, self.runs()[0]["arguments"])
        module = self.write("later.vmasm", ASYNC)  # its device is the default one, which is passed on, too
        runner = self.runner("say(dict(row(1), name='BM_chained'))")
        self.rows(f"--module={module}", "--function=chained", "--batch=2", f"--against={runner}")
        self.assertIn("--device=local-task://", self.runs()[-1]["arguments"])

    def test_against_what_is_not_understood(self):
        for code, body, parts in [
                (14, None, ["cannot be run", "no/such/runner"]),
                (3, "print('hello')", ["no JSON", "--benchmark_format=json"]),
                (3, "print('{\"benchmarks\": [')", ["invalid JSON at byte"]),
                (3, "print('{\"benchmarks\": ' + '[' * 100000)", ["invalid JSON at byte 100016"]),
                (3, "print('{\"a\": \"' + chr(92) + 'uZZZZ\"}')", ["hex digits"]),
                (3, "print('{}')", ["no array 'benchmarks'"]),
                (3, "say()", ["no row 'BM_empty'", "none"]),
                (3, "say(dict(row(1), name='BM_emptying'))", ["no row 'BM_empty'", "BM_emptying"]),
                (3, "say(row(0))", ["'real_time'"]), (3, "say(row('fast'))", ["'real_time'"]),
                (3, "say(row(1, time_unit='h'))", ["time_unit"]),
                (10, "say(row(1, error_occurred=True, error_message='no luck'))", ["its call failed", "no luck"]),
                (10, "sys.exit('went wrong')", ["exit code 1", "went wrong"]),
                (10, "say(row(1)); sys.exit(3)", ["exit code 3"]),
                (10, "os.kill(os.getpid(), signal.SIGABRT)", ["signal 6"])]:
            with self.subTest(body):
                runner = self.runner(body) if body else "no/such/runner"
                self.refuses(code, [f"--against={runner}", *parts], *self.small("empty"), f"--against={runner}")

    def test_against_numbers_that_json_has_not(self):
        runner = self.runner("say(dict(row(2), name='BM_empty', cv=float('nan'), worst=float('-inf'), label='\\\\\"NaN'))")
        done = self.bench(*self.small("empty"), f"--against={runner}")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("ratio of medians", done.stdout)

    def test_against_leaves_no_process_behind(self):
        runner = self.runner("child = os.fork()\nif child == 0:\n    import time\n    time.sleep(600)\n"
                             "open(sys.argv[0] + '.child', 'a').write(f'{child}\\n')\nsay(dict(row(1), name='BM_empty'))")
        done = self.bench(*self.small("empty"), f"--against={runner}")
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(runner + ".child", encoding="utf-8") as file:
            children = [int(line) for line in file]
        self.assertGreaterEqual(len(children), 5)
        for child in children:
            deadline = time.monotonic() + vmrun.TIMEOUT
            while is_running(child) and time.monotonic() < deadline:
                time.sleep(0.01)
            self.assertFalse(is_running(child), "it is killed with its group")

    def test_against_while_the_call_fails(self):
        runner = self.runner("say(dict(row(1), name='BM_fails'))")
        done = self.bench(*self.small("fails"), f"--against={runner}", "--benchmark_format=json")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertEqual(json.loads(done.stdout)["benchmarks"], [])
        self.assertIn("on purpose", done.stderr)

    def test_against_wrong_flags(self):
        runner = self.runner("say(row(1))")
        for flag in ["--rounds=4", "--rounds=x", "--threads=2"]:
            self.refuses(3, [flag], *self.small("empty"), f"--against={runner}", flag)
        self.refuses(3, ["--module=-"], "--module=-", f"--against={runner}")

    def test_against_interrupted(self):
        runner = self.runner("say(row(1)) if turn < 3 else (print(flush=True), time.sleep(1000))")
        process = self.start(*self.small("empty"), f"--against={runner}", "--benchmark_min_time=0.001",
                             "--benchmark_format=json")
        deadline = time.monotonic() + vmrun.TIMEOUT
        while not os.path.exists(self.path("log")) or len(self.runs()) < 3:
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        out, error = process.communicate(timeout=vmrun.TIMEOUT)
        self.assertEqual(process.returncode, 130, error)
        rows = json.loads(out)["benchmarks"]
        self.assertEqual([row["rounds"] for row in rows], [2, 2])
        with self.assertRaises(ProcessLookupError):
            os.kill(self.runs()[2]["pid"], 0)


class Traced(vmrun.FolderCase):
    def test_the_file_holds_the_calls(self):
        path = self.path("bench.perfetto")
        done = vmrun.succeeds("vm-bench", *MUL, "--benchmark_filter=BM_", "--benchmark_min_time=0.001", "--trace=" + path)
        names = {s.name for s in Trace(path).slices()}
        self.assertLessEqual({"elementwise_mul.mul", "hal.device.queue.execute.indirect", "mul"}, names)

    def test_a_full_disk_is_told(self):
        done = vmrun.run("vm-bench", *MUL, "--benchmark_filter=BM_", "--benchmark_min_time=0.001", "--trace=/dev/full")
        self.assertIn("UNAVAILABLE; could not write all of the trace to '/dev/full'", done.stderr)
        self.assertEqual(done.returncode, 14)
