"""vm-check from the command line: finding tests, output, filters, lists, reports, several modules and threads,
modules that must fail, limits, Ctrl-C, wrong command lines; and the shared test programs on every device."""
import json
import os
import re
import signal
import subprocess
import time
import unittest
import xml.etree.ElementTree as ElementTree

import vmrun
from test_interrupt import CTRL_C, Terminal

vmrun.need_tool("vm-check")
INTERRUPTED = 130
TIMES = re.compile(r"\d+ ms")

# Every outcome of a test. Not tests: names with __, arguments, results.
MIXED = vmrun.with_exports("""
vm.module @mixed
vm.import @check.expect_true cconv "0i_v"
vm.import @check.expect_false cconv "0i_v"
vm.func @passes() -> () {
  %i0 = vm.const.i32 1
  vm.call @check.expect_true(%i0)
  vm.return
}
vm.func @fails() -> () {
  %i0 = vm.const.i32.zero
  vm.call @check.expect_true(%i0)
  vm.return
}
vm.func @fails_twice() -> () {
  %i0 = vm.const.i32 3
  %i1 = vm.const.i32.zero
  vm.call @check.expect_false(%i0)
  vm.call @check.expect_true(%i0)
  vm.call @check.expect_true(%i1)
  vm.return
}
vm.func @errs() -> () {
  %i0 = vm.const.i32 5
  %i1 = vm.const.i32.zero
  vm.call @check.expect_true(%i1)
  vm.fail %i0, "<nothing> & \x27none\x27"
}
vm.func @__hidden() -> () {
  %i0 = vm.const.i32 5
  vm.fail %i0, "not a test"
}
vm.func @takes(%i0: i32) -> () {
  vm.return
}
vm.func @gives() -> (i32) {
  %i0 = vm.const.i32.zero
  vm.return %i0
}
""").replace("\\x27", "'")

# A global that each test increments: with one context for both tests, the second would fail.
STATE = """
vm.module @state
vm.import @check.expect_true cconv "0i_v"
vm.global.i32 mutable @count
vm.export @first
vm.export @second
""" + "".join("""
vm.func @%s() -> () {
  %%i0 = vm.global.load.i32 @count
  %%i1 = vm.const.i32 1
  %%i0 = vm.add.i32 %%i0, %%i1
  vm.global.store.i32 %%i0, @count
  %%i0 = vm.cmp.eq.i32 %%i0, %%i1
  vm.call @check.expect_true(%%i0)
  vm.return
}
""" % name for name in ("first", "second"))

GREEDY = """
vm.module @greedy
vm.export @quick
vm.export @endless
vm.export @large
vm.export @last
vm.func @quick() -> () {
  vm.return
}
""" + vmrun.endless("endless") + """vm.func @large() -> () {
  %i0:1 = vm.const.i64 67108864
  %i2 = vm.const.i32 16
  %r0 = vm.buffer.alloc %i0:1, %i2
  vm.return
}
vm.func @last() -> () {
  vm.return
}
"""

LIBRARY = """
vm.module @library
vm.export @one
vm.func @one() -> (i32) {
  %i0 = vm.const.i32 1
  vm.return %i0
}
"""
USER = """
vm.module @user
vm.import @library.one cconv "0v_i"
vm.import @check.expect_true cconv "0i_v"
vm.export @uses
vm.func @uses() -> () {
  %i0 = vm.call @library.one()
  vm.call @check.expect_true(%i0)
  vm.return
}
"""

# Fails 1000 expectations.
MANY = """
vm.module @many
vm.import @check.expect_true cconv "0i_v"
vm.export @fails
vm.func @fails() -> () {
  %i0 = vm.const.i32 1000
  %i1 = vm.const.i32 1
  %i2 = vm.const.i32.zero
  vm.br ^bb1
^bb1:
  vm.call @check.expect_true(%i2)
  %i0 = vm.sub.i32 %i0, %i1
  vm.cond_br %i0, ^bb1, ^bb2
^bb2:
  vm.return
}
"""

