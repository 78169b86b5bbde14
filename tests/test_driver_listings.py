"""A bad driver does not affect the others: with drivers that crash or loop when loaded, programs still run on the
default device, and the lists of drivers and devices report the bad ones and show the others."""
import os
import shutil
import unittest

import installed
import vmrun

BAD = os.path.join(vmrun.BUILD, "tests", "bad_drivers")
if not os.path.isdir(BAD):
    vmrun.skip("the bad drivers are not built")
LIMIT = 12 if installed.cache("HALYARD_SANITIZE") else 8  # seconds: for one that hangs, and too long for those that do not
TIMEOUT = f"--timeout={LIMIT}s"
MUL = ["--module=examples/elementwise_mul.vmasm", "--function=mul", "--input=8xf32=3", "--input=8xf32=2"]


def library(name):
    return f"halyard-driver-{name}.so"


@unittest.skipUnless(vmrun.starts_itself(), vmrun.NO_BINFMT)
class Listings(vmrun.FolderCase):
    def setUp(self):
        super().setUp()
        for name in ("aborts-in-constructor", "loops-in-constructor"):
            shutil.copy(os.path.join(BAD, library(name)), self.folder)
        shutil.copy(os.path.join(vmrun.DRIVERS, library("null")), self.folder)

    def run_tool(self, tool, *arguments, timeout=vmrun.TIMEOUT):
        environment = {**os.environ, "HALYARD_DRIVER_PATH": self.folder, "HOME": self.folder}
        return vmrun.run(tool, *arguments, env=environment, timeout=timeout)

    def check_listed(self, done):
        aborts, loops = (os.path.join(self.folder, library(name)) for name in ("aborts-in-constructor", "loops-in-constructor"))
        self.assertIn(f"INTERNAL; driver '{aborts}' crashed with signal 6 (SIGABRT) in load (a constructor of the library)", done.stderr)
        self.assertIn(f"DEADLINE_EXCEEDED; driver '{loops}': no answer within {LIMIT} s in load (a constructor of the library)",
                      done.stderr)
        for line in done.stderr.splitlines():
            self.assertRegex(line, r"^vm-run: omitted: [A-Z_]+; ")

    def test_the_default_device_is_chosen_by_notes(self):
        for tool, flags in (("vm-run", []), ("vm-bench", ["--benchmark_filter=^load$", "--benchmark_min_time=1x"])):
            with self.subTest(tool):
                done = self.run_tool(tool, *MUL, *flags)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn("8xf32=6 6 6 6 6 6 6 6" if tool == "vm-run" else "load", done.stdout)

    def test_the_default_device_is_the_one_that_is_documented(self):
        done = self.run_tool("vm-run", *MUL, "--print_statistics")
        self.assertIn("Device: local-task\n", done.stderr)

    def test_list_drivers(self):
        done = self.run_tool("vm-run", "--list_drivers", TIMEOUT)
        self.assertEqual(done.returncode, 0, done.stderr)
        for name in ("local-sync", "local-task", "null"):
            self.assertRegex(done.stdout, rf"(?m)^ *{name}: \S")
        for name in ("aborts", "loops"):
            self.assertNotIn(name, done.stdout)
        self.check_listed(done)

    def test_list_devices(self):
        done = self.run_tool("vm-run", "--list_devices", TIMEOUT)
        self.assertEqual(done.returncode, 0, done.stderr)
        for uri in ("local-sync://", "local-task://", "null://"):
            self.assertIn(uri + "\n", done.stdout)
        self.check_listed(done)

    def test_dump_devices(self):
        done = self.run_tool("vm-run", "--dump_devices", TIMEOUT)
        self.assertEqual(done.returncode, 0, done.stderr)
        for name in ("local-sync", "local-task", "null"):
            self.assertIn(f"# Enumerated devices for driver '{name}'\n", done.stdout)
            self.assertIn(f"# --device={name}://", done.stdout)
        self.check_listed(done)

    def test_asked_for_by_name_it_is_a_failure(self):
        for flag in ("--list_devices", "--dump_devices"):
            for name, parts in (("aborts", ["signal 6", "constructor"]), ("loops", [f"no answer within {LIMIT} s"])):
                with self.subTest(flag=flag, name=name):
                    done = self.run_tool("vm-run", f"{flag}={name}", TIMEOUT)
                    self.assertIsNone(vmrun.why_bad_failure(done, *parts), done.stderr)
                    self.assertEqual((done.returncode, done.stdout), (1, ""))
            done = self.run_tool("vm-run", f"{flag}=null", TIMEOUT)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertIn("null://", done.stdout)

    def test_explaining_runs_nothing(self):
        done = self.run_tool("vm-run", "--list_drivers", "--explain")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn(library("loops-in-constructor"), done.stdout)

    def test_hal_info_says_the_same(self):
        done = self.run_tool("hal-info", TIMEOUT)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("null://", done.stdout)
        self.assertIn("2 files were refused; hal-info --explain says why", done.stdout)

    def test_hal_cts_survives_them(self):
        for name, said in (("aborts-in-constructor", "died of signal 6"), ("loops-in-constructor", f"no answer in {LIMIT} s")):
            with self.subTest(name):
                done = self.run_tool("hal-cts", "--driver=" + os.path.join(self.folder, library(name)), TIMEOUT)
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertIn(said, done.stdout)
                self.assertIn("nothing else was run", done.stdout)
