"""vm-run --profile and vm-bench --profile: rows, sums and shares, operations and bytes that follow from the kernels by hand,
the reasons for interpreted kernels; programs and devices about which less is known."""
import json
import os
import pathlib
import platform
import re

import vmrun

MATMUL = ["--module=examples/matmul.vmasm", "--function=matmul", "--input=4x3xf32=1", "--input=3x2xf32=1"]
FIRST = pathlib.Path(vmrun.SOURCE).resolve() / "tests" / "abi" / "first"
MOVES = [f"--module={FIRST / 'moves_bytes.vmasm'}", "--function=shuffle", "--input=8xf32=5,6,7,8,9,10,11,12"]
# The sums of three elements each of the first two bindings.
SUMS = """
    %i26:27 = vm.ext.i32.i64.s %i16
    %i28:29 = vm.const.i64.zero
    vm.br ^bb1
  ^bb1:
    %i20 = vm.cmp.lt.i64.s %i28:29, %i26:27
    vm.cond_br %i20, ^bb2, ^bb3
  ^bb2:
    %i24 = vm.buffer.load.f32 %r3, %i28:29
    %i25 = vm.buffer.load.f32 %r4, %i28:29
    %i18 = vm.add.f32 %i24, %i25
    vm.buffer.store.f32 %i18, %r5, %i28:29
    %i28:29 = vm.add.i64 %i28:29, %i14:15
    vm.br ^bb1
  ^bb3:
"""
KINDS = {"kernel", "transfer", "host", "waiting", "other"}
KERNEL_KEYS = {"kind", "name", "time_ns", "share", "calls", "busy_ns", "thread_ns", "threads", "workgroups", "operations",
               "bytes_read", "bytes_written", "gflops", "gbs", "compiled_calls", "checked_loops", "interpreted_calls", "native_calls"}
OPTIONAL_KEYS = {"interpreted_because", "not_counted_because", "not_shared_because", "source"}


