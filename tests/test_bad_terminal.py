"""Tools with closed, full or broken standard streams, signals, endless files, missing paths, and inputs of 40 KB: the
exit status is right, messages are short, and no output goes to the wrong file."""
import os
import re
import resource
import signal
import subprocess
import unittest

import installed
import vmrun

SPIN = """
vm.module @spin
vm.export @forever
""" + vmrun.endless("forever")
# The same before any function can be called.
SPIN_AT_START = SPIN.replace("@forever", "@__init").replace("@spin", "@late") + """
vm.export @main
vm.func @main() -> () {
  vm.return
}
"""
MUL = ["--device=local-sync", "--module=examples/elementwise_mul.vmasm", "--function=mul", "--input=8xf32=3", "--input=8xf32=2"]
RESULT = "EXEC @mul\nresult[0]: hal.buffer_view\n8xf32=6 6 6 6 6 6 6 6\n"
NULL = "--driver=" + os.path.join(vmrun.DRIVERS, "halyard-driver-null.so")
# Runs that write to standard error, and their exit status.
TALKATIVE = [
    (["vm-run", *MUL, "--print_statistics", "--print_stats"], 0),
    (["vm-run", "--module=missing.vmfb"], 1),
    (["vm-bench", *MUL, "--benchmark_min_time=1x", "--benchmark_filter=^load$", "--print_statistics"], 0),
    (["vm-bench", "--module=missing.vmfb"], 5),
    (["vm-as", "missing.vmasm"], 1),
    (["vm-dump", "missing.vmfb"], 1),
    (["hal-info", "devices", "missing"], 1),
    (["hal-cts", NULL, "--filter=memory.sizes", "--json"], 0),
    (["hal-cts", "--driver=missing.so"], 1),
]
STREAM_LIMIT = 1 << 30  # bytes read from a file that is not regular


def shell(command, redirections, **options):
    """Runs a tool with what a shell can do to its descriptors."""
    return subprocess.run(["bash", "-c", f'exec "$@" {redirections}', "bash", os.path.join(vmrun.BIN, command[0]), *command[1:]],
                          cwd=vmrun.SOURCE, timeout=vmrun.TIMEOUT * 2, stdout=options.pop("stdout", subprocess.PIPE),
                          stderr=options.pop("stderr", subprocess.PIPE), text=True, **options)


class StandardError(unittest.TestCase):
    def test_one_that_cannot_be_written_changes_nothing(self):
        for command, code in TALKATIVE:
            expected = shell(command, "")
            self.assertEqual(expected.returncode, code, expected.stderr)
            self.assertNotEqual(expected.stderr, "")
            for redirection in ("2>/dev/full", "2>&-"):
                with self.subTest(command=command[0], redirection=redirection):
                    done = shell(command, redirection)
                    self.assertEqual(done.returncode, code)
                    if command[0] not in ("vm-bench", "hal-cts"):  # whose results have times
                        self.assertEqual(done.stdout, expected.stdout)

    def test_every_tool_writes_there_in_the_way_that_cannot_fail(self):
        other = re.compile(r"\b(?:fmt::print|fprintf|vfprintf|fputs|fputc)\s*\([^;]*\bstderr\b|std::cerr|\bperror\s*\(")
        for place, _, names in os.walk(os.path.join(vmrun.SOURCE, "tools")):
            for name in names:
                if name.endswith((".cpp", ".h")):
                    self.assertIsNone(other.search(vmrun.read_text(os.path.join(place, name))), f"{place}/{name}: print_error() of common/standard_streams.h does it")

    def test_a_reader_that_goes_away(self):
        reader, writer = os.pipe()
        os.close(reader)
        try:
            for command, code in TALKATIVE:
                with self.subTest(command[0]):
                    self.assertEqual(shell(command, "", stderr=writer).returncode, code)
                    # Results without a reader are an error.
                    both = shell(command, "", stdout=writer, stderr=writer)
                    self.assertEqual(both.returncode, code or 1)
        finally:
            os.close(writer)