# Its initialiser fails, so that no test can begin.
BROKEN = vmrun.with_exports("""
vm.module @broken
vm.func @__init() -> () {
  %i0 = vm.const.i32 9
  vm.fail %i0, "no start"
}
vm.func @never() -> () {
  vm.return
}
""")


class Files(unittest.TestCase):
    """Runs in a folder with the modules above."""

    @classmethod
    def setUpClass(cls):
        cls.temporary = vmrun.temporary_folder()
        cls.folder = cls.temporary.name
        for name, text in (("mixed", MIXED), ("state", STATE), ("greedy", GREEDY), ("library", LIBRARY), ("user", USER),
                           ("many", MANY), ("broken", BROKEN)):
            vmrun.assemble(text, cls.folder, name)

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def check(self, *arguments, **options):
        return vmrun.run("vm-check", *arguments, cwd=self.folder, **options)

    def fails(self, arguments, *parts):
        done = self.check(*arguments)
        self.assertIsNone(vmrun.why_bad_failure(done, *parts), done.stderr)
        self.assertEqual(done.returncode, 1)
        return done


class Output(Files):
    def test_a_passing_module(self):
        done = self.check("state.vmfb")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(TIMES.sub("N ms", done.stdout), """\
[==========] Running 2 tests from 1 test suite.
[----------] 2 tests from state
[ RUN      ] state.first
[       OK ] state.first (N ms)
[ RUN      ] state.second
[       OK ] state.second (N ms)
[----------] 2 tests from state (N ms total)

[==========] 2 tests from 1 test suite ran. (N ms total)
[  PASSED  ] 2 tests.
""")

    def test_every_way_to_end(self):
        done = self.check("mixed.vmfb")
        self.assertEqual((done.returncode, done.stderr), (1, ""))
        text = re.sub(r"\+[0-9A-F]{8}", "+PC", TIMES.sub("N ms", done.stdout))
        self.assertEqual(text, """\
[==========] Running 4 tests from 1 test suite.
[----------] 4 tests from mixed
[ RUN      ] mixed.passes
[       OK ] mixed.passes (N ms)
[ RUN      ] mixed.fails
check.expect_true at mixed.fails+PC: expected a value other than 0, found 0
[  FAILED  ] mixed.fails (N ms)
[ RUN      ] mixed.fails_twice
check.expect_false at mixed.fails_twice+PC: expected 0, found 3
check.expect_true at mixed.fails_twice+PC: expected a value other than 0, found 0
[  FAILED  ] mixed.fails_twice (N ms)
[ RUN      ] mixed.errs
check.expect_true at mixed.errs+PC: expected a value other than 0, found 0
the call failed: NOT_FOUND; <nothing> & 'none'; at mixed.errs+PC; in the call of function 'errs'
[  FAILED  ] mixed.errs (N ms)
[----------] 4 tests from mixed (N ms total)

[==========] 4 tests from 1 test suite ran. (N ms total)
[  PASSED  ] 1 test.
[  FAILED  ] 3 tests, listed below:
[  FAILED  ] mixed.fails
[  FAILED  ] mixed.fails_twice
[  FAILED  ] mixed.errs

 3 FAILED TESTS
""")

    def test_flags_or_arguments_name_modules(self):
        for arguments in (["mixed.vmfb", "state.vmfb"], ["--module=mixed.vmfb", "state.vmfb"],
                          ["--module=mixed.vmfb", "--module=state.vmfb"]):
            done = self.check("--list", *arguments)
            self.assertEqual(done.stdout, "mixed.\n  passes\n  fails\n  fails_twice\n  errs\nstate.\n  first\n  second\n")

    def test_standard_input_is_a_module(self):
        with open(os.path.join(self.folder, "state.vmfb"), "rb") as file:
            done = subprocess.run([os.path.join(vmrun.BIN, "vm-check"), "-"], stdin=file, capture_output=True, text=True,
                                  check=False, timeout=vmrun.TIMEOUT)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("[       OK ] state.second", done.stdout)

    def test_modules_of_one_name_are_told_apart(self):
        os.makedirs(os.path.join(self.folder, "other"), exist_ok=True)
        paths = ["state.vmfb", "copy.vmfb", "other/copy.vmfb"]
        for path in paths[1:]:
            data = vmrun.read(os.path.join(self.folder, "state.vmfb"))
            vmrun.write(os.path.join(self.folder, path), data)
        names = lambda *given: re.findall(r"^(\S+)\.$", self.check("--list", *given).stdout, re.MULTILINE)
        self.assertEqual(names(paths[1]), ["state"])
        self.assertEqual(names(*paths[:2]), ["state", "copy"])
        self.assertEqual(names(*paths), ["state", "copy.vmfb", "other/copy.vmfb"])
        self.assertEqual(names(paths[1], "mixed.vmfb"), ["state", "mixed"])

    def test_no_colours_in_a_pipe(self):
        self.assertNotIn("\x1b", self.check("mixed.vmfb").stdout)

    def test_colours_on_a_terminal_only(self):
        module = os.path.join(self.folder, "mixed.vmfb")
        terminal = Terminal("vm-check", module)
        self.assertEqual(terminal.end(), 1)
        for part in ("\x1b[32m[       OK ]\x1b[0m mixed.passes", "\x1b[31m[  FAILED  ]\x1b[0m mixed.fails"):
            self.assertIn(part, terminal.text)
        terminal = Terminal("vm-check", module, environment={"NO_COLOR": "1"})
        self.assertEqual(terminal.end(), 1)
        self.assertNotIn("\x1b[", terminal.text)

    def test_names_are_safe_to_print(self):
        text = STATE.replace("@state\n", '@"st\x1b[31mate"\n')
        vmrun.assemble(text, self.folder, "hostile")
        for flags in ([], ["--list"], ["--json"]):
            done = self.check("hostile.vmfb", *flags)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertNotIn("\x1b", done.stdout + done.stderr)
        self.assertIn("st\\x1B[31mate.first", self.check("hostile.vmfb").stdout)

    def test_output_that_cannot_be_written_is_a_failure(self):
        with open("/dev/full", "w", encoding="ascii") as full:
            done = self.check("state.vmfb", stdout=full)
        self.assertEqual(done.returncode, 1)
        self.assertIn("standard output", done.stderr)


