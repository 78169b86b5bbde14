"""vm-dump --memory: peaks as numbers and as expressions, branches and loops that depend on data, programs that cannot be
followed, wrong command lines; and its numbers beside those that devices count for the same calls."""
import itertools
import json
import os
import re
import resource
import unittest

import installed
import large
import perfetto
import vmrun

IMPORTS = """vm.import @hal.devices.get cconv "0i_r"
vm.import @hal.device.allocator cconv "0r_r"
vm.import @hal.allocator.allocate cconv "0rIiiI_r"
vm.import @hal.allocator.import cconv "0riIiirII_r"
vm.import @hal.buffer_view.buffer cconv "0r_r"
vm.import @hal.buffer_view.dim cconv "0ri_I"
vm.import @hal.buffer.load cconv "0rIi_i"
vm.import @hal.device.queue.alloca cconv "0rIrrIiiII_r"
vm.import @hal.device.queue.dealloca cconv "0rIrrrI_v"
vm.import @hal.fence.create cconv "0rI_r"
vm.import @hal.fence.await cconv "0iICrD_i"
"""
# Registers that all functions below set first: the device, and constants.
BEGIN = """  %i20 = vm.const.i32.zero
  %i22:23 = vm.const.i64.zero
  %i24:25 = vm.const.i64 -1
  %i26 = vm.const.i32 48
  %i27 = vm.const.i32 3075
  %r10 = vm.call @hal.devices.get(%i20)
"""


def alloca(ref, size):
    return (f"  {ref} = vm.call @hal.device.queue.alloca(%r10, %i24:25, %r11, %r11, %i22:23, %i26, %i27, {size}, %i22:23)\n")


def dealloca(ref):
    return f"  vm.call @hal.device.queue.dealloca(%r10, %i24:25, %r11, %r11, {ref}, %i22:23)\n"


