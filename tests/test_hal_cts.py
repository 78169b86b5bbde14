"""hal-cts as a driver author uses it: the drivers of this tree pass, each bad one (bad_drivers/) fails the expected
cases and no others; flags, reports and known failures."""

import concurrent.futures
import json
import os
import pathlib
import re
import unittest
import xml.etree.ElementTree as ElementTree

import vmrun

BAD = os.path.join(vmrun.BUILD, "tests", "bad_drivers")
vmrun.need_tool("hal-cts")
if not os.path.isdir(BAD):
    vmrun.skip("the bad drivers are not built")
LAST_LINE = re.compile(r"(\d+) passed, (\d+) failed, (\d+) skipped\n\Z")

# Driver: (cases that must fail, patterns of others that may fail, required text of the report, flags).
BUGS = {
    "fill-too-far": (["transfer.fill_in_lists", "transfer.fill_through_slots"], r"transfer\.",
                     ["[R103]", "leave alone"], []),
    "failure-forgotten": (["failure.of_a_wait_reaches_the_signals", "failure.passes_on_through_chains"],
                          r"failure\.|alloca\.failed_waits", ["[R62]", "DATA_LOSS, found success"], []),
    "completed-twice": (["failure.completes_once"], r"failure\.|alloca\.", ["[R60]", "expected 1, found 2"], []),
    "completed-never": (["failure.of_a_wait_that_comes_later"], r"failure\.", ["[R60]", "was not called within"],
                        ["--timeout=12s", "--filter=failure.of_a_wait*"]),
    "signal-backwards": (["semaphore.signal_backwards"], "$", ["[R82]", "INVALID_ARGUMENT, found success"], []),
    "later-failure": (["semaphore.first_failure_stays"], r"failure\.", ["[R81]", "'a later failure'"], []),
    "first-table": (["list.other_tables"], r"list\.|transfer\.", ["[R105]"], []),
    "leaks-status": (["semaphore.first_failure_stays"], r"semaphore\.|failure\.|alloca\.", ["[R52]", "1 left"], []),
    "descriptor-stays-behind": (["semaphore.export_and_import", "semaphore.imported_waits"], "$",
                                ["[R110]", "DEADLINE_EXCEEDED"],
                                ["--timeout=12s", "--filter=semaphore.export*", "--filter=semaphore.i*"]),
    "descriptor-closed": (["semaphore.import_of_something_else"], "$", ["[R75]", "open"], []),
    "crashes": (["device.queries"], "$", ["died of signal 6", "entered last: device_query_i64, which has not returned"], []),
    "helps-for-ever": (["semaphore.help_comes_back"], "$", ["no answer in 12 s", "entered last: device_help, which has not returned; after ["],
                       ["--timeout=12s", "--filter=semaphore.help*", "--filter=semaphore.initial_values"]),
    "hangs": (["semaphore.deadlines"], r"semaphore\.wait", ["no answer in 12 s", "entered last: semaphore_wait, which has not returned"],
              ["--timeout=12s", "--filter=semaphore.d*", "--filter=semaphore.initial_values"]),
    "operation-fails-silently": (["failure.of_an_operation"], "$",
                                 ["[R63] a fill of an alloca before its turn: completed: expected a failure, found success"],
                                 ["--filter=failure.*", "--filter=queue.s*"]),
    "subscription-lost": (["semaphore.subscribe_races"], "$", ["[R86] calls of a subscriber that comes at the same moment"],
                          ["--timeout=12s", "--filter=semaphore.sub*"]),
    "callbacks-on-the-queue": (["semaphore.subscribers_wait_for_later_work"], "$", ["[R88]", "DEADLINE_EXCEEDED"],
                               ["--timeout=20s", "--filter=semaphore.s*", "--filter=queue.*"]),
    "barrier-forgotten": (["list.order_of_large_and_small"], r"list\.", ["[R103]"], ["--filter=list.*"]),
    "touches-after": (["queue.handles_after_completed"], "$", [], ["--filter=queue.*"]),
    "wrong-local-size": (["dispatch.workgroups_of_several"], "$", ["[R93] 3x1x1 workgroups"], ["--filter=dispatch.*"]),
    "shared-arguments": (["dispatch.arguments_of_each_thread"], r"dispatch\.at_once", ["[R94] "], ["--filter=dispatch.a*"]),
    "nameless": (["executable.known_functions"], "$", ["[R93] the names of the functions of vmvx-bytecode-fb (built in)"],
                 ["--filter=executable.*", "--filter=dispatch.*"]),
    "names-overwritten": (["executable.names_last"], "$", ["[R23] the name of function 0 of built in"], ["--filter=executable.*"]),
    "device-names-freed": (["instance.texts_last"], "$", ["[R23] the name of device 0 after the devices were listed again"], []),
    "exchanged-workgroups": (["dispatch.numbers_of_workgroups"], "$", ["[R93] 1x6x1 workgroups, counted in the command"],
                             ["--filter=dispatch.*"]),
    "statistics-of-all": (["device.statistics_of_each"], "$", ["[R25] host_bytes_live of a device"], []),
    "arena-of-all": (["device.memory_of_each"], "$", ["[R25] memory of a device after another one was closed"], []),
    "timelines-of-all": (["device.work_of_each"], "$", ["[R25] "], []),
    "arguments-of-all": (["dispatch.arguments_of_each_device"], "$", ["[R25] the output of a dispatch beside other devices"],
                         ["--filter=dispatch.*"]),
    "reads-behind": (["executable.nothing_behind_the_data"], "$",
                     ["entered last: executable_create, which has not returned; at executable_create of vmvx-bytecode-fb"],
                     ["--filter=executable.n*", "--filter=executable.f*"]),
}