class Choice(Files):
    def names(self, *flags):
        done = self.check("mixed.vmfb", "state.vmfb", "--list", *flags)
        self.assertEqual(done.returncode, 0, done.stderr)
        suite, names = "", []
        for line in done.stdout.splitlines():
            if line.startswith("  "):
                names.append(suite + line.strip())
            else:
                suite = line
        return names

    def test_filters(self):
        every = self.names()
        self.assertEqual(len(every), 6)
        for pattern, expected in (("*", every), ("mixed.fails", ["mixed.fails"]), ("mixed.fails*", ["mixed.fails", "mixed.fails_twice"]),
                                  ("*.f*", ["mixed.fails", "mixed.fails_twice", "state.first"]),
                                  ("state.*:mixed.errs", ["mixed.errs", "state.first", "state.second"]),
                                  ("-mixed.*", ["state.first", "state.second"]),
                                  ("*-*fails*:*.second", ["mixed.passes", "mixed.errs", "state.first"]),
                                  ("mixed.?rrs", ["mixed.errs"]), ("mixed.passes::", ["mixed.passes"]),
                                  ("*a*s*", ["mixed.passes", "mixed.fails", "mixed.fails_twice"] +
                                   [name for name in every if name.startswith("state.") and name.rfind("s") > name.find("a")])):
            self.assertEqual(self.names(f"--filter={pattern}"), expected, pattern)

    def test_a_filter_chooses_what_runs(self):
        done = self.check("mixed.vmfb", "state.vmfb", "--filter=*.passes")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn("Running 1 test from 1 test suite.", done.stdout)

    def test_a_filter_that_chooses_none(self):
        self.fails(["mixed.vmfb", "--filter=mixed.pases"], "NOT_FOUND", "mixed.pases", "did you mean 'mixed.passes'?", "--list")
        self.fails(["mixed.vmfb", "--filter=*-*"], "NOT_FOUND", "none of 4 tests")
        self.fails(["mixed.vmfb", "--filter="], "INVALID_ARGUMENT", "--filter is empty")

    def test_the_list_opens_no_device(self):
        done = self.check(os.path.join(vmrun.SOURCE, "examples", "test_program.vmasm"), "--device=nowhere", "--list")
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_the_list_as_json(self):
        report = json.loads(self.check("mixed.vmfb", "state.vmfb", "--list", "--json", "--filter=*.f*").stdout)
        self.assertEqual(report, {"modules": [{"name": "mixed", "file": "mixed.vmfb", "tests": ["fails", "fails_twice"]},
                                            {"name": "state", "file": "state.vmfb", "tests": ["first"]}]})