DYNAMIC = ("vm.module @dynamic bytecode 17\nvm.dependency @hal 6\n" + IMPORTS + """vm.export @main
vm.attr @main "iree.abi.declaration" "sync func @main(%x: tensor<?x16xf32>, %n: i32) -> (%y: tensor<?xf32>)"
vm.func @main(%r0: !hal.buffer_view, %i0: i32) -> (!hal.buffer) {
""" + BEGIN + """  %r1 = vm.call @hal.buffer_view.buffer(%r0)
  %i2:3 = vm.call @hal.buffer_view.dim(%r0, %i20)
  %i4:5 = vm.const.i64 20
  %i6:7 = vm.mul.i64 %i2:3, %i4:5
  %i8:9 = vm.const.i64 63
  %i6:7 = vm.add.i64 %i6:7, %i8:9
  %i8:9 = vm.const.i64 -64
  %i6:7 = vm.and.i64 %i6:7, %i8:9
""" + alloca("%r2", "%i6:7") + dealloca("%r2") + "  %i8:9 = vm.const.i64 1000\n" + alloca("%r3", "%i8:9") +
           "  %i8:9 = vm.const.i64 24\n" + alloca("%r4", "%i8:9") + dealloca("%r3") + "  vm.return %R4\n}\n" + """vm.export @loop
vm.func @loop(%i0: i32) -> () {
""" + BEGIN + """  %i1 = vm.const.i32 1
  %i2 = vm.const.i32.zero
  %i8:9 = vm.const.i64 100
  vm.br ^bb1(%i2 -> %i3)
^bb1:
  %i4 = vm.cmp.lt.i32.s %i3, %i0
  vm.cond_br %i4, ^bb2, ^bb3
^bb2:
""" + alloca("%r2", "%i8:9") + """  %i3 = vm.add.i32 %i3, %i1
  vm.br ^bb1
^bb3:
  vm.return
}
vm.export @growing
vm.func @growing(%i0: i32) -> () {
""" + BEGIN + """  %i1 = vm.const.i32 1
  %i2 = vm.const.i32.zero
  %i5 = vm.const.i32 1000
  %r5 = vm.list.alloc %i5 : !vm.list<!hal.buffer>
  vm.list.resize %r5, %i5
  %i8:9 = vm.const.i64 100
  vm.br ^bb1(%i2 -> %i3)
^bb1:
  %i4 = vm.cmp.lt.i32.s %i3, %i0
  vm.cond_br %i4, ^bb2, ^bb3
^bb2:
""" + alloca("%r2", "%i8:9") + """  vm.list.set.ref %r5, %i3, %r2
  %i3 = vm.add.i32 %i3, %i1
  vm.br ^bb1
^bb3:
  vm.return
}
vm.export @branch
vm.func @branch(%r0: !hal.buffer) -> () {
""" + BEGIN + """  %i1 = vm.const.i32 4
  %i2 = vm.call @hal.buffer.load(%r0, %i22:23, %i1)
  %i8:9 = vm.const.i64 100
  vm.cond_br %i2, ^bb1, ^bb2
^bb1:
""" + alloca("%r2", "%i8:9") + dealloca("%r2") + """  vm.return
^bb2:
  %i10:11 = vm.ext.i32.i64.u %i2
""" + alloca("%r2", "%i10:11") + dealloca("%r2") + """  vm.return
}
vm.export @released
vm.func @released() -> () {
""" + BEGIN + """  %i8:9 = vm.const.i64 512
  %r1 = vm.call @hal.device.allocator(%r10)
  %r2 = vm.call @hal.allocator.allocate(%r1, %i24:25, %i26, %i27, %i8:9)
  %r2 = vm.call @hal.allocator.allocate(%r1, %i24:25, %i26, %i27, %i8:9)
  vm.discard.refs %r2
  %r3 = vm.call @hal.allocator.allocate(%r1, %i24:25, %i26, %i27, %i8:9)
  vm.return
}
vm.export @endless
""" + vmrun.endless("endless") + """vm.export @recursive
vm.func @recursive() -> () {
  vm.call @recursive()
  vm.return
}
""")
# Lists in lists, to a depth at which a recursive destructor would overflow the stack.
NESTED = """vm.module @nested bytecode 17
vm.type !vm.list<!vm.ref<?>>
vm.export @main
vm.func @main() -> () {
  %i0 = vm.const.i32 1
  %i1 = vm.const.i32.zero
  %i2 = vm.const.i32.zero
  %i3 = vm.const.i32 300000
  vm.br ^bb1
^bb1:
  %r1 = vm.list.alloc %i0 : !vm.list<!vm.ref<?>>
  vm.list.resize %r1, %i0
  vm.list.set.ref %r1, %i1, %r0
  %r0 = vm.assign.ref %r1
  %i2 = vm.add.i32 %i2, %i0
  %i4 = vm.cmp.lt.i32.s %i2, %i3
  vm.cond_br %i4, ^bb1, ^bb2
^bb2:
  vm.list.set.ref %r0, %i1, %r0
  vm.return
}
"""