# The same, for bugs that only --leaks finds.
LEAKS = {
    "leaks-list": (["list.empty", "list.never_submitted"], "$", ["[R24]", "command_list_create"],
                   ["--leaks", "--filter=list.empty", "--filter=list.never*", "--filter=memory.sizes"]),
    "leaks-memory": (["memory.sizes"], "$", ["[R24]"], ["--leaks", "--filter=memory.sizes", "--filter=semaphore.in*"]),
    "leaks-executable": (["executable.functions"], "$", ["[R24]"],
                         ["--leaks", "--filter=executable.functions", "--filter=semaphore.in*"]),
}
NO_BUG = {"descriptors", "slow-to-load"}
# Bugs that only show if two threads meet, which may take several runs on a busy machine.
MEETINGS = {"subscription-lost", "shared-arguments", "barrier-forgotten", "touches-after"}


def driver(name):
    return os.path.join(vmrun.DRIVERS, f"halyard-driver-{name}.so")


def bad_driver(name):
    return os.path.join(BAD, f"halyard-driver-{name}.so")


def cts(path, *flags, timeout=900):
    if vmrun.is_emulated() and not any(flag.startswith("--timeout") for flag in flags):  # a case of many MiB takes 50 s there
        flags, timeout = (*flags, "--timeout=150s"), 3 * timeout
    return vmrun.run("hal-cts", f"--driver={path}", *flags, timeout=timeout)


def results(path, *flags):
    """The run, and of each case `DEVICE NAME` its part of the JSON report."""
    with vmrun.temporary_folder() as folder:
        report = os.path.join(folder, "report.json")
        done = cts(path, f"--json={report}", *flags)
        return done, {f"{case['device']} {case['name']}".strip(): case for case in json.loads(vmrun.read_text(report))["cases"]}