class Reports(Files):
    def test_junit(self):
        path = os.path.join(self.folder, "results.xml")
        done = self.check("mixed.vmfb", "state.vmfb", f"--junit={path}")
        self.assertEqual(done.returncode, 1)
        root = ElementTree.parse(path).getroot()
        counts = lambda element: tuple(int(element.get(name)) for name in ("tests", "failures", "errors", "skipped", "disabled"))
        self.assertEqual((root.tag, counts(root)), ("testsuites", (6, 2, 1, 0, 0)))
        mixed, state = root
        self.assertEqual((mixed.get("name"), counts(mixed)), ("mixed", (4, 2, 1, 0, 0)))
        self.assertEqual((state.get("name"), counts(state)), ("state", (2, 0, 0, 0, 0)))
        cases = {case.get("name"): case for case in root.iter("testcase")}
        self.assertEqual(list(cases), ["passes", "fails", "fails_twice", "errs", "first", "second"])
        for case in cases.values():
            self.assertGreaterEqual(float(case.get("time")), 0)
        self.assertEqual(len(cases["passes"]), 0)
        self.assertEqual([(it.tag, it.get("type"), it.get("message")) for it in cases["fails_twice"]],
                         [("failure", "expect_false", "expected 0, found 3"),
                          ("failure", "expect_true", "expected a value other than 0, found 0")])
        self.assertIn("at mixed.fails_twice+", cases["fails_twice"][0].text)
        self.assertEqual([(it.tag, it.get("type")) for it in cases["errs"]], [("failure", "expect_true"), ("error", "NOT_FOUND")])
        self.assertTrue(cases["errs"][1].get("message").startswith("<nothing> & 'none'; "))

    def test_json(self):
        done = self.check("mixed.vmfb", "state.vmfb", "--json")
        self.assertEqual(done.returncode, 1)
        report = json.loads(done.stdout)
        self.assertEqual([report[key] for key in ("passed", "failed", "stopped", "interrupted")], [3, 3, 0, False])
        tests = {test["name"]: test for module in report["modules"] for test in module["tests"]}
        self.assertEqual({name: test["result"] for name, test in tests.items()},
                         {"passes": "passed", "fails": "failed", "fails_twice": "failed", "errs": "failed", "first": "passed",
                          "second": "passed"})
        self.assertEqual([it["function"] for it in tests["fails_twice"]["expectations"]], ["expect_false", "expect_true"])
        self.assertEqual(tests["errs"]["error"]["code"], "NOT_FOUND")
        self.assertNotIn("error", tests["fails"])
        self.assertIn("[  FAILED  ] mixed.fails ", done.stderr)
        path = os.path.join(self.folder, "results.json")
        done = self.check("state.vmfb", f"--json={path}")
        self.assertIn("[  PASSED  ] 2 tests.", done.stdout)
        self.assertEqual(json.loads(vmrun.read_text(path))["passed"], 2)

    def test_of_many_failures_the_first_are_kept(self):
        done = self.check("many.vmfb")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stdout.count("check.expect_true at"), 100)
        self.assertIn("\nand 900 more expectations that failed\n[  FAILED  ] many.fails", done.stdout)
        test = json.loads(self.check("many.vmfb", "--json").stdout)["modules"][0]["tests"][0]
        self.assertEqual((len(test["expectations"]), test["more_expectations"]), (100, 900))

    def test_a_report_that_cannot_be_written_is_told_before_anything_runs(self):
        for flag in ("junit", "json"):
            done = self.fails(["state.vmfb", f"--{flag}=none/results"], "NOT_FOUND", "'none/results'")
            self.assertEqual(done.stdout, "")

    def test_trace(self):
        path = os.path.join(self.folder, "run.perfetto")
        self.assertEqual(self.check("state.vmfb", f"--trace={path}", "--jobs=2").returncode, 0)
        data = vmrun.read(path)
        for name in (b"state.first", b"check.expect_true"):
            self.assertIn(name, data)


