"""Long work at a terminal: it shows how far it is, only there, and Ctrl-C ends it with what it has. The terminal is a pseudo
terminal; Ctrl-C is the byte that it is, or SIGINT where there is no terminal."""
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import fcntl
import termios
import time
import unittest
import xml.etree.ElementTree as ElementTree

import vmrun

NULL = "--driver=" + os.path.join(vmrun.DRIVERS, "halyard-driver-null.so")
LAST_LINE = re.compile(r"(\d+) passed, (\d+) failed, (\d+) skipped\r?\n\Z")
PROGRESS = re.compile(r"case (\d+)/(\d+) ")
INTERRUPTED = 130
CTRL_C = b"\x03"

SPIN = """
vm.module @spin
vm.export @forever
""" + vmrun.endless("forever")


# An async function that never signals its fence.
NEVER = """
vm.module @never
vm.dependency @hal 7
vm.import @hal.devices.count cconv "0v_i"
vm.export @never
vm.attr @never "iree.abi.model" "coarse-fences"
vm.func @never(%r0: !hal.fence, %r1: !hal.fence) -> () {
  vm.return
}
"""


class Terminal:
    """A tool on a terminal of its own, of 60 columns."""

    def __init__(self, tool, *arguments, environment=None, **options):
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 60, 0, 0))

        def be_in_front():
            os.setsid()
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)

        options = {"stdin": slave, "stdout": slave, "stderr": slave, **options}
        kept = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "NO_COLOR")}
        self.process = subprocess.Popen([os.path.join(vmrun.BIN, tool), *arguments], cwd=vmrun.SOURCE, preexec_fn=be_in_front,
                                        env={**kept, **(environment or {})}, **options)
        os.close(slave)
        self.text = ""

    def read_until(self, pattern):
        """Reads until the pattern is in what was printed (None: to the end)."""
        end = time.monotonic() + vmrun.TIMEOUT
        while pattern is None or not re.search(pattern, self.text):
            ready, _, _ = select.select([self.master], [], [], max(0, end - time.monotonic()))
            if not ready:
                raise AssertionError(f"{pattern!r} was not printed in {vmrun.TIMEOUT} s: {self.text[-500:]!r}")
            try:
                data = os.read(self.master, 4096)
            except OSError:  # the other end is closed
                data = b""
            if not data:
                if pattern is None:
                    return
                raise AssertionError(f"{pattern!r} was not printed: {self.text[-500:]!r}")
            self.text += data.decode("utf-8", "replace")

    def press(self, byte):
        os.write(self.master, byte)

    def end(self):
        self.read_until(None)
        code = self.process.wait(timeout=vmrun.TIMEOUT)
        os.close(self.master)
        return code


