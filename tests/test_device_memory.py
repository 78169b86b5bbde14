"""Results in memory that the host cannot map, as that of most GPUs: they are printed, written to files and compared."""
import os
import struct
import unittest

import vmrun

TEXT = """
vm.module @m
vm.dependency @hal 7
vm.import @hal.devices.get cconv "0i_r"
vm.import @hal.device.allocator cconv "0r_r"
vm.import @hal.allocator.allocate cconv "0rIiiI_r"
vm.import @hal.fence.create cconv "0rI_r"
vm.import @hal.fence.await cconv "0iICrD_i"
vm.import @hal.device.queue.fill cconv "0rIrrrIIIiI_v"
vm.import @hal.buffer_view.create cconv "0rIIiiCID_r"
vm.import @hal.buffer.load cconv "0rIi_i"
vm.export @view
vm.export @load
vm.func @buffer() -> (!hal.buffer) {
  %i0 = vm.const.i32.zero
  %r0 = vm.call @hal.devices.get(%i0)
  %r1 = vm.call @hal.device.allocator(%r0)
  %i2:3 = vm.const.i64 -1
  %i1 = vm.const.i32 0x30
  %i4 = vm.const.i32 USAGE
  %i6:7 = vm.const.i64 16
  %r2 = vm.call @hal.allocator.allocate(%r1, %i2:3, %i1, %i4, %i6:7)
  %i8:9 = vm.const.i64.zero
  %r3 = vm.call @hal.fence.create(%r0, %i8:9)
  %i10:11 = vm.const.i64 0x40400000
  %i1 = vm.const.i32 4
  %r4 = vm.const.ref.zero
  vm.call @hal.device.queue.fill(%r0, %i2:3, %r4, %r3, %r2, %i8:9, %i6:7, %i10:11, %i1, %i8:9)
  %i1 = vm.const.i32 -1
  %i1 = vm.call.variadic @hal.fence.await segments[65535, 65535, 1](%i1, %i8:9, %r3)
  vm.return %R2
}
vm.func @view() -> (!hal.buffer_view) {
  %r0 = vm.call @buffer()
  %i0:1 = vm.const.i64.zero
  %i2:3 = vm.const.i64 16
  %i4 = vm.const.i32 0x21000020
  %i5 = vm.const.i32 1
  %i6:7 = vm.const.i64 4
  %r1 = vm.call.variadic @hal.buffer_view.create segments[65535, 65535, 65535, 65535, 65535, 1](%r0, %i0:1, %i2:3, %i4, %i5, %i6:7)
  vm.return %R1
}
vm.func @load() -> (i32) {
  %r0 = vm.call @buffer()
  %i0:1 = vm.const.i64.zero
  %i2 = vm.const.i32 4
  %i2 = vm.call @hal.buffer.load(%r0, %i0:1, %i2)
  vm.return %i2
}
"""
TRANSFER, TARGET_ONLY = "0x3", "0x2"


FAKE = os.path.join(vmrun.BUILD, "tests", "drivers", "halyard-driver-fake.so")


class DeviceMemory(vmrun.FolderCase):
    """On a device whose memory the host never maps."""

    def vm_run(self, function, *flags, usage=TRANSFER):
        vmrun.assemble(TEXT.replace("USAGE", usage), self.folder)
        return vmrun.run("vm-run", f"--driver={FAKE}", "--device=fake://opaque", f"--module={self.path('module.vmfb')}",
                         f"--function={function}", *flags)

    def test_results_are_printed_written_and_compared(self):
        done = self.vm_run("view")
        self.assertEqual((done.returncode, done.stdout), (0, "EXEC @view\nresult[0]: hal.buffer_view\n4xf32=3 3 3 3\n"), done.stderr)
        file = self.path("out.bin")
        self.assertEqual(self.vm_run("view", f"--output=@{file}").returncode, 0)
        self.assertEqual(vmrun.read(file), struct.pack("<4f", 3, 3, 3, 3))
        self.assertEqual(self.vm_run("view", "--expected_output=4xf32=3").returncode, 0)
        self.assertNotEqual(self.vm_run("view", "--expected_output=4xf32=3 3 4 3").returncode, 0)

    def test_a_program_cannot_load_it(self):
        self.assertEqual(vmrun.why_bad_failure(self.vm_run("load"), "PERMISSION_DENIED", "HOST_VISIBLE"), None)

    def test_memory_that_cannot_be_copied_either_is_an_error(self):
        done = self.vm_run("view", usage=TARGET_ONLY)
        self.assertEqual(vmrun.why_bad_failure(done, "PERMISSION_DENIED", "TRANSFER_SOURCE"), None)


if __name__ == "__main__":
    unittest.main()