class Runs(Files):
    def test_each_test_has_a_context_of_its_own(self):
        for jobs in ("1", "2"):
            done = self.check("state.vmfb", f"--jobs={jobs}")
            self.assertEqual(done.returncode, 0, done.stdout)

    def test_jobs_print_in_the_order_of_the_tests(self):
        one, many = (self.check("mixed.vmfb", "state.vmfb", "greedy.vmfb", "--filter=-*endless", f"--jobs={jobs}") for jobs in (1, 8))
        self.assertEqual(TIMES.sub("N ms", one.stdout), TIMES.sub("N ms", many.stdout))
        self.assertEqual((one.returncode, many.returncode), (1, 1))

    def test_jobs_run_at_once(self):
        names = [f"spins{i}" for i in range(8)]
        body = GREEDY[GREEDY.index("vm.func @endless"):GREEDY.index("vm.func @large")]
        text = "vm.module @spins\n" + "".join(f"vm.export @{name}\n" for name in names)
        text += "".join(body.replace("@endless", "@" + name) for name in names)
        vmrun.assemble(text, self.folder, "spins")
        # None ends before its time, so all can compute only if they run at once.
        process = subprocess.Popen([os.path.join(vmrun.BIN, "vm-check"), "spins.vmfb", "--jobs=8", f"--timeout={vmrun.TIMEOUT}s"],
                                   cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        vmrun.wait_until(lambda: process.poll() is not None or self.threads_that_compute(process) >= 8, "eight threads to compute")
        self.assertIsNone(process.poll())
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=vmrun.TIMEOUT)
        self.assertEqual(process.returncode, INTERRUPTED)
        done = self.check("spins.vmfb", "--jobs=8", "--timeout=1s")
        self.assertEqual(done.stdout.count("DEADLINE_EXCEEDED"), 8)
        self.assertEqual(done.stdout.count("[ RUN      ]"), 8)

    @staticmethod
    def threads_that_compute(process):
        """How many threads have computed for a tenth of a second."""
        folder = f"/proc/{process.pid}/task"
        ticks = [int(vmrun.read_text(os.path.join(folder, task, "stat")).rsplit(")", 1)[1].split()[11]) for task in os.listdir(folder)]
        return sum(each >= os.sysconf("SC_CLK_TCK") / 10 for each in ticks)

    def test_modules_import_from_others(self):
        self.fails(["user.vmfb", "library.vmfb"], "has no test", "library.vmfb", "--import=FILE")
        done = self.check("user.vmfb", "--import=library.vmfb")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        done = self.check("user.vmfb")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stdout, r"the test could not begin: NOT_FOUND; .*library")

    def test_limits(self):
        done = self.check("greedy.vmfb", "--timeout=8s", "--max_memory=1MiB")  # the time is for one that ends, too
        self.assertEqual(done.returncode, 1)
        for line in ("[       OK ] greedy.quick ", "[  FAILED  ] greedy.endless ", "[  FAILED  ] greedy.large ",
                     "[       OK ] greedy.last "):
            self.assertIn(line, done.stdout)
        self.assertIn("the call failed: DEADLINE_EXCEEDED; ", done.stdout)
        self.assertIn("the call failed: RESOURCE_EXHAUSTED; ", done.stdout)

    def test_program_flags(self):
        for flag in ("--verify=eager", "--module_mode=mmap", "--parameter_mode=preload", "--allow-native=no",
                     "--task_topology_group_count=1", "--vulkan_debug_utils", "--device_allocator=caching"):
            done = self.check("state.vmfb", flag)
            self.assertEqual((done.returncode, done.stderr), (0, ""), flag)
        program = os.path.join(vmrun.SOURCE, "examples", "test_program.vmasm")
        for flags in ([], ["--device=local-sync"], ["--device=local-task?workers=2"], ["--device=null", "--device_lead_allocator=0"],
                      ["--driver=" + os.path.join(vmrun.DRIVERS, "halyard-driver-null.so"), "--device=null"],
                      ["--device=local-task", "--jobs=3"]):
            done = self.check(program, *flags)
            self.assertEqual((done.returncode, done.stderr), (0, ""), flags)
        parameters = os.path.join(self.folder, "missing.irpa")
        done = self.check("state.vmfb", f"--parameters=model={parameters}")
        self.assertEqual(done.returncode, 1)
        self.assertIn("missing.irpa", done.stdout)


