"""vm-run --trace: the file is decoded; slices nest, flows lead from submissions to work and from fence to fence."""
import os
import re
import shutil
import struct

import vmrun
from npy import read_npy
from perfetto import COUNTER, INSTANT, Trace

CALLS = """
vm.module @calls
vm.export @down
vm.export @fails
vm.export @pauses
vm.func @down(%i0: i32) -> (i32) {
  %i1 = vm.const.i32 1
  vm.cond_br %i0, ^bb1, ^bb2
^bb1:
  %i0 = vm.sub.i32 %i0, %i1
  %i0 = vm.call @down(%i0)
  %i0 = vm.add.i32 %i0, %i1
  vm.return %i0
^bb2:
  vm.return %i0
}
vm.func @fails(%i0: i32) -> (i32) {
  %i0 = vm.call @deeper(%i0)
  vm.return %i0
}
vm.func @deeper(%i0: i32) -> (i32) {
  vm.fail %i0, "as it should"
}
vm.func @pauses(%i0: i32) -> (i32) {
  vm.yield ^bb1(%i0 -> %i1)
^bb1:
  vm.return %i1
}
"""
CALLER = vmrun.with_exports("""
vm.module @caller
vm.import @calls.down cconv "0i_i"
vm.import @calls.fails cconv "0i_i"
vm.func @across(%i0: i32) -> (i32) {
  %i0 = vm.call @calls.down(%i0)
  vm.return %i0
}
vm.func @across_and_fail(%i0: i32) -> (i32) {
  %i0 = vm.call @calls.fails(%i0)
  vm.return %i0
}
""")
# Two fills that wait for one another: the second is submitted first, and waits for the first one's fence.
FENCES = """
vm.module @fences
vm.dependency @hal 7
vm.import @hal.devices.get cconv "0i_r"
vm.import @hal.device.queue.barrier cconv "0rIrrI_v"
vm.import @hal.fence.create cconv "0rI_r"
vm.import @hal.fence.await cconv "0iICrD_i"
vm.export @chain
vm.func @chain() -> (i32) {
  %i0 = vm.const.i32.zero
  %i2:3 = vm.const.i64.zero
  %r0 = vm.call @hal.devices.get(%i0)
  %r1 = vm.call @hal.fence.create(%r0, %i2:3)
  %r2 = vm.call @hal.fence.create(%r0, %i2:3)
  vm.call @hal.device.queue.barrier(%r0, %i2:3, %r1, %r2, %i2:3)
  %r3 = vm.const.ref.zero
  vm.call @hal.device.queue.barrier(%r0, %i2:3, %r3, %r1, %i2:3)
  %i4 = vm.const.i32 -1
  %i0 = vm.call.variadic @hal.fence.await segments[65535, 65535, 1](%i4, %i2:3, %r2)
  vm.return %i0
}
"""