class Profiles(vmrun.FolderCase):
    def run_tool(self, *arguments, tool="vm-run", **options):
        result = vmrun.run(tool, *arguments, **options)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result

    def profile(self, *arguments, **options):
        """The member of the JSON of vm-run, with what is true of every profile."""
        profile = json.loads(self.run_tool(*arguments, "--profile", "--json", **options).stdout)["profile"]
        self.check(profile)
        return profile

    def check(self, profile):
        rows = profile["rows"]
        self.assertLessEqual({row["kind"] for row in rows}, KINDS)
        self.assertEqual([row["kind"] for row in rows[-2:]], ["waiting", "other"])
        self.assertAlmostEqual(sum(row["share"] for row in rows), 1, places=4)
        self.assertAlmostEqual(sum(row["time_ns"] for row in rows), profile["total_ns"], delta=len(rows))
        times = [row["time_ns"] for row in rows[:-2]]
        self.assertEqual(times, sorted(times, reverse=True))
        for row in rows:
            if row["kind"] != "kernel":
                continue
            self.assertLessEqual(set(row) - OPTIONAL_KEYS, KERNEL_KEYS)
            self.assertLessEqual(KERNEL_KEYS, set(row))
            self.assertLessEqual(row["time_ns"], row["busy_ns"] + 1)
            self.assertLessEqual(row["busy_ns"], row["thread_ns"] + 1)
            if row["operations"] is not None and row["busy_ns"] > 0:
                self.assertAlmostEqual(row["gflops"], row["operations"] / row["busy_ns"], delta=0.01 * row["gflops"] + 0.01)
        self.check_steps(profile)
        for peaks in (profile["peaks"]["one_thread"], profile["peaks"]["all_threads"]):
            self.assertGreater(peaks["gflops"], 0)
            self.assertGreater(peaks["read_gbs"], 0)
            self.assertGreater(peaks["copy_gbs"], 0)

    def check_steps(self, profile):
        """Steps are in the order of the program; those of a kernel add up to its row."""
        steps = profile["steps"]
        order = [(step["execution"], step["command"]) for step in steps]
        self.assertEqual(order, sorted(set(order)))
        for row in profile["rows"]:
            own = [step for step in steps if (step["kind"], step["name"]) == (row["kind"], row["name"])]
            if not own:
                continue
            self.assertAlmostEqual(sum(step["time_ns"] for step in own), row["time_ns"], delta=len(own))
            self.assertEqual(len(own), round(row["calls"]))
            self.assertLessEqual(max(step["threads"] or 1 for step in own), row["threads"] or 1)

    def kernel(self, profile):
        return vmrun.only(row for row in profile["rows"] if row["kind"] == "kernel")

    def expect_product(self, kernel):
        """4x3 times 3x2: 8 workgroups with 3 fma each; 12 and 6 elements are read, 8 are written."""
        self.assertEqual(kernel["name"], "matmul")
        self.assertEqual(kernel["calls"], 1)
        self.assertEqual(kernel["workgroups"], [8, 8])
        self.assertEqual(kernel["operations"], 8 * 3 * 2)
        self.assertEqual(kernel["bytes_read"], 4 * (12 + 6))
        self.assertEqual(kernel["bytes_written"], 4 * 8)

    def test_counts_of_a_kernel(self):
        kernel = self.kernel(self.profile(*MATMUL, "--device=local-sync", "--jit=off"))
        self.expect_product(kernel)
        self.assertEqual(kernel["threads"], 1)
        self.assertEqual((kernel["interpreted_calls"], kernel["compiled_calls"], kernel["native_calls"]), (1, 0, 0))
        self.assertEqual(kernel["interpreted_because"], "compilation is off")

    def test_shared_dispatches_count_once(self):
        profile = self.profile(*MATMUL, "--device=local-task?workers=2", "--jit=off")
        self.expect_product(self.kernel(profile))
        self.assertEqual(profile["peaks"]["threads"], 2)

    def test_compiled_kernels(self):
        if not os.path.exists(vmrun.COMPILER):
            self.skipTest("there is no compiler")
        kernel = self.kernel(self.profile(*MATMUL, "--device=local-sync", "--jit=always", "--jit_cache="))
        self.expect_product(kernel)
        self.assertEqual((kernel["interpreted_calls"], kernel["compiled_calls"]), (0, 1))
        self.assertNotIn("interpreted_because", kernel)
        kernel = self.kernel(self.profile(*MATMUL, "--device=local-sync", "--jit=auto", "--jit_cache="))
        self.assertEqual(kernel["interpreted_because"], "it did not run long enough to be compiled")

    def test_checked_loops(self):
        """A loop that reads and writes one buffer is checked at each access; each of 8 workgroups has one."""
        if not os.path.exists(vmrun.COMPILER):
            self.skipTest("there is no compiler")
        text = vmrun.read_text(os.path.join(vmrun.SOURCE, "examples", "matmul.vmasm"))
        right = "%r8, %i16:17, %i10:11"
        begin = text.index("    %i18 = vm.const.f32 0")
        end = text.index("    vm.discard.refs %r0, %r1, %r2, %r3, %r4, %r5\n")
        self.assertIn(right, text)
        apart = text[:begin] + SUMS + text[end:]
        overlapping = apart.replace(right, "%r11, %i16:17, %i10:11")
        for program, loops in ((apart, 0), (overlapping, 8)):
            path = self.write("program.vmasm", program)
            arguments = [f"--module={path}", *MATMUL[1:], "--device=local-sync", "--jit=always", "--jit_cache="]
            kernel = self.kernel(self.profile(*arguments))
            self.assertEqual(kernel["compiled_calls"], 1)
            self.assertEqual(kernel["checked_loops"], loops)
            table = self.run_tool(*arguments, "--profile").stderr
            self.assertEqual("loops checked: each access was checked" in table, loops != 0)

    def test_host_code_alone(self):
        def share():
            rows = self.profile("--module=examples/fib.vmasm", "--function=recursive", "--input=15", "--jit=off")["rows"]
            host = [row for row in rows if row["kind"] == "host"]
            self.assertEqual(len(rows), len(host) + 2)
            self.assertIn("fib.recursive", {row["name"] for row in host})
            return sum(row["share"] for row in host)

        self.assertTrue(any(share() > 0.2 for _ in range(20)))  # on a busy machine, something else may have taken long

    def test_tables(self):
        for detail, has_functions in (("--profile", False), ("--profile=table", False), ("--profile=all", True)):
            with self.subTest(detail):
                result = self.run_tool(*MATMUL, "--device=local-sync", "--jit=off", detail)
                self.assertEqual(result.stdout, self.run_tool(*MATMUL, "--device=local-sync").stdout)
                lines = result.stderr.splitlines()
                self.assertRegex(lines[0], r"^profile of matmul: [0-9.]+ (us|ms|s)$")
                self.assertRegex(result.stderr, r"peaks of this machine, .* vectors of [0-9]+ bits; a block of [0-9]+ MiB")
                self.assertRegex(result.stderr, r"\n  1 thread: [0-9]+ GFLOP/s, reads [0-9.]+ GB/s, copies [0-9.]+ GB/s\n")
                title = vmrun.only(i for i, line in enumerate(lines) if line.startswith("kernel "))
                rows = lines[title + 1:]
                self.assertEqual(rows.pop(), "interpreted: compilation is off (matmul)")
                shares = [float(re.search(r"([0-9.]+)%", row).group(1)) for row in rows]
                self.assertAlmostEqual(sum(shares), 100, places=6)
                names = [row.split("  ")[0] for row in rows]
                self.assertEqual(names[-2:], ["waiting", "other"])
                self.assertRegex(vmrun.only(row for row in rows if row.startswith("matmul ")),
                                 r"matmul +1 +[0-9.]+ (us|ms) +[0-9.]+% +8 +1 +48 +104 bytes ")
                self.assertRegex(vmrun.only(row for row in rows if row.startswith("matmul ")), r" interpreted$")
                self.assertEqual("hal.device.queue.execute" in names, has_functions)
                self.assertEqual("host code" in names, not has_functions)

    def test_sources(self):
        """The place of a kernel in the source, which is in the executables of each device."""
        vmrun.fixtures() or self.skipTest("the shared fixtures are not here")
        for kind, module, device, source in vmrun.programs_with_sources():
            with self.subTest(kind):
                rows = self.profile(f"--module={module}", "--function=simple_mul", "--input=4xf32=2", "--input=4xf32=3",
                                    f"--device={device}")["rows"]
                self.assertEqual(vmrun.only(row for row in rows if row["kind"] == "kernel")["source"], source)

    def test_steps(self):
        """Each names the call that recorded it, on each device that reports its submissions."""
        for device in ("local-sync", "local-task"):
            with self.subTest(device):
                step = vmrun.only(self.profile(*MATMUL, f"--device={device}")["steps"])
                self.assertEqual((step["kind"], step["name"], step["execution"], step["command"]), ("kernel", "matmul", 0, 1))
                self.assertRegex(step["place"], r"^matmul\.matmul\+[0-9A-F]{8}$")
        # Commands of one name at different places, and an operation of the queue.
        steps = self.profile(*MOVES, "--device=local-sync")["steps"]
        self.assertGreater(len(steps), 1)
        self.assertTrue(all(step["place"].startswith("moves_bytes.") == (step["command"] > 0) for step in steps), steps)
        commands = [step["place"] for step in steps if step["command"] > 0]
        self.assertEqual(len(set(commands)), len(commands))

    def test_a_call_that_fails(self):
        path = self.path("fails.html")
        done = vmrun.run("vm-run", "--module=examples/matmul.vmasm", "--function=matmul", "--input=4x3xf32=1", "--input=4x2xf32=1",
                         "--device=local-sync", f"--profile={path}")
        self.assertIsNone(vmrun.why_bad_failure(done, "matmul"))
        self.assertFalse(os.path.exists(path))

    def test_wrong_value(self):
        result = vmrun.run("vm-run", *MATMUL, "--profile=html")
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("--profile=html", result.stderr)

    def test_beside_a_trace(self):
        trace = self.path("run.perfetto")
        self.expect_product(self.kernel(self.profile(*MATMUL, "--device=local-sync", "--jit=off", f"--trace={trace}")))
        self.assertGreater(os.path.getsize(trace), 1000)

    def test_transfers(self):
        rows = self.profile(*MOVES, "--device=local-sync")["rows"]
        self.assertEqual({row["name"] for row in rows if row["kind"] == "transfer"}, {"fill", "copy", "update"})

    def test_a_device_without_traces(self):
        if platform.machine() != "x86_64" or vmrun.processor() != "x86_64":
            self.skipTest("the driver that is kept is for x86_64")
        environment = dict(os.environ, HALYARD_DRIVER_PATH=str(FIRST))
        try:
            rows = self.profile(*MOVES, "--device=null", env=environment)["rows"]
        except AssertionError as error:
            if "sanitizer" in str(error):
                self.skipTest("the driver that is kept is not instrumented")
            raise
        self.assertEqual({row["kind"] for row in rows}, {"host", "waiting", "other"})

    def bench(self, *arguments):
        return self.run_tool(*arguments, "--benchmark_min_time=0.02", "--benchmark_filter=^BM_", "--profile", tool="vm-bench")

    def test_vm_bench(self):
        for device in ("local-sync", "local-task?workers=2"):
            for _ in range(20):  # on a busy machine, one call may take the whole time
                document = json.loads(self.bench(*MATMUL, f"--device={device}", "--jit=off", "--benchmark_format=json").stdout)
                self.assertEqual([row["name"] for row in document["benchmarks"]], ["BM_matmul/process_time/real_time"])
                profile = vmrun.only(document["profiles"])
                self.check(profile)
                if profile["calls"] > 1:
                    break
            self.assertEqual(profile["function"], "matmul")
            self.assertGreater(profile["calls"], 1)
            self.assertGreater(profile["untraced_ns"], 0)
            self.expect_product(self.kernel(profile))

    def test_vm_bench_prints_a_table(self):
        out = self.path("out.json")
        result = self.bench(*MATMUL, "--device=local-sync", "--jit=off", f"--benchmark_out={out}")
        self.assertRegex(result.stdout, r"BM_matmul/process_time/real_time ")
        self.assertRegex(result.stderr, r"profile of matmul: .* a call, the average of [0-9]+ calls; without the trace [0-9.]+ ")
        self.assertRegex(result.stderr, r"\nmatmul +1 ")
        with open(out) as file:
            self.check(vmrun.only(json.load(file)["profiles"]))

    def test_compiled_programs(self):
        """Programs of a compiler: their sizes are 2x3 and 3x2."""
        fixtures = vmrun.fixtures()
        if not fixtures:
            self.skipTest("there are no fixtures")
        inputs = ["--function=matmul", "--input=2x3xf32=1", "--input=3x2xf32=1", "--device=local-sync", "--jit=off"]
        folder = pathlib.Path(fixtures) / "compiled"
        rows = self.profile(f"--module={folder / 'matmul_dynamic.vmvx.vmfb'}", *inputs)["rows"]
        kernels = [row for row in rows if row["kind"] == "kernel"]
        self.assertEqual(sum(row["operations"] for row in kernels), 2 * 2 * 2 * 3)
        native = folder / "matmul_dynamic.llvm-cpu.vmfb"
        if vmrun.processor() == "x86_64":
            rows = self.profile(f"--module={native}", *inputs)["rows"]
            for row in rows:
                if row["kind"] == "kernel":
                    self.assertIsNone(row["operations"])
                    self.assertEqual(row["native_calls"], row["calls"])
                    self.assertEqual(row["not_counted_because"], "machine code")