class ExpectFailure(Files):
    def test_turned_round(self):
        done = self.check("mixed.vmfb", "--expect_failure")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("[  FAILED  ] 3 tests, listed below:", done.stdout)
        self.fails(["state.vmfb", "--expect_failure"], "FAILED_PRECONDITION", "'state'", "all 2 passed")
        self.fails(["mixed.vmfb", "--expect_failure", "--filter=*.passes"], "its only test passed")

    def test_each_module_must_fail(self):
        self.fails(["mixed.vmfb", "state.vmfb", "--expect_failure"], "'state'")

    def test_what_cannot_begin_is_no_failure_of_its_own(self):
        done = self.check("broken.vmfb")
        self.assertEqual(done.returncode, 1)
        self.assertIn("the test could not begin: FAILED_PRECONDITION; no start", done.stdout)
        self.fails(["broken.vmfb", "--expect_failure"], "FAILED_PRECONDITION", "'broken.never' could not begin")
        self.fails(["missing.vmfb", "--expect_failure"], "NOT_FOUND")


class Wrong(Files):
    def test_command_lines(self):
        self.fails([], "INVALID_ARGUMENT", "no module given")
        self.fails(["missing.vmfb"], "NOT_FOUND", "'missing.vmfb'")
        self.fails(["state.vmfb", "state.vmfb"], "INVALID_ARGUMENT", "'state.vmfb' is given twice")
        self.fails(["state.vmfb", "--filtre=x"], "INVALID_ARGUMENT", "did you mean '--filter'?")
        self.fails(["state.vmfb", "--jobs=0"], "INVALID_ARGUMENT", "--jobs=0")
        self.fails(["state.vmfb", "--jobs=many"], "INVALID_ARGUMENT", "--jobs=many")
        self.fails(["state.vmfb", "--jobs=-1"], "INVALID_ARGUMENT", "--jobs=-1")
        self.fails(["state.vmfb", "--junit="], "INVALID_ARGUMENT", "--junit")
        self.fails(["state.vmfb", "--import=missing.so"], "NOT_FOUND", "missing.so")
        self.fails(["state.vmfb", "--timeout=soon"], "INVALID_ARGUMENT", "--timeout=soon")
        self.fails(["state.vmfb", "--device=nowhere"], "NOT_FOUND", "nowhere")
        self.fails(["library.vmfb"], "INVALID_ARGUMENT", "'library'", "has no test")

    def test_damaged_modules(self):
        whole = vmrun.read(os.path.join(self.folder, "mixed.vmfb"))
        path = os.path.join(self.folder, "cut.vmfb")
        for size in (0, 1, 7, 64, len(whole) // 2, len(whole) - 1):
            vmrun.write(path, whole[:size])
            done = self.check("cut.vmfb")
            self.assertIsNone(vmrun.why_bad_failure(done), f"{size}: {done.stderr}")
            self.assertEqual(done.stdout, "")
        self.fails(["state.vmfb", "cut.vmfb"], "cut.vmfb")


class Interrupted(Files):
    def start(self, *flags):
        return subprocess.Popen([os.path.join(vmrun.BIN, "vm-check"), "greedy.vmfb", *flags], cwd=self.folder, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True)

    def read_until(self, process, part):
        text = ""
        for line in process.stdout:
            text += line
            if part in line:
                return text
        self.fail(f"{part} is not in {text}")

    def test_ctrl_c_ends_it_with_what_it_has(self):
        for jobs in (1, 2):
            for _ in range(20):
                rest, found, junit = self.stopped(jobs)
                results = {test["name"]: test["result"] for test in found["modules"][0]["tests"]}
                if results.get("last") != "stopped":  # on a busy machine, the other thread may not have come to its end
                    break
            self.assertIn("stopped by Ctrl-C\n[  SKIPPED ] greedy.endless (", rest)
            self.assertIn("[  SKIPPED ] 1 test, listed below:", rest)
            self.assertTrue(found["interrupted"])
            self.assertEqual(results["quick"], "passed")
            self.assertEqual(results["endless"], "stopped")
            if jobs == 1:
                self.assertNotIn("last", results)
                self.assertIn("interrupted: 1 test was not run", rest)
            skipped = [case.get("name") for case in ElementTree.parse(junit).getroot().iter("testcase") if case.find("skipped") is not None]
            self.assertEqual(skipped, ["endless"])

    def stopped(self, jobs):
        """What a run prints after Ctrl-C, its JSON, and the path of its other report."""
        report = os.path.join(self.folder, "stopped.json")
        junit = os.path.join(self.folder, "stopped.xml")
        process = self.start(f"--json={report}", f"--junit={junit}", f"--jobs={jobs}", "--filter=-*.large")
        text = self.read_until(process, "[ RUN      ] greedy.endless")
        vmrun.wait_until_it_computes(process)
        process.send_signal(signal.SIGINT)
        rest, errors = process.communicate(timeout=vmrun.TIMEOUT)
        self.assertEqual((process.returncode, errors), (INTERRUPTED, ""), text + rest)
        return rest, json.loads(vmrun.read_text(report)), junit

    def test_ctrl_c_on_a_terminal(self):
        terminal = Terminal("vm-check", os.path.join(self.folder, "greedy.vmfb"), "--filter=*.endless:*.last")
        terminal.read_until("greedy.endless")
        time.sleep(0.2)
        terminal.press(CTRL_C)
        self.assertEqual(terminal.end(), INTERRUPTED)
        self.assertIn("interrupted: 1 test was not run", terminal.text)

    def test_a_module_that_must_fail_has_not_failed_when_it_was_stopped(self):
        process = self.start("--expect_failure", "--filter=*.endless")
        self.read_until(process, "[ RUN      ] greedy.endless")
        time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=vmrun.TIMEOUT)
        self.assertEqual(process.returncode, INTERRUPTED)