class HalCts(vmrun.FolderCase):
    def test_progress_is_shown_on_a_terminal_only(self):
        terminal = Terminal("hal-cts", NULL, "--filter=memory.*")
        self.assertEqual(terminal.end(), 0)
        shown = PROGRESS.findall(terminal.text)
        self.assertTrue(shown)
        self.assertEqual(len({total for _, total in shown}), 1)
        for line in re.findall(r"\r\x1b\[K(case[^\r\n\x1b]*)", terminal.text):
            self.assertLess(len(line), 60)
        self.assertTrue(LAST_LINE.search(terminal.text))
        done = vmrun.run("hal-cts", NULL, "--filter=memory.*")
        self.assertEqual(done.stderr, "")
        self.assertNotIn("\x1b", done.stdout)
        self.assertIsNone(PROGRESS.search(done.stdout))

    def test_progress_is_there_where_only_results_are_piped(self):
        terminal = Terminal("hal-cts", NULL, "--filter=memory.*", stdout=subprocess.PIPE)
        results = terminal.process.stdout.read().decode()
        terminal.process.stdout.close()
        self.assertEqual(terminal.end(), 0)
        self.assertTrue(PROGRESS.search(terminal.text))
        self.assertNotIn("passed  ", terminal.text)
        self.assertNotIn("\x1b", results)

    def test_colours_can_be_refused(self):
        terminal = Terminal("hal-cts", NULL, "--filter=memory.*")
        terminal.end()
        self.assertIn("\x1b[32m", terminal.text)
        terminal = Terminal("hal-cts", NULL, "--filter=memory.*", environment={"NO_COLOR": "1"})
        terminal.end()
        self.assertNotIn("\x1b[32m", terminal.text)

    def test_ctrl_c_ends_it_with_what_it_has(self):
        junit, report = self.path("results.xml"), self.path("results.json")
        terminal = Terminal("hal-cts", "--driver=" + os.path.join(vmrun.DRIVERS, "halyard-driver-local.so"), f"--junit={junit}",
                            f"--json={report}")
        terminal.read_until(PROGRESS)
        terminal.press(CTRL_C)
        self.assertEqual(terminal.end(), INTERRUPTED)
        self.assertRegex(terminal.text, r"interrupted: \d+ cases were not run")
        counts = tuple(map(int, LAST_LINE.search(terminal.text).groups()))
        report = json.loads(vmrun.read_text(report))
        self.assertTrue(report["interrupted"])
        self.assertEqual((report["passed"], report["failed"], report["skipped"]), counts)
        self.assertEqual(len(report["cases"]), sum(counts))
        self.assertEqual(len(ElementTree.parse(junit).getroot()), sum(counts))

    def test_a_run_that_was_not_interrupted_says_so(self):
        done = vmrun.run("hal-cts", NULL, "--json", "--filter=memory.sizes")
        self.assertIs(json.loads(done.stdout)["interrupted"], False)

    def check_second_ctrl_c(self, *flags):
        hanging = "--driver=" + os.path.join(vmrun.BUILD, "tests", "bad_drivers", "halyard-driver-hangs.so")
        if not os.path.exists(hanging.split("=", 1)[1]):
            self.skipTest("the driver that hangs is not built")
        terminal = Terminal("hal-cts", hanging, "--filter=semaphore.deadlines", f"--timeout={vmrun.TIMEOUT}s", *flags)
        terminal.read_until(PROGRESS)
        terminal.press(CTRL_C)
        vmrun.wait_until_it_has_taken(terminal.process, signal.SIGINT)
        self.assertIsNone(terminal.process.poll())  # the case goes on until its time is over
        terminal.press(CTRL_C)
        self.assertEqual(terminal.end(), -signal.SIGINT)

    def test_the_second_ctrl_c_ends_it_at_once(self):
        self.check_second_ctrl_c()

    def test_the_second_ctrl_c_ends_it_within_a_case_that_it_runs_itself(self):
        self.check_second_ctrl_c("--no_fork")