class Traces(vmrun.FolderCase):
    def setUp(self):
        super().setUp()
        self.trace_path = self.path("run.perfetto")

    def run_traced(self, *arguments, fails=False):
        done = vmrun.run("vm-run", *arguments, "--trace=" + self.trace_path)
        self.assertEqual(done.returncode != 0, fails, done.stderr)
        return Trace(self.trace_path), done

    def named(self, trace, name):
        return [s for s in trace.slices() if s.name == name]

    def one(self, trace, name):
        found = self.named(trace, name)
        self.assertEqual(len(found), 1, f"{name}: {found}")
        return found[0]

    def test_calls_nest(self):
        trace, _ = self.run_traced("--module=" + self.write("calls.vmasm", CALLS), "--function=down", "--input=5")
        slices = self.named(trace, "calls.down")
        self.assertEqual(len(slices), 6)
        self.assertEqual(sorted(s.depth for s in slices), list(range(slices[0].depth, slices[0].depth + 6)))
        self.assertEqual({s.category for s in slices}, {"machine"})
        call = self.one(trace, "call")
        self.assertEqual(call.category, "phase")
        self.assertTrue(all(call.begin <= s.begin and s.end <= call.end for s in slices))

    def test_calls_of_other_modules(self):
        calls, caller = self.write("calls.vmasm", CALLS), self.write("caller.vmasm", CALLER)
        trace, _ = self.run_traced(f"--module={calls}", f"--module={caller}", "--function=across", "--input=2")
        outer = self.one(trace, "caller.across")
        self.assertEqual([s.name for s in trace.children(outer)], ["calls.down"])
        self.assertEqual(len(self.named(trace, "calls.down")), 3)

    def test_what_fails_is_closed(self):
        calls, caller = self.write("calls.vmasm", CALLS), self.write("caller.vmasm", CALLER)
        trace, done = self.run_traced(f"--module={calls}", f"--module={caller}", "--function=across_and_fail", "--input=3",
                                      fails=True)
        self.assertIn("as it should", done.stderr)
        self.assertEqual([s.name for s in trace.children(self.one(trace, "calls.fails"))], ["calls.@2"])  # a function without an export has no name

    def test_what_is_suspended_goes_on_along_a_flow(self):
        trace, _ = self.run_traced("--module=" + self.write("calls.vmasm", CALLS), "--function=pauses", "--input=5")
        parts = self.named(trace, "calls.pauses")
        self.assertEqual(len(parts), 2)
        (number,) = parts[1].flows
        self.assertEqual([event.name for event in trace.flow(number)], ["suspended", "calls.pauses"])
        self.assertTrue(parts[0].begin <= trace.flow(number)[0].time <= parts[0].end <= parts[1].begin)

    def product(self, device):
        return self.run_traced("--module=examples/elementwise_mul.vmasm", "--function=mul", "--input=8xf32=3",
                               "--input=8xf32=2", "--device=" + device)

    def test_dispatches_have_names_and_lie_in_their_submission(self):
        for device, options in (("local-sync", ""), ("local-task", "?workers=1")):  # several workers may share the dispatch
            with self.subTest(device):
                trace, done = self.product(device + options)
                self.assertIn("8xf32=6 6 6 6 6 6 6 6", done.stdout)
                (dispatch,) = [s for s in trace.slices() if s.category == "device"]
                self.assertEqual(dispatch.name, "mul")
                self.assertEqual(trace.tracks[dispatch.track].kind, "thread")
                (work,) = [s for s in trace.slices() if s.category == "queue" and s.name == "execute"]
                self.assertTrue(work.begin <= dispatch.begin and dispatch.end <= work.end, (work, dispatch))
                parent = trace.tracks[trace.tracks[work.track].parent]
                self.assertEqual(parent.name, device + "://")
                worker = trace.tracks[dispatch.track].name
                if device == "local-task" or not vmrun.is_emulated():  # the emulator names the thread of its own program
                    self.assertEqual(worker, {"local-sync": "vm-run", "local-task": "halyard-worker"}[device])

    def test_dispatches_say_how_many_threads_ran_them_and_why(self):
        alone = {"threads": 1, "not shared because": "the device runs each dispatch on one thread"}
        for device, expected in (("local-sync", alone), ("local-task?workers=1", alone), ("local-task?workers=2", {"threads": 2})):
            with self.subTest(device):
                for _ in range(20):  # on a busy machine, the other thread may not have begun to wait for work
                    trace, _ = self.product(device)
                    dispatches = [s for s in trace.slices() if s.category == "device"]
                    if dispatches[0].arguments == expected:
                        break
                self.assertIn(len(dispatches), range(1, expected["threads"] + 1))  # one for each thread that took part
                for dispatch in dispatches:
                    self.assertEqual(dispatch.arguments, expected)
                self.assertTrue(all(not s.arguments for s in trace.slices() if s.category != "device"))

    def test_flows_lead_from_the_call_through_alloca_and_execute_to_the_await(self):
        trace, _ = self.product("local-task")
        submitted = [event for event in trace.events if event.kind == INSTANT and event.category == "queue"
                     and trace.tracks[event.track].kind == "thread"]
        self.assertEqual([event.name for event in submitted], ["alloca", "execute"])
        for event in submitted:
            flow = [(step.name, step.kind) for step in trace.flow(event.flows[0])]
            self.assertEqual(flow[0], (event.name, INSTANT))
            self.assertIn(flow[1][0], (event.name, "waiting"))
        # Fences: from the signalling work to the waiter.
        alloca, execute = (next(s for s in trace.slices() if s.category == "queue" and s.name == name)
                           for name in ("alloca", "execute"))
        self.assertEqual(len(set(alloca.flows) & set(execute.flows)), 1)
        (number,) = [number for number in execute.flows if "reached" in [step.name for step in trace.flow(number)]]
        self.assertEqual([(step.name, trace.tracks[step.track].kind) for step in trace.flow(number)],
                         [("execute", "track"), ("reached", "thread")])

    def test_a_wait_before_its_signal(self):
        module = self.write("fences.vmasm", FENCES)
        for device in ("local-sync", "local-task"):
            with self.subTest(device):
                trace, _ = self.run_traced("--module=" + module, "--function=chain", "--device=" + device)
                waiting = [s for s in trace.slices() if s.name == "waiting" and trace.tracks[s.track].name == "in flight"]
                self.assertEqual(len(waiting), 1)
                barriers = sorted(self.named(trace, "barrier"), key=lambda s: s.begin)
                self.assertEqual(len(barriers), 2)
                first, second = barriers
                self.assertNotEqual(first.track, second.track)  # in flight at the same time
                self.assertEqual((waiting[0].track, waiting[0].end), (second.track, second.begin))
                (number,) = set(first.flows) & set(second.flows)
                self.assertEqual([event.track for event in trace.flow(number)], [first.track, second.track])

    def test_memory_is_counted_and_given_back(self):
        trace, _ = self.product("local-sync")
        counts = [event for event in sorted(trace.events, key=lambda e: e.time) if event.kind == COUNTER]
        self.assertEqual({trace.tracks[event.track].name for event in counts}, {"memory"})
        self.assertEqual(max(event.value for event in counts), 3 * 8 * 4)
        self.assertEqual(counts[-1].value, 0)

    def test_who_made_the_memory(self):
        trace, _ = self.product("local-sync")
        on = lambda name: [event for event in trace.events if trace.tracks[event.track].name == name]
        made = on("allocations")
        self.assertEqual(sorted(event.arguments["bytes"] for event in made), [32, 32, 32])
        # At the peak: two arguments of one size, and the result.
        alive = {event.name.split("+")[0]: event.arguments for event in on("alive at the peak")}
        self.assertEqual(alive["the embedder, for an argument"], {"bytes": 32, "count": 2, "peak": 96})
        others = {name: arguments for name, arguments in alive.items() if not name.startswith("the embedder")}
        ((name, arguments),) = others.items()
        self.assertRegex(name, r"^at \w+\.mul$")
        self.assertEqual(arguments, {"bytes": 32, "count": 1, "peak": 96})

    def test_two_devices_have_tracks_of_their_own(self):
        folder = vmrun.fixtures()
        if not folder:
            self.skipTest("the shared fixtures are not there")
        trace, _ = self.run_traced("--module=" + os.path.join(folder, "compiled", "multi_device_mul.vmvx+vmvx.vmfb"),
                                   "--function=multi_device_mul", "--input=4xf32=1,2,3,4", "--device=local-task",
                                   "--device=local-sync")
        homes = {trace.tracks[trace.tracks[s.track].parent].name for s in trace.slices()
                 if s.category == "queue" and s.name == "execute"}
        self.assertEqual(homes, {"local-task://", "local-sync://"})

    def test_tensors_of_dispatches(self):
        for device in ("local-sync", "local-task"):
            with self.subTest(device):
                folder = self.path(device)
                done = vmrun.succeeds("vm-run", "--module=examples/elementwise_mul.vmasm", "--function=mul", "--input=8xf32=3",
                                 "--input=8xf32=2", "--device=" + device, "--trace_tensors=m?l", "--trace_tensors_folder=" + folder)
                self.assertIn("8xf32=6 6 6 6 6 6 6 6", done.stdout)
                arrays = {}
                for name in os.listdir(folder):
                    (array,) = read_npy(vmrun.read(os.path.join(folder, name)))
                    self.assertEqual(array[:2], ("|u1", (32,)), name)  # the name does not give the element type
                    arrays[name] = struct.unpack("<8f", array[2])
                self.assertEqual(arrays.pop("00000_mul.binding2.after.npy"), (6,) * 8)
                self.assertEqual(arrays.pop("00000_mul.binding0.before.npy"), (3,) * 8)
                self.assertEqual(arrays.pop("00000_mul.binding1.before.npy"), (2,) * 8)
                self.assertEqual(list(arrays), ["00000_mul.binding2.before.npy"])  # inputs are as they were

    def test_tensors_of_others_are_left_alone(self):
        folder = self.path("tensors")
        done = vmrun.succeeds("vm-run", "--module=examples/elementwise_mul.vmasm", "--function=mul", "--input=8xf32=3",
                         "--input=8xf32=2", "--trace_tensors=add", "--trace_tensors_folder=" + folder)
        self.assertEqual(os.listdir(folder), [])

    def test_tensors_that_cannot_be_written(self):
        arguments = ("--module=examples/elementwise_mul.vmasm", "--function=mul", "--input=8xf32=3", "--input=8xf32=2",
                     "--trace_tensors=*")
        done = vmrun.run("vm-run", *arguments, "--trace_tensors_folder=/proc/nowhere")
        self.assertIsNone(vmrun.why_bad_failure(done, "--trace_tensors_folder=/proc/nowhere"), done.stderr)
        done = vmrun.run("vm-run", *arguments, "--trace_tensors_folder=" + self.folder, "--capture=" + self.trace_path)
        self.assertIsNone(vmrun.why_bad_failure(done, "INVALID_ARGUMENT", "capture"), done.stderr)
        os.mkdir(self.path("00000_mul.binding0.before.npy"))
        done = vmrun.run("vm-run", *arguments, "--trace_tensors_folder=" + self.folder)
        self.assertIsNone(vmrun.why_bad_failure(done, "00000_mul.binding0.before.npy"), done.stderr)

    def test_tensors_of_a_chain_of_dispatches(self):
        module = vmrun.machine_code("pipeline_chain")
        if not module:
            self.skipTest("the shared fixtures are not there, or have no machine code for this processor")
        arguments = ("--module=" + module, "--function=chain", "--input=16x16xf32=1", "--device=local-task")
        expected = vmrun.run("vm-run", *arguments).stdout
        done = vmrun.run("vm-run", *arguments, "--trace_tensors=*matmul*", "--trace_tensors_folder=" + self.folder)
        self.assertEqual((done.returncode, done.stdout), (0, expected), done.stderr)
        after = sorted(name for name in os.listdir(self.folder) if name.endswith(".after.npy"))
        self.assertEqual(len(after), 40)
        self.assertEqual([array[:2] for array in read_npy(vmrun.read(os.path.join(self.folder, after[0])))], [("<f4", (256,))])

    def test_tensors_of_a_program_without_devices(self):
        folder = vmrun.fixtures()
        if not folder:
            self.skipTest("the shared fixtures are not there")
        machine_code = ["simple_mul.inline-dynamic-llvm-cpu"] if vmrun.processor() == "x86_64" else []
        for name in ["simple_mul.inline-dynamic-vmvx", *machine_code]:
            with self.subTest(name):
                arguments = ("--module=" + os.path.join(folder, "inline", name + ".vmfb"), "--function=simple_mul",
                             "--input=4xf32=1,2,3,4", "--input=4xf32=5,6,7,8")
                expected = vmrun.run("vm-run", *arguments).stdout
                tensors = self.path(name)
                done = vmrun.run("vm-run", *arguments, "--trace_tensors=*", "--trace_tensors_folder=" + tensors)
                self.assertEqual((done.returncode, done.stdout), (0, expected), done.stderr)
                held = {}
                for file_name in os.listdir(tensors):
                    (array,) = read_npy(vmrun.read(os.path.join(tensors, file_name)))
                    held[re.sub("_simple_mul_.*_f32", "", file_name)] = struct.unpack(f"<{len(array[2]) // 4}f", array[2])
                self.assertEqual(held.pop("00000.binding2.after.npy"), (5, 12, 21, 32))
                self.assertEqual(held.pop("00000.binding0.before.npy"), (1, 2, 3, 4))
                self.assertEqual(held.pop("00000.binding1.before.npy"), (5, 6, 7, 8))
                self.assertEqual(list(held), ["00000.binding2.before.npy"])
                shutil.rmtree(tensors)
                done = vmrun.run("vm-run", *arguments, "--trace_tensors=other", "--trace_tensors_folder=" + tensors)
                self.assertEqual((done.returncode, os.listdir(tensors)), (0, []), done.stderr)

    def test_a_file_that_cannot_be_written(self):
        done = vmrun.run("vm-run", "--module=examples/fib.vmasm", "--function=recursive", "--input=3",
                         "--trace=/no/such/folder/run.perfetto")
        self.assertIsNone(vmrun.why_bad_failure(done, "NOT_FOUND", "'/no/such/folder/run.perfetto'"), done.stderr)
        done = vmrun.run("vm-run", "--module=examples/fib.vmasm", "--function=recursive", "--input=3", "--trace=/dev/full")
        self.assertIsNone(vmrun.why_bad_failure(done, "UNAVAILABLE", "'/dev/full'"), done.stderr)