class Drivers(unittest.TestCase):
    def check_passes(self, name, path=None):
        done, cases = results(path or driver(name))
        failed = {key: case["problems"] for key, case in cases.items() if case["result"] == "failed"}
        self.assertEqual(failed, {})
        self.assertEqual(done.returncode, 0, done.stderr)
        passed, _, skipped = map(int, LAST_LINE.search(done.stdout).groups())
        self.assertEqual(passed + skipped, len(cases))
        for key, case in cases.items():
            if case["result"] == "skipped":
                self.assertTrue(case["reason"].startswith("unsupported: "), f"{key}: {case['reason']}")
        return cases

    def test_local_passes_and_runs_everything_it_declares(self):
        cases = self.check_passes("local")
        for name in ("dispatch.grids_and_constants", "executable.altered_data", "transfer.fill_as_operation"):
            self.assertEqual(cases[f"local-sync:// {name}"]["result"], "passed")

    def test_null_passes(self):
        cases = self.check_passes("null")
        self.assertEqual(cases["null:// dispatch.bindings"]["result"], "skipped")
        self.assertEqual(cases["null:// transfer.fill_as_operation"]["result"], "skipped")

    def test_the_template_in_cpp_passes(self):
        cases = self.check_passes("template")
        for name in ("queue.order", "semaphore.subscribe"):
            self.assertTrue(any(case.startswith(f"template:// {name}") for case in cases), name)

    def test_the_kernels_of_the_template_pass(self):
        """They run in the loops of the kit's HostDevice."""
        with vmrun.temporary_folder() as folder:
            kernels = os.path.join(folder, "kernels.txt")
            vmrun.write(kernels, "iota\nadd\nincrement\nplace\nrefuse\n")
            done, cases = results(driver("template"), f"--executable=template-text={kernels}", "--filter=executable.*", "--filter=dispatch.*")
        self.assertEqual(done.returncode, 0, done.stdout)
        skipped = {case["name"] for case in cases.values() if case["result"] == "skipped"}
        self.assertEqual(skipped, {"dispatch.workgroups_of_several", "dispatch.as_operation"})

    def test_every_driver_of_the_tree_is_tried(self):
        """test_vulkan.py tries the Vulkan driver, which needs a device, and test_remote.py the remote one, which needs a server."""
        here = pathlib.Path(__file__).read_text(encoding="utf-8")
        names = {file.parent.name for file in pathlib.Path(vmrun.SOURCE, "drivers").glob("*/CMakeLists.txt")}
        self.assertIn("local", names)
        for name in names - {"testing", "vulkan", "remote"}:
            self.assertIn(f'check_passes("{name}")', here)

    def test_descriptors_pass(self):
        cases = self.check_passes("descriptors", bad_driver("descriptors"))
        for name in ("export_and_import", "import_of_something_else", "imported_waits", "imported_failure", "underway"):
            self.assertEqual(cases[f"null:// semaphore.{name}"]["result"], "passed")


class BadDrivers(unittest.TestCase):
    def test_every_bad_driver_is_tried(self):
        built = {file[len("halyard-driver-"):-len(".so")] for file in os.listdir(BAD) if file.endswith(".so")}
        # test_driver_listings.py tries those whose constructors are bad.
        self.assertEqual(built, {*BUGS, *LEAKS, *NO_BUG, "aborts-in-constructor", "loops-in-constructor"})

    def test_each_bug_is_found_where_it_is(self):
        self.check_each(BUGS)

    def test_each_leak_is_found_where_it_is(self):
        tried = cts(driver("null"), "--leaks", "--filter=semaphore.initial_values")
        if "--leaks: " in tried.stderr:
            self.skipTest(tried.stderr)
        self.assertEqual(tried.returncode, 0, tried.stdout + tried.stderr)
        self.check_each(LEAKS)
        for name in LEAKS:  # which nothing else finds
            without = [flag for flag in LEAKS[name][3] if flag != "--leaks"]
            self.assertEqual(cts(bad_driver(name), *without).returncode, 0, name)

    def check_each(self, bugs):
        def run(name):
            for _ in range(20 if name in MEETINGS else 1):
                done, cases = results(bad_driver(name), "--skip_tag=slow", *bugs[name][3])
                if done.returncode != 0:
                    break
            return done, cases

        with concurrent.futures.ThreadPoolExecutor(3) as pool:  # the runs wait most of the time
            runs = pool.map(run, bugs)
        for (name, (expected, allowed, texts, flags)), (done, cases) in zip(bugs.items(), runs):
            with self.subTest(name):
                self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
                failed = [case["name"] for case in cases.values() if case["result"] == "failed"]
                for case in expected:
                    self.assertIn(case, failed)
                for case in failed:
                    self.assertTrue(case in expected or re.match(allowed, case), f"{case} fails, too")
                self.assertGreater(sum(case["result"] == "passed" for case in cases.values()), 0, "nothing else was run")
                for text in texts:
                    self.assertIn(text, done.stdout)
                self.assertEqual(int(LAST_LINE.search(done.stdout).group(2)), len(failed))