class VmRun(vmrun.FolderCase):
    def start(self, folder, text=SPIN, **options):
        vmrun.assemble(text, folder, "program")
        return subprocess.Popen([os.path.join(vmrun.BIN, "vm-run"), f"--module={folder}/program.vmfb", "--device=local-sync"],
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)

    def test_sigint_cancels_the_call_and_its_wait_for_a_device(self):
        def stopped(text, name):
            process = self.start(self.folder, text)
            self.assertEqual(process.stdout.readline(), f"EXEC @{name}\n")
            time.sleep(0.2)
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=vmrun.TIMEOUT)
            self.assertEqual(process.returncode, INTERRUPTED)
            return errors

        for text, name, said in ((SPIN, "forever", "'forever'"), (NEVER, "never", " device")):
            with self.subTest(name):
                vmrun.stopped_in_time(self, lambda: stopped(text, name), r"\Avm-run: CANCELLED; stopped by Ctrl-C: .*" + said)

    def test_ctrl_c_on_a_terminal(self):
        vmrun.assemble(SPIN, self.folder, "spin")
        terminal = Terminal("vm-run", f"--module={self.folder}/spin.vmfb")
        terminal.read_until("EXEC @forever")
        time.sleep(0.2)
        terminal.press(CTRL_C)
        self.assertEqual(terminal.end(), INTERRUPTED)
        self.assertIn("CANCELLED; stopped by Ctrl-C", terminal.text)

    def test_what_takes_long_is_shown_until_it_is_over(self):
        for text, message in ((SPIN, "CANCELLED; stopped by Ctrl-C"), (NEVER, "CANCELLED; stopped by Ctrl-C: the call has returned")):
            vmrun.assemble(text, self.folder, "long")
            terminal = Terminal("vm-run", f"--module={self.folder}/long.vmfb", "--device=local-sync")
            # The seconds go on; those in which the process had no processor are left out.
            terminal.read_until(r"\r\x1b\[Kwaiting: call, (\d+) s[^\n]*\r\x1b\[Kwaiting: call, (?!\1 s)\d+ s")
            terminal.press(CTRL_C)
            self.assertEqual(terminal.end(), INTERRUPTED)
            self.assertRegex(terminal.text, r"\r\x1b\[K(\x1b\[[\d;]*m)?vm-run:(\x1b\[0m)? " + message)

    def test_what_is_over_soon_is_not_shown(self):
        for _ in range(20):  # on a machine that is busy, one is not over soon
            terminal = Terminal("vm-run", "--module=examples/fib.vmasm", "--function=recursive", "--input=5")
            self.assertEqual(terminal.end(), 0)
            self.assertIn("EXEC @recursive", terminal.text)
            if "waiting" not in terminal.text:
                return
        self.fail(terminal.text)

    def test_what_takes_long_is_shown_on_a_terminal_only(self):
        vmrun.assemble(SPIN, self.folder, "long")
        done = vmrun.run("vm-run", f"--module={self.folder}/long.vmfb", "--timeout=1200ms")
        self.assertRegex(done.stderr, r"\Avm-run: DEADLINE_EXCEEDED; [^\x1b\r]*\Z")

    def test_a_background_job_is_not_stopped(self):
        process = self.start(self.folder, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN))
        self.assertEqual(process.stdout.readline(), "EXEC @forever\n")
        time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        time.sleep(0.3)
        self.assertIsNone(process.poll())
        process.kill()
        process.communicate()

    def test_preloading_parameters_is_shown(self):
        path = self.path("weights.safetensors")
        header = b'{"w":{"dtype":"U8","shape":[4096],"data_offsets":[0,4096]}}'
        vmrun.write(path, struct.pack("<Q", len(header)) + header + bytes(4096))
        flags = ("--module=examples/fib.vmasm", "--function=recursive", "--input=5", f"--parameters={path}")
        terminal = Terminal("vm-run", *flags, "--parameter_mode=preload")
        self.assertEqual(terminal.end(), 0)
        self.assertRegex(terminal.text, r"reading parameters: 4\.\d KiB of 4\.\d KiB\r\x1b\[K")
        terminal = Terminal("vm-run", *flags)
        self.assertEqual(terminal.end(), 0)
        self.assertNotIn("reading parameters", terminal.text)
        done = vmrun.run("vm-run", *flags, "--parameter_mode=preload")
        self.assertEqual((done.returncode, done.stderr), (0, ""))


class VmDump(unittest.TestCase):
    def test_the_summary_fits_the_terminal(self):
        terminal = Terminal("vm-dump", "examples/elementwise_mul.vmasm")
        self.assertEqual(terminal.end(), 0)
        self.assertIn("\x1b[1mmodule\x1b[0m        elementwise_mul", terminal.text)
        lines = re.sub(r"\x1b\[\d*m", "", terminal.text).split("\r\n")
        self.assertLessEqual(max(map(len, lines)), 60)
        wide = vmrun.run("vm-dump", "examples/elementwise_mul.vmasm").stdout
        self.assertEqual("".join(lines).split(), "".join(lines).split())
        self.assertEqual(" ".join(" ".join(lines).split()), " ".join(wide.split()))
        self.assertNotIn("\x1b", wide)
