"""The device with worker threads: the examples print the same as on local-sync, with all options; programs that use
both kinds of device; wrong options."""
import os
import unittest

import perfetto
import test_examples
import vmrun

vmrun.need_tool("vm-run")
DEVICES = ["local-task", "local-task?workers=1", "local-task?workers=7", "local-task?workers=2&queues=3&validate=1",
           "local-task://?validate=1", "local-sync?validate=1"]
# The program uses only the first.
PAIRS = [("local-task", "local-sync"), ("local-sync", "local-task"), ("local-task", "local-task?workers=1")]


def examples_with_devices():
    """(example, command, lines expected) of every command that names a device."""
    for example in sorted((test_examples.SOURCE / "examples").rglob("*.vmasm")):
        for command, expected in test_examples.commands(example.read_text()):
            if "--device=local-sync " in command:
                yield example.stem, command, expected


# Submits a chain of fills of 8 MiB each and returns without waiting for any of them.
UNAWAITED = """
vm.module @unawaited
vm.dependency @hal 7
vm.import @hal.devices.get cconv "0i_r"
vm.import @hal.device.queue.alloca cconv "0rIrrIiiII_r"
vm.import @hal.device.queue.fill cconv "0rIrrrIIIiI_v"
vm.import @hal.fence.create cconv "0rI_r"
vm.export @main
vm.func @main(%i0: i32) -> (i32) {
  %i1 = vm.const.i32.zero
  %i2 = vm.const.i32 1
  %r0 = vm.call @hal.devices.get(%i1)
  %i4:5 = vm.const.i64 -1
  %i6:7 = vm.const.i64.zero
  %i8:9 = vm.const.i64 8388608
  %i10 = vm.const.i32 0x30
  %i11 = vm.const.i32 0x3000C03
  %r9 = vm.const.ref.zero
  %r1 = vm.call @hal.fence.create(%r0, %i6:7)
  %r2 = vm.call @hal.device.queue.alloca(%r0, %i4:5, %r9, %r1, %i6:7, %i10, %i11, %i8:9, %i6:7)
  vm.br ^bb1(%i0 -> %i3)
^bb1:
  %i12 = vm.cmp.lt.i32.s %i1, %i3
  vm.cond_br %i12, ^bb2, ^bb3
^bb2:
  %r3 = vm.call @hal.fence.create(%r0, %i6:7)
  vm.call @hal.device.queue.fill(%r0, %i4:5, %r1, %r3, %r2, %i6:7, %i8:9, %i6:7, %i2, %i6:7)
  %r1 = vm.assign.ref %r3
  %i3 = vm.sub.i32 %i3, %i2
  vm.br ^bb1
^bb3:
  vm.return %i0
}
"""


# The number of repetitions of two fills of 512 KiB without a barrier, and the wait for them.
FILLS = """
vm.module @fills
vm.dependency @hal 7
vm.import @hal.devices.get cconv "0i_r"
vm.import @hal.device.queue.alloca cconv "0rIrrIiiII_r"
vm.import @hal.device.queue.execute.indirect cconv "0rIrrrICrIID_v"
vm.import @hal.command_buffer.create cconv "0riiIi_r"
vm.import @hal.command_buffer.fill_buffer cconv "0rrIIiIiI_v"
vm.import @hal.command_buffer.finalize cconv "0r_v"
vm.import @hal.fence.create cconv "0rI_r"
vm.import @hal.fence.await cconv "0iICrD_i"
vm.export @main
vm.func @main(%i0: i32) -> (i32) {
  %i1 = vm.const.i32.zero
  %i2 = vm.const.i32 1
  %i3 = vm.const.i32 4
  %i4:5 = vm.const.i64.zero
  %i6:7 = vm.const.i64 -1
  %i8:9 = vm.const.i64 524288
  %i10:11 = vm.const.i64 1048576
  %i12 = vm.const.i32 0x30
  %i13 = vm.const.i32 0x3000C03
  %i14 = vm.const.i32 3
  %i15 = vm.const.i32 -1
  %r9 = vm.const.ref.zero
  %r0 = vm.call @hal.devices.get(%i1)
  %r1 = vm.call @hal.fence.create(%r0, %i4:5)
  %r2 = vm.call @hal.device.queue.alloca(%r0, %i6:7, %r9, %r1, %i4:5, %i12, %i13, %i10:11, %i4:5)
  %r3 = vm.call @hal.command_buffer.create(%r0, %i1, %i14, %i6:7, %i2)
  vm.call @hal.command_buffer.fill_buffer(%r3, %r9, %i4:5, %i8:9, %i1, %i4:5, %i3, %i4:5)
  vm.call @hal.command_buffer.fill_buffer(%r3, %r9, %i8:9, %i8:9, %i1, %i4:5, %i3, %i4:5)
  vm.call @hal.command_buffer.finalize(%r3)
  vm.br ^bb1
^bb1:
  %r4 = vm.call @hal.fence.create(%r0, %i4:5)
  vm.call.variadic @hal.device.queue.execute.indirect segments[65535, 65535, 65535, 65535, 65535, 65535, 1](%r0, %i6:7, %r1, %r4, %r3, %i4:5, %r2, %i4:5, %i10:11)
  %r1 = vm.assign.ref %r4
  %i16 = vm.call.variadic @hal.fence.await segments[65535, 65535, 1](%i15, %i4:5, %r1)
  %i0 = vm.sub.i32 %i0, %i2
  vm.cond_br %i0, ^bb1, ^bb2
^bb2:
  vm.return %i16
}
"""