class Analysis(vmrun.FolderCase):
    def setUp(self):
        super().setUp()
        self.dynamic = self.write("dynamic.vmasm", DYNAMIC.encode())

    def analyze(self, *arguments):
        done = vmrun.run("vm-dump", *arguments, "--memory", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def function(self, name, *inputs):
        return vmrun.only(self.analyze(self.dynamic, f"--function={name}", *(f"--input={text}" for text in inputs))["functions"])

    def test_expressions(self):
        main = self.function("main")
        self.assertEqual(main["inputs"], ["x", "n"])
        # Either the first allocation or the two others are the peak, beside the argument.
        self.assertEqual({peak["bytes"] for peak in main["peaks"]}, {"align(20*x[0], 64) + 64*x[0]", "64*x[0] + 1024"})
        self.assertEqual({peak["arguments"] for peak in main["peaks"]}, {"64*x[0]"})
        self.assertEqual(main["unknowns"], {})

    def test_numbers(self):
        for rows, peak in ((1, 64 + 1024), (50, 64 * 50 + 1024), (100, 64 * 100 + 2048), (0, 1024)):
            with self.subTest(rows):
                found = vmrun.only(self.function("main", f"{rows}x16xf32", "3")["peaks"])
                self.assertEqual(found["bytes"], peak)
                self.assertEqual(sum(found[part] for part in ("arguments", "results", "transients", "state")), peak)

    def test_who_made_it(self):
        main = self.function("main", "1x16xf32=5", "3")
        peak = vmrun.only(main["peaks"])
        alive = [main["allocations"][index] for index in peak["alive"]]
        self.assertEqual({(each["bytes"], each["origin"]) for each in alive}, {(64, "argument"), (1000, "transient"), (24, "result")})
        for each in alive:
            if each["origin"] != "argument":
                self.assertRegex(each["made_at"]["place"], r"^main\+[0-9A-F]{8}$")

    def test_a_branch_that_depends_on_data(self):
        branch = self.function("branch")
        self.assertEqual(branch["paths"], 2)
        peaks = {peak["bytes"] for peak in branch["peaks"]}
        self.assertIn(100, peaks)
        self.assertIn("an element, read at branch+", branch["unknowns"][vmrun.only(peaks - {100})])

    def test_a_loop_that_depends_on_an_argument(self):
        # Each pass replaces the buffer of the pass before it, or adds one.
        for name, grows in (("loop", False), ("growing", True)):
            unknown = self.function(name)
            notes = "\n".join(unknown["notes"])
            self.assertIn("followed 3 times in one way", notes)
            self.assertEqual("memory grows by 100 from one pass" in notes, grows, notes)
            for passes in (0, 1, 250):
                known = self.function(name, str(passes))
                self.assertEqual(vmrun.only(known["peaks"])["bytes"], 100 * (passes if grows else min(passes, 2)))
                self.assertEqual(known["notes"], [])

    def test_released_references_free(self):
        self.assertEqual(vmrun.only(self.function("released")["peaks"])["bytes"], 1024)

    def test_what_cannot_be_followed(self):
        self.assertIn("does too much to be followed", self.function("endless")["trouble"])
        self.assertIn("nest deeper", self.function("recursive")["trouble"])

    def test_globals_that_nothing_uses_take_no_memory(self):
        # Half a billion of them: 2 GiB of numbers, 8 GiB of references.
        text = """vm.module @m
vm.state 8, 536870913
vm.export @f
vm.func @f() -> (i32) {
  %r0 = vm.const.ref.zero
  vm.global.store.ref %r0, .refs[536870912] : !vm.buffer
  %r0 = vm.global.load.ref .refs[536870912] : !vm.buffer
  %i0 = vm.cmp.nz.ref %r0
  vm.return %i0
}
"""
        module = self.write("globals.vmasm", text.encode())
        tools = [("vm-dump", module, "--memory")]
        if os.path.exists(os.path.join(vmrun.BIN, "vm-cc")):
            tools.append(("vm-cc", module, "-o", os.path.join(self.folder, "globals")))
        limit = resource.RLIM_INFINITY if installed.cache("HALYARD_SANITIZE") else 1 << 30
        for tool, *arguments in tools:
            with self.subTest(tool):
                done = vmrun.run(tool, *arguments, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)))
                self.assertEqual(done.returncode, 0, done.stderr)

    def test_nested_lists(self):
        nested = self.write("nested.vmasm", NESTED.encode())
        self.assertEqual(vmrun.only(self.analyze(nested)["functions"])["trouble"], "")

    def test_text(self):
        done = vmrun.run("vm-dump", self.dynamic, "--memory", "--function=main", "--input=2x16xf32", "--input=1")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"(?m)^  peak +1\.1 KiB \(1152 bytes\)$")
        self.assertRegex(done.stdout, r"(?m)^ +1000  transient  queue\.alloca at main\+[0-9A-F]{8}$")

    def test_wrong_command_lines(self):
        for arguments, message in (
                (("--memory", "--input=1x16xf32"), "choose one with --function"),
                (("--memory", "--function=main", "--input=1x17xf32"), "dimension 1 of input 0 is 17; the function expects 16"),
                (("--memory", "--function=main", "--input=16xf32"), "has 1 dimensions; the function expects 2"),
                (("--memory", "--function=main", "--input=1x16xg32"), "element type 'g32' is not known"),
                (("--memory", "--function=main", "--input=99999999999999999999x16xf32"), "whose size is no number"),
                (("--memory", "--function=main", "--input=1x16xf32", "--input=two"), "expects a number there"),
                (("--memory", "--function=main", "--input=1x16xf32", "--input=1", "--input=1"), "found 3 inputs"),
                (("--memory", "--function=mein"), "main"),
                (("--memory", "--jit"), "two outputs"),
                (("--input=1",), "applies to --memory and --html"),
                (("--function=main",), "selects functions for --jit, --memory and --html")):
            with self.subTest(arguments):
                done = vmrun.run("vm-dump", self.dynamic, *arguments)
                self.assertIsNone(vmrun.why_bad_failure(done, message))