class ClosedStreams(vmrun.FolderCase):
    def test_no_file_takes_the_place_of_one(self):
        files = {name: self.path(name) for name in ("trace", "capture", "result")}
        command = ["vm-run", *MUL, "--trace={trace}", "--capture={capture}", "--output=-", "--print_stats"]
        command = [word.format(**files) for word in command]
        shell(command, "")
        sound = {name: os.path.getsize(files[name]) for name in ("trace", "capture")}
        for redirection in ("<&-", ">&-", "2>&-", "<&- >&-", "<&- >&- 2>&-"):
            with self.subTest(redirection):
                done = shell(command, redirection)
                self.assertEqual(done.returncode, 1 if ">&-" in redirection.replace("2>&-", "") else 0, done.stderr)
                for name, path in files.items():
                    if name == "result":
                        continue
                    data = vmrun.read(path)
                    self.assertNotIn(b"EXEC @mul", data)
                    self.assertNotIn(b"time\n", data)
                    self.assertNotIn(b"cannot write", data)
                    self.assertGreater(len(data), sound[name] // 2)
                replayed = vmrun.succeeds("hal-info", "replay", files["capture"])

    def test_results_that_were_not_written_are_an_error(self):
        for command in (["vm-run", *MUL], ["vm-dump", "examples/fib.vmasm"], ["vm-as", "examples/fib.vmasm"], ["hal-info"],
                        ["hal-cts", "--list", NULL], ["vm-run", "--list_drivers"], ["vm-run", "--help"],
                        ["vm-bench", *MUL, "--benchmark_min_time=1x", "--benchmark_filter=^load$"]):
            for redirection in (">&-", ">/dev/full"):
                with self.subTest(command=command[0], redirection=redirection):
                    done = shell(command, redirection)
                    self.assertEqual(done.returncode, 1, done.stderr)
                    self.assertRegex(done.stderr, rf"(?m)^{command[0]}: UNAVAILABLE; cannot write all of standard output: ")

    def test_what_needs_no_standard_output_succeeds_without(self):
        target = self.path("fib.vmfb")
        done = shell(["vm-as", "examples/fib.vmasm", f"--output={target}"], "<&- >&- 2>&-")
        self.assertEqual(done.returncode, 0)
        vmrun.succeeds("vm-dump", target)

    def test_a_closed_standard_input_cannot_be_read(self):
        for command in (["vm-run", "--module=-"], ["vm-as", "-"], ["vm-dump", "-"]):
            with self.subTest(command[0]):
                done = shell(command, "<&-")
                self.assertIsNone(vmrun.why_bad_failure(done, "cannot read"), done.stderr)


class Signals(vmrun.FolderCase):
    CODES = {signal.SIGTERM: (143, "SIGTERM"), signal.SIGHUP: (129, "SIGHUP"), signal.SIGINT: (130, "Ctrl-C")}

    def stopped(self, folder, text, number, *flags, wait_for="EXEC"):
        """Sends the signal to a run that computes for ever. What it said, and its exit status."""
        vmrun.assemble(text, folder, "program")
        process = subprocess.Popen([os.path.join(vmrun.BIN, "vm-run"), f"--module={folder}/program.vmfb", "--device=local-sync", *flags],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if wait_for:
            self.assertIn(wait_for, process.stdout.readline())
        vmrun.wait_until_it_computes(process)
        process.send_signal(number)
        _, errors = process.communicate(timeout=vmrun.TIMEOUT)
        return errors, process.returncode

    def test_a_call_is_stopped_and_its_records_are_closed(self):
        for number, (code, name) in self.CODES.items():
            with self.subTest(name):
                trace, capture = self.path("trace"), self.path("capture")

                def errors():
                    said, status = self.stopped(self.folder, SPIN, number, f"--trace={trace}", f"--capture={capture}")
                    self.assertEqual(status, code, said)
                    return said

                vmrun.stopped_in_time(self, errors, rf"\Avm-run: CANCELLED; stopped by {name}: .*'forever'")
                self.assertIn(b"forever", vmrun.read(trace))
                vmrun.succeeds("hal-info", "print", capture)

    def test_what_comes_before_the_call_ends_with_its_trace(self):
        for number, (code, name) in self.CODES.items():
            with self.subTest(name):
                trace = self.path("trace")
                errors, status = self.stopped(self.folder, SPIN_AT_START, number, f"--trace={trace}", "--function=main", wait_for=None)
                self.assertEqual(status, code, errors)
                self.assertRegex(errors, rf"\Avm-run: CANCELLED; stopped by {name}: before the call")
                self.assertIn(b"make context", vmrun.read(trace))

    def test_the_second_signal_ends_it_at_once_whichever_it_is(self):
        vmrun.assemble(SPIN, self.folder, "program")
        fifo = self.path("trace")
        os.mkfifo(fifo)
        # Without a reader the trace cannot be finished.
        process = subprocess.Popen([os.path.join(vmrun.BIN, "vm-run"), f"--module={fifo}"], stderr=subprocess.DEVNULL)
        vmrun.wait_until_it_handles(process, signal.SIGTERM)
        process.send_signal(signal.SIGTERM)
        vmrun.wait_until_it_has_taken(process, signal.SIGTERM)
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
        self.assertIn(process.wait(timeout=vmrun.TIMEOUT), (143, -signal.SIGINT))

    def test_signals_that_are_ignored_stay_so(self):
        vmrun.assemble(SPIN, self.folder, "program")
        process = subprocess.Popen([os.path.join(vmrun.BIN, "vm-run"), f"--module={self.folder}/program.vmfb", "--timeout=2s"],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
        process.stdout.readline()
        process.send_signal(signal.SIGHUP)
        _, errors = process.communicate(timeout=vmrun.TIMEOUT)
        self.assertIn("DEADLINE_EXCEEDED", errors)

    def test_vm_bench_and_hal_cts(self):
        vmrun.assemble(SPIN, self.folder, "program")
        vmrun.assemble(SPIN_AT_START, self.folder, "late")
        trace = self.path("trace")
        for arguments in (["vm-bench", f"--module={self.folder}/program.vmfb", "--function=forever"],
                          ["vm-bench", f"--module={self.folder}/late.vmfb", "--function=main", f"--trace={trace}"],
                          ["vm-bench", f"--module={self.folder}/program.vmfb", "--function=forever", "--against=sleep 100;"]):
            with self.subTest(arguments):
                process = subprocess.Popen([os.path.join(vmrun.BIN, arguments[0]), *arguments[1:]], stdout=subprocess.PIPE,
                                           stderr=subprocess.PIPE, text=True)
                vmrun.wait_until_it_handles(process, signal.SIGTERM)
                vmrun.wait_until(lambda: vmrun.processor_seconds(process.pid) >= 0.5 or self.has_child(process), "its work")
                process.send_signal(signal.SIGTERM)
                _, errors = process.communicate(timeout=vmrun.TIMEOUT)
                self.assertEqual(process.returncode, 143, errors)
                self.assertIn("stopped by SIGTERM", errors)
        self.assertIn(b"__init", vmrun.read(trace))
        report = self.path("report.json")
        for _ in range(20):  # it may have ended before it is stopped
            process = subprocess.Popen([os.path.join(vmrun.BIN, "hal-cts"), NULL, f"--json={report}"], stdout=subprocess.PIPE,
                                       stderr=subprocess.PIPE, text=True)
            process.stdout.readline()
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=vmrun.TIMEOUT)
            if process.returncode != 0:
                break
        self.assertEqual(process.returncode, 143)
        self.assertIn('"interrupted": true', vmrun.read_text(report))

    @staticmethod
    def has_child(process):
        return bool(vmrun.read_text(f"/proc/{process.pid}/task/{process.pid}/children"))


class Endless(vmrun.FolderCase):
    COMMANDS = [
        ["vm-run", "--module=/dev/zero"],
        ["vm-as", "/dev/zero"],
        ["vm-dump", "/dev/zero"],
        ["vm-run", "--flagfile=/dev/zero"],
        ["hal-info", "print", "/dev/zero"],
        ["hal-cts", NULL, "--expect_failures=/dev/zero"],
    ]

    def test_files_without_an_end_are_refused(self):
        for command in self.COMMANDS:
            with self.subTest(command):
                # Without its own limit the tool would use all of this; sanitizers need more for themselves.
                limit = resource.RLIM_INFINITY if installed.cache("HALYARD_SANITIZE") else 8 * STREAM_LIMIT
                done = shell(command, "", preexec_fn=lambda limit=limit: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)))
                wrong = vmrun.why_bad_failure(done, "RESOURCE_EXHAUSTED", "'/dev/zero'", str(STREAM_LIMIT), "to a regular file first")
                self.assertIsNone(wrong, done.stderr)

    def test_others_are_refused_as_what_they_are(self):
        for command, parts in (
                (["vm-run", *MUL[:3], "--input=@/dev/zero", "--input=8xf32=1"], ["not an npy file"]),
                (["vm-run", *MUL, "--parameters=/dev/zero"], ["is not a parameter file"])):
            with self.subTest(command):
                done = shell(command, "")
                self.assertIsNone(vmrun.why_bad_failure(done, "/dev/zero"), done.stderr)
                self.assertTrue(any(part in done.stderr for part in parts), done.stderr)

    def test_pipes_work(self):
        vmrun.assemble("vm.module @one\nvm.export @one\nvm.func @one() -> (i32) {\n  %i0 = vm.const.i32 1\n  vm.return %i0\n}\n",
                       self.folder, "one")
        fifo = self.path("fifo")
        os.mkfifo(fifo)
        for command in (["vm-run", f"--module={fifo}"], ["vm-dump", fifo]):
            writer = subprocess.Popen(["bash", "-c", f"cat '{self.folder}/one.vmfb' > '{fifo}'"])
            done = shell(command, "")
            writer.wait(timeout=vmrun.TIMEOUT)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("one", done.stdout)
        done = shell(["vm-run", "--module=-"], f"< '{self.folder}/one.vmfb'")
        self.assertIn("i32=1", done.stdout)