class OtherTools(Files):
    def test_vm_run_tells_what_does_not_hold_and_ends_with_1(self):
        done = vmrun.run("vm-run", "--module=mixed.vmfb", "--function=fails_twice", cwd=self.folder)
        self.assertEqual((done.returncode, done.stdout), (1, "EXEC @fails_twice\n"))
        self.assertEqual(re.sub(r"\+[0-9A-F]{8}", "", done.stderr),
                         "vm-run: expectation failed: check.expect_false at mixed.fails_twice: expected 0, found 3\n"
                         "vm-run: expectation failed: check.expect_true at mixed.fails_twice: expected a value other than 0, found 0\n")
        done = vmrun.run("vm-run", "--module=mixed.vmfb", "--function=errs", cwd=self.folder)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"(?s)\Avm-run: expectation failed: .*\nvm-run: NOT_FOUND; ")
        done = vmrun.run("vm-run", "--module=mixed.vmfb", "--function=passes", cwd=self.folder)
        self.assertEqual((done.returncode, done.stderr), (0, ""))


@unittest.skipUnless(vmrun.fixtures() and os.path.isdir(os.path.join(vmrun.fixtures(), "check")), "the shared fixtures are not here")
class Fixtures(unittest.TestCase):
    """tests.json says which tests of the shared programs pass and which fail."""

    def check_all(self, device, entries=None):
        folder = os.path.join(vmrun.fixtures(), "check")
        listed = json.loads(vmrun.read_text(os.path.join(folder, "tests.json")))
        if vmrun.processor() != "x86_64":
            listed = [entry for entry in listed if ".llvm-cpu" not in entry["module"]]
        ran = 0
        for entry in listed if entries is None else entries(listed):
            for jobs in ("1", "4"):
                done = vmrun.run("vm-check", os.path.join(folder, entry["module"]), f"--device={device}", "--json", f"--jobs={jobs}")
                self.assertTrue(done.stdout, done.stderr)
                tests = json.loads(done.stdout)["modules"][0]["tests"]
                self.assertEqual({test["name"]: test["result"][:4] for test in tests}, entry["tests"], f"{entry['module']} {done.stderr}")
                all_pass = set(entry["tests"].values()) == {"pass"}
                self.assertEqual(done.returncode, 0 if all_pass else 1)
                for test in tests:
                    self.assertEqual(len(test.get("expectations", [])) > 0, test["result"] == "failed")
                    self.assertNotIn("error", test)
                turned = vmrun.run("vm-check", os.path.join(folder, entry["module"]), f"--device={device}", "--expect_failure")
                self.assertEqual(turned.returncode, 1 if all_pass else 0, turned.stderr)
                ran += 1
        return ran

    def test_local_sync(self):
        self.assertGreater(self.check_all("local-sync", lambda all_: [it for it in all_ if "local-sync" in it["devices"]]), 0)

    def test_local_task(self):
        self.assertGreater(self.check_all("local-task", lambda all_: [it for it in all_ if "local-task" in it["devices"]]), 0)


class Vulkan(unittest.TestCase):
    def test_the_example_on_a_vulkan_device(self):
        device = vmrun.vulkan_device()
        if not device:
            self.skipTest("no Vulkan device")
        program = os.path.join(vmrun.SOURCE, "examples", "test_program.vmasm")
        for flags in ([], ["--jobs=3"]):
            done = vmrun.run("vm-check", program, f"--device={device}", *flags)
            self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)

    @unittest.skipUnless(vmrun.fixtures(), "the shared fixtures are not here")
    def test_programs_for_other_devices_cannot_begin(self):
        device = vmrun.vulkan_device()
        if not device:
            self.skipTest("no Vulkan device")
        for name in ("check_pass.vmvx", "check_fail.vmvx"):
            module = os.path.join(vmrun.fixtures(), "check", name + ".vmfb")
            for flags in ([], ["--expect_failure"]):
                done = vmrun.run("vm-check", module, f"--device={device}", *flags)
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertIn("the test could not begin: INCOMPATIBLE; ", done.stdout)
