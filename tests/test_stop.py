"""Kernels that do not end or take too much memory: stopped by --timeout, Ctrl-C and --max_memory, on devices with and
without worker threads; and the process can end in the middle of work. The programs are examples/elementwise_mul.vmasm
with another kernel."""
import os
import re
import signal
import subprocess
import time
import unittest

import vmrun

DEVICES = ("local-sync", "local-task", "local-task?workers=1", "local-task?workers=4")
INPUTS = ("--function=mul", "--input=8xf32=1,2,3,4,5,6,7,8", "--input=8xf32=10")
LOOP = """
    vm.br ^bb1
  ^bb1:
    vm.br ^bb1
  ^bb2:
"""
# Keeps blocks of 1 MiB in a list.
HOARD = """
    %i10:11 = vm.const.i64 1048576
    %i12 = vm.const.i32.zero
    %i13 = vm.const.i32 100000
    %i14 = vm.const.i32 1
    %i15 = vm.const.i32.zero
    %r4 = vm.list.alloc %i13 : !vm.list<!vm.buffer>
    vm.list.resize %r4, %i13
    vm.br ^bb1
  ^bb1:
    %r3 = vm.buffer.alloc %i10:11, %i12
    vm.list.set.ref %r4, %i15, %r3
    %i15 = vm.add.i32 %i15, %i14
    vm.br ^bb1
  ^bb2:
"""
BIG = """
    %i10:11 = vm.const.i64 2147483648
    %i12 = vm.const.i32.zero
    %i13 = vm.const.i32 7
    %i14:15 = vm.const.i64.zero
    %r3 = vm.buffer.alloc %i10:11, %i12
    vm.buffer.fill.i8 %r3, %i14:15, %i10:11, %i13
"""
# A microkernel in a loop: the table of the microkernel must outlive the loop.
FILL = """
    %i9 = vm.const.i32.zero
    %i10 = vm.const.i32 2
    %r3 = vm.list.get.ref %r2, %i10 : !vm.buffer
    %i12:13 = vm.const.i64.zero
    %i14:15 = vm.const.i64 1
    %i16:17 = vm.const.i64 8
    vm.br ^bb1
  ^bb1:
    vm.call @vmvx.fill.2d.x32(%i9, %r3, %i12:13, %i16:17, %i14:15, %i16:17)
    vm.br ^bb1
  ^bb2:
"""


def program(folder, name, body, imports="", grid=None):
    """The example with another kernel, and maybe another grid."""
    text = vmrun.read_text(os.path.join(vmrun.SOURCE, "examples", "elementwise_mul.vmasm"))
    text = re.sub(r"(?m)^// (run|expect).*\n", "", text)
    head = re.search(r"  vm\.func @mul\(%r0: !vm\.buffer.*\n", text)
    end = text.index("    vm.return\n", head.end())
    text = text[: head.end()] + body + text[end:]
    text = text.replace("  vm.module @kernels\n", "  vm.module @kernels\n" + imports)
    if grid:
        text = text.replace("%i12:13, %i15, %i1, %i1, %i18:19,", f"%i12:13, {grid}, {grid}, {grid}, %i18:19,")
        text = text.replace("  vm.call.variadic @hal.command_buffer.dispatch", "  %i24 = vm.const.i32 -1\n"
                            "  vm.call.variadic @hal.command_buffer.dispatch")
    path = os.path.join(folder, name + ".vmasm")
    vmrun.write(path, text)
    return path