class Paths(vmrun.FolderCase):
    LONG = "x" * 5000

    def setUp(self):
        super().setUp()
        self.loop = self.path("loop")
        for name in ("loop", "loop.so", "loop.irpa"):
            os.symlink(self.path(name), self.path(name))

    def commands(self, path):
        mul = ["vm-run", *MUL[:3]]
        return [
            ["vm-run", f"--module={path}"],
            ["vm-run", f"--module={path}.so"],
            ["vm-run", f"--flagfile={path}"],
            [*mul, f"--input=@{path}", "--input=8xf32=1"],
            [*mul, f"--input=8xf32=@{path}", "--input=8xf32=1"],
            [*mul, f"--inputs_from={path}"],
            ["vm-run", *MUL, f"--parameters={path}.irpa"],
            ["vm-run", *MUL, f"--output=@{path}"],
            ["vm-run", *MUL, f"--trace={path}"],
            ["vm-run", *MUL, f"--capture={path}"],
            ["vm-run", *MUL, "--trace_tensors=*", f"--trace_tensors_folder={path}"],
            ["vm-as", path],
            ["vm-as", "examples/fib.vmasm", f"--output={path}"],
            ["vm-dump", path],
            ["hal-info", "print", path],
            ["hal-info", "formats", "local-sync", f"vmvx-bytecode-fb={path}"],
            ["hal-cts", f"--driver={path}"],
            ["hal-cts", NULL, f"--expect_failures={path}"],
            ["hal-cts", NULL, "--filter=memory.sizes", f"--junit={path}"],
            ["vm-bench", *MUL, "--benchmark_filter=^load$", "--benchmark_min_time=1x", f"--benchmark_out={path}"],
        ]

    def test_what_can_name_nothing_is_an_invalid_argument(self):
        for path, reason in ((self.LONG, "File name too long"), (self.loop, "Too many levels of symbolic links")):
            for command in self.commands(path):
                with self.subTest(reason=reason, command=[word[:40] for word in command]):
                    done = shell(command, "")
                    self.assertIsNone(vmrun.why_bad_failure(done, "INVALID_ARGUMENT; ", reason), done.stderr[:600])
                    self.assertNotIn("standard output", done.stderr)
                    self.assertLess(len(done.stderr), 1200)

    def test_what_is_not_there_is_not_found(self):
        for path in (self.path("missing"), os.path.join(vmrun.SOURCE, "README.md", "missing")):
            for command in self.commands(path):
                # Creates a file or folder at a missing path.
                made = re.match(r"--(output|trace|capture|junit|benchmark_out|trace_tensors_folder)=", command[-1])
                if made and path.startswith(self.folder):
                    continue
                with self.subTest(command=command):
                    done = shell(command, "")
                    self.assertIsNone(vmrun.why_bad_failure(done, "NOT_FOUND; ", path), done.stderr)