class Flags(vmrun.FolderCase):
    def refused(self, *flags, names):
        done = vmrun.run("hal-cts", *flags)
        self.assertEqual(done.stdout, "")
        self.assertNotEqual(done.returncode, 0)
        self.assertRegex(done.stderr, r"^hal-cts: [A-Z_]+; ")
        for name in names:
            self.assertIn(name, done.stderr)

    def test_wrong_ones_are_refused(self):
        null = f"--driver={driver('null')}"
        self.refused(names=["--driver="])
        self.refused("--driver=no/such/file.so", names=["'no/such/file.so'"])
        self.refused("--drivr=x", names=["--drivr", "--driver"])
        self.refused(null, "--filter=memory.size", names=["'memory.size'", "'memory.sizes'"])
        self.refused(null, "--tag=qeue", names=["'qeue'", "'queue'"])
        self.refused(null, "--filter=memory.sizes", "--skip_tag=memory", names=["no case"])
        self.refused(null, "--timeout=soon", names=["--timeout=soon"])
        self.refused(null, "--executable=vmvx-bytecode-fb", names=["FORMAT=FILE"])
        self.refused(null, "--executable=x=no/such/file", names=["'no/such/file'"])
        self.refused(null, "--expect_failures=no/such/file", names=["'no/such/file'"])
        self.refused(driver("null"), names=["--driver=FILE"])

    def test_a_device_that_is_not_there(self):
        done = cts(driver("null"), "--device=nul://1")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("nul://1", done.stderr)
        self.assertIn("'null://'", done.stderr)

    def test_a_file_that_is_no_driver(self):
        done = cts(os.path.join(vmrun.SOURCE, "README.md"))
        self.assertEqual(done.returncode, 1)
        self.assertIn("FAILED  loading.accepted_by_host", done.stdout)
        self.assertTrue(done.stdout.endswith("0 passed, 1 failed, 0 skipped\n"), done.stdout)

    def test_listing_and_choosing(self):
        every = vmrun.run("hal-cts", "--list").stdout.splitlines()[1:]
        names = [line.split()[0] for line in every if not line.startswith(" ")]
        self.assertEqual(len(names), len(set(names)))
        self.assertGreater(len(names), 100)
        listed = json.loads(vmrun.run("hal-cts", "--list", "--json").stdout)["cases"]
        self.assertEqual([case["name"] for case in listed], names)
        for case in listed:
            self.assertGreater(len(case["description"]), 20, f"{case['name']} is not described")
            self.assertEqual(case["tags"].split(" "), case["tags"].split(), case["name"])
            self.assertIn(case["description"].split()[0], " ".join(every))
        some = vmrun.run("hal-cts", "--list", "--tag=threads", "--skip_tag=slow", "--filter=semaphore.*").stdout
        self.assertIn("semaphore.wakes_waiters", some)
        self.assertNotIn("semaphore.threads", some)
        done, cases = results(driver("null"), "--filter=memory.s*")
        self.assertEqual(sorted(cases), ["null:// memory.sizes", "null:// memory.statistics"])
        self.assertNotIn("\x1b", done.stdout)
        self.assertNotIn("\r", done.stdout)

    def test_damaged_executables_are_a_sample_that_fits_the_time(self):
        done, cases = results(bad_driver("slow-to-load"), "--filter=executable.*_data", "--timeout=8s", "--device=local-sync://")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        for name in ("executable.truncated_data", "executable.altered_data"):
            remark = cases[f"local-sync:// {name}"]["remark"]
            tried, total = (int(number.replace(",", "")) for number in re.fullmatch(r"([\d,]+) of ([\d,]+) tried", remark).groups())
            self.assertTrue(0 < tried < 300 < total, remark)
            self.assertIn(f"passed  local-sync:// {name}: {remark}\n", done.stdout)

    def test_repeated_timeouts_end_the_run(self):
        flags = ("--filter=failure.*", "--skip_tag=slow", "--timeout=2s")
        done, cases = results(bad_driver("completed-never"), "--max_timeouts=2", *flags)
        self.assertEqual(done.returncode, 1)
        self.assertEqual(sum(case["result"] == "failed" for case in cases.values()), 2)
        stopped = re.search(r"^stopped: 2 cases failed because of the time limit; (\d+) cases were not run; --max_timeouts=0 ", done.stdout,
                            re.MULTILINE)
        listed = json.loads(vmrun.run("hal-cts", "--list", "--json", *flags[:2]).stdout)["cases"]
        self.assertEqual(int(stopped[1]), len(listed) - len(cases))
        done, cases = results(bad_driver("completed-never"), "--max_timeouts=0", *flags)
        self.assertEqual(len(cases), len(listed))
        self.assertNotIn("stopped", done.stdout)

    def test_leaks_need_processes(self):
        self.refused(f"--driver={driver('null')}", "--leaks", "--no_fork", names=["--leaks", "--no_fork"])

    def test_help_names_every_flag(self):
        done = vmrun.succeeds("hal-cts", "--help")
        for flag in ("--driver=", "--device=", "--no_fork", "--junit=", "examples:"):
            self.assertIn(flag, done.stdout)

    def test_without_processes(self):
        done = cts(driver("null"), "--no_fork", "--filter=semaphore.*")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("passed  null:// semaphore.signal_backwards\n", done.stdout)

    def test_programs_of_files(self):
        source = """
vm.module @other
vm.export @nothing
vm.func @nothing(%r0: !vm.buffer, %r1: !vm.buffer, %r2: !vm.list<!vm.buffer>, %i0: i32, %i1: i32, %i2: i32, %i3: i32, %i4: i32, %i5: i32, %i6: i32, %i7: i32, %i8: i32) -> () {
  vm.return
}
"""
        vmrun.assemble(source, self.folder, "other")
        good = f"--executable=vmvx-bytecode-fb={os.path.join(self.folder, 'other.vmfb')}"
        done = cts(driver("local"), good, "--filter=executable.functions")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        # No case knows a function of it, so all dispatches are skipped; and a device that does not take it tests nothing.
        for name, found in (("local", "'nothing'"), ("null", "null runs nothing")):
            done = cts(driver(name), good, "--filter=executable.known_functions")
            self.assertEqual(done.returncode, 1, done.stdout)
            self.assertIn(found, done.stdout)
        # An executable that cannot be loaded although the device accepts its format is reported, and its cases do not
        # run.
        wrong = f"--executable=vmvx-bytecode-fb={os.path.join(vmrun.SOURCE, 'README.md')}"
        done = cts(driver("null"), wrong, "--filter=executable.functions")
        self.assertIn("README.md", done.stdout)