class Stop(vmrun.FolderCase):
    def fails(self, path, device, flags, code, *parts):
        done = vmrun.run("vm-run", f"--module={path}", f"--device={device}", *INPUTS, *flags)
        self.assertIsNone(vmrun.why_bad_failure(done, code, *parts), (device, done.stderr[-800:]))
        return done

    def test_time_limits(self):
        endless = {"loop": program(self.folder, "loop", LOOP), "grid": program(self.folder, "grid", "", grid="%i24"),
                   "fill": program(self.folder, "fill", FILL, '  vm.import @vmvx.fill.2d.x32 cconv "0irIIII_v"\n')}
        for name, path in endless.items():
            for device in DEVICES:
                with self.subTest(program=name, device=device):
                    self.fails(path, device, ["--timeout=100ms"], "DEADLINE_EXCEEDED")

    def test_ctrl_c(self):
        path = program(self.folder, "loop", LOOP)
        for device in DEVICES:
            with self.subTest(device=device):
                process = subprocess.Popen([os.path.join(vmrun.BIN, "vm-run"), f"--module={path}", f"--device={device}", *INPUTS],
                                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                self.assertEqual(process.stdout.readline(), "EXEC @mul\n")
                vmrun.wait_until_it_computes(process)
                process.send_signal(signal.SIGINT)
                _, errors = process.communicate(timeout=vmrun.TIMEOUT)
                self.assertEqual(process.returncode, 130, errors)
                self.assertRegex(errors, r"\Avm-run: CANCELLED; stopped by Ctrl-C")

    def test_ctrl_c_in_native_code(self):
        """What a call cannot be stopped in, does not keep the process: here a native function, as well LLVM."""
        library = os.path.join(vmrun.BUILD, "tests", "modules", "libstuck.so")
        path = self.path("stuck.vmasm")
        with open(path, "w", encoding="utf-8") as file:
            file.write('vm.module @m\nvm.import @faulty.one cconv "0v_i"\nvm.export @f\n'
                       "vm.func @f() -> (i32) {\n  %i0 = vm.call @faulty.one()\n  vm.return %i0\n}\n")
        for number, code, cause in ((signal.SIGINT, 130, "Ctrl-C"), (signal.SIGTERM, 143, "SIGTERM")):
            with self.subTest(signal=number):
                process = subprocess.Popen([os.path.join(vmrun.BIN, "vm-run"), f"--module={library}", f"--module={path}", "--function=f"],
                                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                self.assertEqual(process.stderr.readline(), "stuck\n")
                process.send_signal(number)
                _, errors = process.communicate(timeout=vmrun.TIMEOUT)
                self.assertEqual(process.returncode, code, errors)
                self.assertRegex(errors, rf"\Avm-run: CANCELLED; stopped by {cause}: the call did not stop")

    def test_memory_limits(self):
        for name, body in (("big", BIG), ("hoard", HOARD)):
            path = program(self.folder, name, body)
            for device in DEVICES:
                with self.subTest(program=name, device=device):
                    self.fails(path, device, ["--max_memory=64MiB", "--timeout=200s"], "RESOURCE_EXHAUSTED", "67108864")

    # Data of workers must live until the process ends, at any time.
    def test_exit_at_work(self):
        path = program(self.folder, "fill", FILL, '  vm.import @vmvx.fill.2d.x32 cconv "0irIIII_v"\n')
        for turn in range(8):
            with self.subTest(turn=turn):
                done = self.fails(path, "local-task?workers=4", ["--timeout=20ms"], "DEADLINE_EXCEEDED")
                self.assertEqual(done.returncode, 1, done.stderr)

    def test_ctrl_c_twice_at_work(self):
        path = program(self.folder, "fill", FILL, '  vm.import @vmvx.fill.2d.x32 cconv "0irIIII_v"\n')
        for pause in (0, 0.001, 0.02):
            process = subprocess.Popen(
                [os.path.join(vmrun.BIN, "vm-run"), f"--module={path}", "--device=local-task?workers=4", *INPUTS],
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            self.assertEqual(process.stdout.readline(), "EXEC @mul\n")
            vmrun.wait_until_it_computes(process, 0.1)
            process.send_signal(signal.SIGINT)
            time.sleep(pause)
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=vmrun.TIMEOUT)
            self.assertIn(process.returncode, (130, -signal.SIGINT), errors)


class Attacks(unittest.TestCase):
    """The programs of the shared fixtures, where those are."""

    def test_fixtures(self):
        folder = vmrun.fixtures()
        attacks = os.path.join(folder, "attacks") if folder else None
        if not attacks or not os.path.isdir(attacks):
            self.skipTest("the shared fixtures are not there")
        cases = [("k_loop", ["--timeout=100ms"], "DEADLINE_EXCEEDED"), ("wg2", ["--timeout=100ms"], "DEADLINE_EXCEEDED"),
                 ("k_exit", ["--timeout=20ms"], "DEADLINE_EXCEEDED"),
                 ("k_alloc", ["--max_memory=64MiB", "--timeout=200s"], "RESOURCE_EXHAUSTED"),
                 ("k_alloc2", ["--max_memory=64MiB", "--timeout=200s"], "RESOURCE_EXHAUSTED")]
        for name, flags, code in cases:
            for device in DEVICES:
                with self.subTest(name=name, device=device):
                    done = vmrun.run("vm-run", f"--module={attacks}/{name}.vmasm", f"--device={device}", *INPUTS, *flags)
                    self.assertIsNone(vmrun.why_bad_failure(done, code), done.stderr[-800:])