QUEUED = "vm.module @queued bytecode 17\nvm.dependency @hal 6\n" + IMPORTS + """vm.export @main
vm.func @main() -> () {
""" + BEGIN + "".join(f"  %r{fence} = vm.call @hal.fence.create(%r10, %i22:23)\n" for fence in (1, 2, 3, 4)) + """  %i8:9 = vm.const.i64 1048576
  %r5 = vm.call @hal.device.queue.alloca(%r10, %i24:25, %r11, %r1, %i22:23, %i26, %i27, %i8:9, %i22:23)
  %i8:9 = vm.const.i64 524288
  %r6 = vm.call @hal.device.queue.alloca(%r10, %i24:25, %r2, %r3, %i22:23, %i26, %i27, %i8:9, %i22:23)
  vm.call @hal.device.queue.dealloca(%r10, %i24:25, %r1, %r2, %r5, %i22:23)
  vm.call @hal.device.queue.dealloca(%r10, %i24:25, %r3, %r4, %r6, %i22:23)
  %i0 = vm.const.i32 -1
  vm.call.variadic.yieldable @hal.fence.await segments[65535, 65535, 1](%i0, %i22:23, %r4) -> ^bb1(%i1)
^bb1:
  vm.return
}
"""


class Measured(vmrun.FolderCase):
    """The peak that a device counts for a call in vm-run, beside the computed one."""

    def peaks(self, arguments, module, folder):
        function = vmrun.only(flag for flag in arguments if flag.startswith("--function="))
        inputs = [flag for flag in arguments if flag.startswith("--input=")]
        page = self.path("page.html")
        ran = vmrun.run("vm-run", f"--module={module}", *arguments, f"--profile={page}", "--output_max_element_count=4",
                        "--print_statistics", cwd=folder, timeout=900)
        self.assertEqual(ran.returncode, 0, ran.stderr[-2000:])
        counted = sum(int(bytes_) for bytes_ in re.findall(r"(\d+)B peak", ran.stderr))
        data = json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', vmrun.read_text(page), re.DOTALL)[1])
        done = vmrun.run("vm-dump", module, "--memory", "--json", function, *inputs, cwd=folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        analysis = json.loads(done.stdout)
        computed = vmrun.only(analysis["functions"])
        self.assertEqual(computed["trouble"], "")
        load = analysis["initializer"]["peaks"][0]["bytes"] if analysis["initializer"] else 0
        device = vmrun.only(data["timeline"]["devices"])
        # By the driver, and by the log. A device with threads may allocate for its queue while the host frees: nothing says
        # which is first, and the log may see another order than the driver.
        if "--device=local-sync" in arguments:
            self.assertEqual(counted, device["peak_bytes"])
        self.assertAlmostEqual(counted, device["peak_bytes"], delta=0.02 * device["peak_bytes"])
        return max(load, vmrun.only(computed["peaks"])["bytes"]), device, computed

    def expect_near(self, computed, device):
        self.assertAlmostEqual(computed, device["peak_bytes"], delta=0.02 * device["peak_bytes"])
        self.assertEqual(sum(each["bytes"] * each["count"] for each in device["alive"]), device["peak_bytes"])

    def test_an_example(self):
        for device in ("local-sync", "local-task"):
            computed, measured, function = self.peaks(["--function=matmul", "--input=4x3xf32=1", "--input=3x2xf32=2", f"--device={device}"],
                                                      os.path.join(vmrun.SOURCE, "examples", "matmul.vmasm"), vmrun.SOURCE)
            self.assertEqual(computed, 104)
            self.expect_near(computed, measured)
            makers = {each["made_by"].split("+")[0] for each in measured["alive"]}
            self.assertEqual(makers, {"the embedder, for an argument", "at matmul.matmul"})
            self.assertEqual([step["kind"] for step in function["steps"]], ["dispatch"])
            self.assertEqual([use["access"] for use in function["steps"][0]["uses"]], ["read", "read", "write"])

    def test_statistics(self):
        done = vmrun.run("vm-run", "--module=examples/matmul.vmasm", "--function=matmul", "--input=4x3xf32=1", "--input=3x2xf32=2",
                         "--device=local-sync", "--print_stats", cwd=vmrun.SOURCE)
        self.assertEqual(done.returncode, 0, done.stderr)
        found = re.search(r"(?m)^alive at the peak of local-sync://, 104 bytes\n((?:  .*\n)+)", done.stderr)
        self.assertIsNotNone(found, done.stderr)
        rows = [row.split(None, 1) for row in found[1].splitlines()]
        self.assertEqual([int(size) for size, _ in rows], [48, 32, 24])
        self.assertRegex(rows[1][1], r"^at matmul\.matmul\+[0-9A-F]{8}$")

    def test_memory_counts_while_the_queue_has_it(self):
        """The second buffer is requested before the dealloca of the first is, but its alloca waits for that dealloca."""
        module = self.write("queued.vmasm", QUEUED.encode())
        devices = ["local-sync", "local-task", *([vulkan] if (vulkan := vmrun.vulkan_device()) else [])]
        for device in devices:
            with self.subTest(device):
                page, trace = self.path("page.html"), self.path("run.perfetto")
                ran = vmrun.run("vm-run", f"--module={module}", f"--device={device}", f"--profile={page}", f"--trace={trace}", "--print_stats")
                self.assertEqual(ran.returncode, 0, ran.stderr)
                self.assertRegex(ran.stderr, r"alive at the peak of \S+, 1 MiB\n +1048576 at queued\.main\+[0-9A-F]{8}\n")
                printed = re.search(r"(?m)^memory of \S+ over time\n((?:  .*\n)+)alive", ran.stderr)[1]
                self.assertEqual([row.split()[-1] for row in printed.splitlines()], ["1048576", "0", "524288", "0"])
                data = json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', vmrun.read_text(page), re.DOTALL)[1])
                log = vmrun.only(data["timeline"]["devices"])
                levels = [1 << 20, 0, 1 << 19, 0]
                # With the level at the begin and at the end.
                self.assertEqual([level for level, _ in itertools.groupby(bytes_ for _, bytes_ in log["points"])], [0, *levels])
                self.assertEqual(log["peak_bytes"], 1 << 20)
                events = perfetto.Trace(trace)
                track = vmrun.only(number for number, each in events.tracks.items() if (each.name, each.kind) == ("memory", "counter"))
                # Threads write their events one after the other into the file.
                counts = sorted((each for each in events.events if each.track == track and each.kind == perfetto.COUNTER), key=lambda each: each.time)
                self.assertEqual([value for value, _ in itertools.groupby(each.value for each in counts)], levels)
        # Computed from the program alone, in the order of its requests.
        computed = json.loads(vmrun.succeeds("vm-dump", module, "--memory", "--json").stdout)
        self.assertEqual(vmrun.only(vmrun.only(computed["functions"])["peaks"])["bytes"], (1 << 20) + (1 << 19))

    def test_large_programs(self):
        try:
            folder = large.folder()
            large.python_with_numpy()
        except large.Missing as missing:
            self.skipTest(str(missing))
        cases = json.loads(vmrun.read_text(os.path.join(folder, "cases.json")))
        seen = set()
        for case in cases:
            (name,) = case["devices"]
            if name == "vulkan" and not vmrun.vulkan_device():
                continue
            if (".llvm-cpu" in case["module"] and vmrun.processor() != "x86_64") or (case["module"], case["function"], name) in seen:
                continue
            seen.add((case["module"], case["function"], name))
            with self.subTest(case["name"]):
                arguments = [f"--function={case['function']}", f"--device={name}", *case["flags"],
                             *(f"--input={text}" for text in case["inputs"])]
                computed, device, function = self.peaks(arguments, case["module"], folder)
                print(f"{case['name']}: computed {computed}, measured {device['peak_bytes']}")
                self.expect_near(computed, device)
                self.assertTrue(all(step["name"] for step in function["steps"] if step["kind"] == "dispatch"))
        if vmrun.processor() == "x86_64":
            self.assertGreaterEqual(len([each for each in seen if each[2] != "vulkan"]), 10)


if __name__ == "__main__":
    unittest.main()