class Reports(vmrun.FolderCase):
    def test_junit(self):
        report = self.path("report.xml")
        done = cts(bad_driver("signal-backwards"), f"--junit={report}", "--filter=semaphore.s*", "--filter=*flush*")
        self.assertEqual(done.returncode, 1)
        suite = ElementTree.parse(report).getroot()
        passed, failed, skipped = map(int, LAST_LINE.search(done.stdout).groups())
        cases = {case.get("name"): case for case in suite.iter("testcase")}
        self.assertEqual(len(cases), passed + failed + skipped)
        self.assertEqual((int(suite.get("failures")), int(suite.get("skipped"))), (failed, skipped))
        failure = cases["semaphore.signal_backwards"].find("failure")
        self.assertIn("[R82] signal of 5 on a timeline at 5", failure.get("message"))
        self.assertEqual(cases["semaphore.signals"].find("failure"), None)
        self.assertIn("queue_flush is null", cases["queue.flush"].find("skipped").get("message"))

    def test_json_on_standard_output(self):
        done = cts(driver("null"), "--json", "--filter=queue.f*")
        report = json.loads(done.stdout)
        self.assertEqual(report["skipped"], 1)
        self.assertEqual(report["cases"][0]["device"], "null://")
        self.assertTrue(LAST_LINE.search(done.stderr))

    def expecting(self, text, *flags):
        known = self.path("known.txt")
        vmrun.write(known, text)
        return cts(bad_driver("signal-backwards"), f"--expect_failures={known}", *flags)

    def test_known_failures(self):
        semaphores = ("--filter=semaphore.s*",)
        done = self.expecting("# bug 7\nsemaphore.signal_backwards\n\n", *semaphores)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn("skipped null:// semaphore.signal_backwards: expected failure", done.stdout)
        done = self.expecting("null://* semaphore.*back*", *semaphores)
        self.assertEqual(done.returncode, 0, done.stdout)
        done = self.expecting("other:// semaphore.signal_backwards", *semaphores)
        self.assertEqual(done.returncode, 1)
        done = self.expecting("semaphore.signal_backwards\nsemaphore.signals\n", *semaphores)
        self.assertEqual(done.returncode, 1)
        self.assertIn("FAILED  null:// semaphore.signals\n", done.stdout)
        self.assertIn("take it out of the file", done.stdout)
        done = self.expecting("semaphore.signal_backwads\n")
        self.assertIn("known.txt:1: no case 'semaphore.signal_backwads'; did you mean 'semaphore.signal_backwards'?", done.stderr)