class Echo(vmrun.FolderCase):
    LONG = "abcdefgh" * 5000

    def test_long_texts_of_the_user_are_shortened(self):
        for command in (
                ["vm-run", f"--{self.LONG}"],
                ["vm-run", f"-{self.LONG}"],
                ["vm-run", self.LONG],
                ["vm-run", f"--module={self.LONG}"],
                ["vm-run", "--module=examples/fib.vmasm", f"--verify={self.LONG}"],
                ["vm-run", "--module=examples/fib.vmasm", f"--function={self.LONG}"],
                ["vm-run", "--module=examples/fib.vmasm", "--function=recursive", f"--input={self.LONG}"],
                ["vm-run", *MUL[:3], "--input=" + "1 2 3 x " * 5000 + "'", "--input=8xf32=1"],
                ["vm-run", *MUL[:3], f"--input={self.LONG}", "--input=8xf32=1"],
                ["vm-run", *MUL[:3], f"--input=8xf32={self.LONG}", "--input=8xf32=1"],
                ["vm-run", *MUL[:3], f"--input=8x{self.LONG}=1", "--input=8xf32=1"],
                ["vm-run", *MUL[:3], f"--input=8xf32=@{self.LONG}", "--input=8xf32=1"],
                ["vm-run", *MUL[1:3], f"--device={self.LONG}"],
                ["vm-run", *MUL[1:3], f"--device=local-sync?{self.LONG}"],
                ["vm-run", *MUL[1:3], f"--device=local-sync?{self.LONG}=1"],
                ["vm-run", *MUL, f"--output={self.LONG}"],
                ["vm-run", *MUL, f"--max_memory={self.LONG}"],
                ["vm-run", *MUL, f"--timeout={self.LONG}"],
                ["vm-run", *MUL, f"--parameters={self.LONG}"],
                ["vm-run", f"--list_devices={self.LONG}"],
                ["vm-bench", f"--{self.LONG}"],
                ["vm-bench", *MUL, f"--benchmark_filter={self.LONG}"],
                ["vm-bench", *MUL, f"--benchmark_min_time={self.LONG}"],
                ["vm-as", f"--{self.LONG}"],
                ["vm-as", self.LONG],
                ["vm-dump", self.LONG],
                ["vm-dump", f"--output={self.LONG}", "x"],
                ["hal-info", self.LONG],
                ["hal-info", "devices", self.LONG],
                ["hal-info", "query", "local-sync", self.LONG, self.LONG],
                ["hal-info", "formats", "local-sync", f"vmvx={self.LONG}"],
                ["hal-cts", NULL, f"--filter={self.LONG}"],
                ["hal-cts", NULL, f"--device={self.LONG}"],
                ["hal-cts", f"--driver={self.LONG}"]):
            with self.subTest([word[:40] for word in command]):
                done = shell(command, "")
                self.assertIsNone(vmrun.why_bad_failure(done, "bytes left out"), done.stderr[:600])
                self.assertLess(len(done.stderr), 1500, done.stderr)
                self.assertEqual(done.stderr.count("\n"), 1, "is one line")

    def test_characters_stay_whole_and_apostrophes_are_no_quotes(self):
        for text in ("\u00e9" * 20000, "a" + "\u20ac" * 20000, "it's " * 10000, "'" * 40000, "' '" * 10000):
            with self.subTest(text[:5]):
                done = shell(["vm-run", "--module=examples/fib.vmasm", f"--function={text}", "--input=1"], "")
                self.assertIsNone(vmrun.why_bad_failure(done, "NOT_FOUND; no function '", "in module '"), done.stderr[:600])
                self.assertNotIn("\\x", done.stderr)
                self.assertLess(len(done.stderr), 4500)

    def test_long_lines_of_a_text(self):
        for name, text in (("mnemonic", f"  vm.{self.LONG}\n"), ("name", f"  vm.br ^{self.LONG}\n"), ("line", f"{self.LONG}\n")):
            path = os.path.join(self.folder, name + ".vmasm")
            vmrun.write(path, "vm.module @m\nvm.func @f() -> () {\n" + text + "}\n")
            done = shell(["vm-as", path, "--output=" + self.path("out")], "")
            self.assertIsNone(vmrun.why_bad_failure(done, f"{name}.vmasm:"), done.stderr[:600])
            self.assertLess(len(done.stderr), 4500)
        path = self.path("flags.txt")
        vmrun.write(path, f"--{self.LONG}\n")
        done = shell(["vm-run", f"--flagfile={path}"], "")
        self.assertIsNone(vmrun.why_bad_failure(done, "flags.txt:1: ", "bytes left out"), done.stderr[:600])
        self.assertLess(len(done.stderr), 1500)