class LocalTask(vmrun.FolderCase):
    def expect_same(self, flags):
        ran = 0
        for example, command, expected in examples_with_devices():
            with self.subTest(example=example, flags=flags):
                done = test_examples.shell(command.replace("--device=local-sync ", flags + " "))
                self.assertEqual((done.returncode, done.stdout.splitlines()), (0, expected), done.stderr)
                ran += 1
        self.assertGreater(ran, 0, "no example names a device")

    def test_every_example_on_every_variant(self):
        for device in DEVICES:
            self.expect_same(f"'--device={device}'")

    def test_two_devices(self):
        for first, second in PAIRS:
            self.expect_same(f"'--device={first}' '--device={second}'")

    def test_is_the_default(self):
        self.expect_same("")

    def test_work_that_nobody_awaits(self):
        vmrun.assemble(UNAWAITED, self.folder)
        for count in range(12):
            done = vmrun.run("vm-run", f"--device=local-task?workers={count % 3 + 1}", f"--module={self.folder}/module.vmfb",
                             "--function=main", f"--input={count}")
            self.assertEqual((done.returncode, done.stdout), (0, f"EXEC @main\nresult[0]: i32={count}\n"), done.stderr)

    def test_whoever_has_nothing_else_to_do_takes_part(self):
        for attempt in range(10):  # on a busy machine the worker may have no processor for that long
            threads, both_at_once = self.traced_fills()
            if "halyard-worker" in threads and both_at_once:
                break
        self.assertEqual(len(set(threads)), 2)
        self.assertIn("halyard-worker", threads)
        if not vmrun.is_emulated():  # the emulator names the thread of its own program
            self.assertIn("vm-run", threads)
        self.assertTrue(both_at_once, "none ran at once")

    def traced_fills(self):
        """Pairs of fills on two threads: the thread of each part, and whether some ran at once, where they can."""
        rounds = 500
        vmrun.assemble(FILLS, self.folder)
        done = vmrun.run("vm-run", "--device=local-task?workers=2", f"--module={self.folder}/module.vmfb", "--function=main",
                         f"--input={rounds}", f"--trace={self.folder}/trace")
        self.assertEqual((done.returncode, done.stdout), (0, "EXEC @main\nresult[0]: i32=0\n"), done.stderr)
        trace = perfetto.Trace(f"{self.folder}/trace")
        fills = sorted((piece for piece in trace.slices() if piece.name == "fill"), key=lambda piece: piece.begin)
        self.assertGreaterEqual(len(fills), 2 * rounds)
        threads = [trace.tracks[piece.track].name for piece in fills]
        both = any(first.track != second.track and second.begin < first.end for first, second in zip(fills, fills[1:]))
        return threads, both or len(os.sched_getaffinity(0)) == 1

    @unittest.skipUnless(vmrun.starts_itself(), vmrun.NO_BINFMT)
    def test_is_listed(self):
        done = vmrun.succeeds("vm-run", "--list_devices")
        self.assertIn("local-task://", done.stdout.splitlines())

    def test_wrong_options_say_what_is_right(self):
        example = "examples/matmul.vmasm"
        for option, parts in [("workers=0", ["'workers'", "'0'", "1 to 1024"]), ("workers=many", ["'many'"]),
                              ("queues=65", ["'queues'", "1 to 64"]), ("validate=yes", ["'validate'", "0 or 1"]),
                              ("isa=abacus", ["'isa'", "'abacus'", "'best'", "'scalar'"]),
                              ("threads=2", ["'threads'", "'workers'", "'queues'", "'validate'", "'isa'"])]:
            with self.subTest(option=option):
                done = vmrun.run("vm-run", f"--device=local-task?{option}", f"--module={example}", "--function=matmul",
                                 "--input=4x3xf32=1", "--input=3x2xf32=1")
                self.assertIsNone(vmrun.why_bad_failure(done, "INVALID_ARGUMENT", *parts), done.stderr)
        done = vmrun.run("vm-run", "--device=local-sync?workers=2", f"--module={example}", "--function=matmul",
                         "--input=4x3xf32=1", "--input=3x2xf32=1")
        self.assertIsNone(vmrun.why_bad_failure(done, "INVALID_ARGUMENT", "'workers'", "'local-sync'"), done.stderr)
