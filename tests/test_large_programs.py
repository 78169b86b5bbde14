"""A decoder of GPT-2's shape that keeps its state between calls, ResNet-18 and BERT-tiny give the results that numpy gives, on
every device that there is, in no more memory than they should."""
import json
import os
import subprocess
import sys
import unittest

import installed
import large
import vmrun

vmrun.needed_fixtures()
try:
    large.source()
    large.python_with_numpy()
except large.Missing as missing:
    vmrun.skip(missing)
TIMEOUT = 250  # seconds for one case: machine code of the largest takes 10, VMVX under a sanitizer more


def peak_memory(arguments, folder):
    """MiB, and the exit code."""
    process = subprocess.Popen([os.path.join(vmrun.BIN, "vm-run"), *arguments], cwd=folder, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return usage.ru_maxrss / 1024, process.returncode


class LargePrograms(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = large.folder()
        cls.machine_code = vmrun.processor() == "x86_64"
        cls.cases = json.loads(vmrun.read_text(os.path.join(cls.folder, "cases.json")))

    def run_cases(self, device, *options):
        runner = os.path.join(vmrun.fixtures(), "run.py")
        others = {name for case in self.cases for name in case["devices"]} - {device}
        skipped = [flag for other in sorted(others) for flag in ("--skip-device", other)]
        if not self.machine_code:
            options += ("--only", ".vmvx")
        done = subprocess.run([sys.executable, runner, os.path.join(vmrun.BIN, "vm-run"), self.folder, *skipped,
                               f"--timeout={TIMEOUT}", *options], capture_output=True, text=True)
        output = done.stdout[-4000:] + done.stderr[-2000:]
        self.assertEqual(done.returncode, 0, output)
        self.assertRegex(done.stdout, r"(?m)^[1-9]\d* passed, 0 failed", output)

    def test_on_one_thread(self):
        self.run_cases("local-sync")

    def test_on_worker_threads(self):
        self.run_cases("local-task")

    @unittest.skipUnless(vmrun.vulkan_device(), "no Vulkan implementation was found")
    def test_on_vulkan(self):
        self.machine_code = True  # none in these
        self.run_cases("vulkan")

    @unittest.skipIf(installed.cache("HALYARD_SANITIZE"), "a sanitizer takes memory of its own")
    def test_memory(self):
        if not self.machine_code:
            self.skipTest("the modules are machine code for x86-64")
        for name, most in large.MOST_MEMORY.items():
            case = next(case for case in self.cases
                        if case["module"].startswith(f"{name}.llvm-cpu") and case["devices"] == ["local-task"])
            with self.subTest(case["name"]):
                peak, code = peak_memory([*case["flags"], "--device=local-task", f"--module={case['module']}",
                                          f"--function={case['function']}", *(f"--input={text}" for text in case["inputs"])],
                                         self.folder)
                self.assertEqual(code, 0)
                self.assertLessEqual(round(peak), most)
