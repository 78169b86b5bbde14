"""The help of every tool of the build, all from one table: --help, manual pages, completions for bash and zsh."""
import os
import re
import shlex
import shutil
import subprocess
import tempfile
import unittest

import vmrun

TOOLS = sorted(name for name in os.listdir(vmrun.BIN) if name.startswith(("vm-", "hal-", "vulkan-")))
SHARE = os.path.join(vmrun.BUILD, "share")
FLAG = re.compile(r"^  --(\w+)(\[?)(?:=(.*?))?\]?$")


def help_of(tool, form=None):
    done = vmrun.run(tool, "--help" if form is None else f"--help={form}")
    if done.returncode != 0 or done.stderr:
        raise AssertionError(f"{tool} --help {form}: {done.returncode}, {done.stderr}")
    return done.stdout


def flags_of(tool):
    """Name, whether the value may be left out, the value's form (None: none); and the lines below."""
    flags, lines = [], help_of(tool).splitlines()
    for number, line in enumerate(lines):
        match = FLAG.match(line)
        if match:
            end = next((later for later in range(number + 1, len(lines)) if not lines[later].startswith("      ")), len(lines))
            flags.append((match[1], bool(match[2]), match[3], lines[number + 1:end]))
    return flags


class Help(unittest.TestCase):
    def test_every_flag_has_a_text_and_an_example(self):
        for tool in TOOLS:
            flags = flags_of(tool)
            self.assertGreater(len(flags), 3, tool)
            for name, _, _, lines in flags:
                with self.subTest(tool=tool, flag=name):
                    self.assertTrue(lines[-1].startswith("      example: "), lines)
                    self.assertGreater(len(lines), 1)
                    self.assertIn("__" + name, lines[-1].replace("-", "_"))

    def test_examples_of_flags_are_accepted_by_the_parser(self):
        """With --help behind them: a flag that is wrong is an error even then."""
        for tool in TOOLS:
            for name, _, _, lines in flags_of(tool):
                words = [word for word in shlex.split(lines[-1].split(": ", 1)[1]) if not word.startswith("--flagfile=")]
                done = vmrun.succeeds(tool, *words, "--help")

    def test_help_has_usage_examples_and_exit_codes(self):
        for tool in TOOLS:
            text = help_of(tool)
            self.assertIn(f"usage: {tool}", text)
            self.assertIn(f"\nexamples:\n  {tool}", text)
            self.assertRegex(text, r"\nexit codes:\n  0 ")
            self.assertEqual(vmrun.run(tool, "-h").stdout, text)

    def test_it_names_the_documents(self):
        for tool in TOOLS:
            document = re.search(r"\ndocuments:\n  (docs/\S+\.md); ", help_of(tool))
            self.assertIsNotNone(document, tool)
            self.assertTrue(os.path.exists(os.path.join(vmrun.SOURCE, document[1])), document[1])

    def test_version(self):
        for tool in TOOLS:
            done = vmrun.succeeds(tool, "--version")
            first, *lines = done.stdout.splitlines()
            version = first.removeprefix(tool + " ")
            self.assertRegex(version, r"^\d+\.\d+\.\d+$")
            self.assertEqual([line.split()[0] for line in lines], ["library", "ABI", "compiler", "build", "documents"])
            self.assertRegex(lines[0], rf"^library +libhalyard {re.escape(version)}, /.*libhalyard\.so")
            self.assertRegex(lines[1], r"^ABI +drivers 1, native modules 1$")
            self.assertRegex(lines[2], r"^compiler +(?:g\+\+|clang) \d+\.\d+\.\d+$")

    @unittest.skipUnless(vmrun.starts_itself(), vmrun.NO_BINFMT)
    def test_it_finds_the_documents_of_its_installation(self):
        with tempfile.TemporaryDirectory() as prefix:
            documents = os.path.join(os.path.realpath(prefix), "share", "doc", "halyard")
            os.makedirs(os.path.join(documents, "docs"))
            os.symlink(os.path.join(vmrun.BUILD, "lib"), os.path.join(prefix, "lib"))
            program = os.path.join(prefix, "bin", "vm-dump")
            os.mkdir(os.path.dirname(program))
            shutil.copy(os.path.join(vmrun.BIN, "vm-dump"), program)
            texts = [subprocess.run([program, flag], capture_output=True, text=True, check=False).stdout for flag in ("--help", "--version")]
        self.assertIn(f"\ndocuments:\n  {documents}/docs/vm-dump.md;", texts[0])
        self.assertIn(f"\ndocuments {documents}\n", texts[1])

    def test_flags_without_effect_are_accepted_and_not_listed(self):
        flags = ("--task_topology_mode=physical_cores", "--task-worker-spin-us=7", "--device_allocator=caching", "--vulkan_debug_utils",
                 "--vulkan_sparse_binding=false")
        for tool in ("vm-run", "vm-bench", "vm-check", "vm-serve"):
            vmrun.succeeds(tool, *flags, "--help")
            for form in (None, "man", "bash", "zsh"):
                text = help_of(tool, form).replace("\\-", "-")
                self.assertNotIn("without effect", text)
                self.assertNotIn("From other runtimes", text)
                for flag in flags:
                    self.assertNotIn(flag.split("=")[0].replace("-", "_")[2:], text)
        self.assertIsNone(vmrun.why_bad_failure(vmrun.run("vm-run", "--task_topology_mode"), "INVALID_ARGUMENT", "--task_topology_mode=MODE"))

    def test_it_fits_the_terminal(self):
        for tool in TOOLS:
            for columns in ("60", "80", "200"):
                text = vmrun.run(tool, "--help", env={**os.environ, "COLUMNS": columns}).stdout
                usage = text.split("\nexamples:")[0]
                long = [line for line in usage.splitlines() if len(line) > min(int(columns), 100) and " " in line.strip()
                        and "example: " not in line]
                self.assertEqual(long, [], tool)

    def test_values_that_are_named_are_checked(self):
        for tool in TOOLS:
            for name, _, value, _ in flags_of(tool):
                if value and "|" in value:
                    wrong = vmrun.why_bad_failure(vmrun.run(tool, f"--{name}=nonsense"), "INVALID_ARGUMENT", f"--{name}=nonsense",
                                                  value.split("|")[-1])
                    self.assertIsNone(wrong, f"{tool} --{name}: {wrong}")


class ManualPages(unittest.TestCase):
    def page(self, tool):
        return vmrun.read_text(os.path.join(SHARE, "man", "man1", tool + ".1"), encoding="ascii")

    def test_the_build_has_them(self):
        for tool in TOOLS:
            self.assertEqual(self.page(tool), help_of(tool, "man"))

    def test_sections(self):
        for tool in TOOLS:
            sections = re.findall(r"^\.SH (.*)$", self.page(tool), re.MULTILINE)
            self.assertEqual(sections, ["NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "EXAMPLES", "EXIT STATUS", "ENVIRONMENT",
                                        "SEE ALSO"], tool)
            for other in TOOLS:
                self.assertEqual(other.replace("-", "\\-") + " (1)" in self.page(tool), other != tool, f"{tool}: {other}")

    def test_every_line_is_text_or_a_known_request(self):
        for tool in TOOLS:
            for line in self.page(tool).splitlines():
                self.assertRegex(line, r"^(?:\.(?:TH|SH|SS|TP|B|BR|PP|br|nf|fi)\b|[^.'])", tool)

    def test_options_are_those_of_help(self):
        for tool in TOOLS:
            page = self.page(tool).replace("\\-", "-")
            for name, _, _, _ in flags_of(tool):
                self.assertIn(f"\n.B --{name}", page, tool)

    @unittest.skipUnless(shutil.which("groff"), "groff is not installed")
    def test_groff_finds_nothing_wrong(self):
        for tool in TOOLS:
            path = os.path.join(SHARE, "man", "man1", tool + ".1")
            done = subprocess.run(["groff", "-man", "-Tascii", "-ww", "-z", path], capture_output=True, text=True, check=False)
            self.assertEqual((done.returncode, done.stderr), (0, ""), tool)

    @unittest.skipUnless(shutil.which("mandoc"), "mandoc is not installed")
    def test_mandoc_finds_nothing_wrong(self):
        for tool in TOOLS:
            path = os.path.join(SHARE, "man", "man1", tool + ".1")
            done = subprocess.run(["mandoc", "-man", "-Tlint", "-Wwarning", path], capture_output=True, text=True, check=False)
            complaints = [line for line in done.stdout.splitlines() if "missing date" not in line]
            self.assertEqual(complaints, [], tool)


class BashCompletion(unittest.TestCase):
    def complete(self, line, folder=None):
        """What bash offers at the end of the line, as it stands in COMPREPLY."""
        tool = line.split()[0]
        script = os.path.join(SHARE, "bash-completion", "completions", tool)
        words = re.findall(r"[^\s=:]+|[=:]+|\s$", line)  # as COMP_WORDBREAKS splits
        program = (f"source {shlex.quote(script)}\n"
                   f"COMP_LINE={shlex.quote(line)}\nCOMP_POINT={len(line)}\n"
                   f"COMP_WORDS=({' '.join(shlex.quote(word.strip()) for word in words)})\nCOMP_CWORD={len(words) - 1}\n"
                   f"function=$(complete -p {tool}); function=${{function##*-F }}\n"
                   f"${{function%% *}} {tool} x y\n"
                   'printf "%s\\n" "${COMPREPLY[@]}"\n')
        done = subprocess.run(["bash", "--norc", "-c", program], capture_output=True, text=True, check=False, cwd=folder or vmrun.SOURCE,
                              env={**os.environ, "PATH": vmrun.BIN + ":" + os.environ["PATH"]}, timeout=vmrun.TIMEOUT)
        self.assertEqual((done.returncode, done.stderr), (0, ""), line)
        return done.stdout.split()

    def test_the_build_has_them(self):
        for tool in TOOLS:
            self.assertEqual(vmrun.read_text(os.path.join(SHARE, "bash-completion", "completions", tool), encoding="ascii"), help_of(tool, "bash"))

    def test_names_of_flags(self):
        for tool in TOOLS:
            offered = self.complete(f"{tool} --")
            expected = ["--" + name + ("=" if value and not may_be_left_out else "") for name, may_be_left_out, value, _ in flags_of(tool)]
            self.assertEqual(offered, expected)
        self.assertEqual(self.complete("vm-run --modu"), ["--module=", "--module_mode="])
        self.assertEqual(self.complete("vm-run --module=m.vmfb --list-f"), ["--list_functions"])
        self.assertEqual(self.complete("vm-run --nothing"), [])

    def test_values(self):
        self.assertEqual(self.complete("vm-run --parameter_mode="), ["file", "preload"])
        self.assertEqual(self.complete("vm-run --allow-native=n"), ["no"])
        self.assertEqual(self.complete("vm-as x.vmasm --bytecode-version=1"), ["15", "16", "17"])
        self.assertEqual(self.complete("vm-run --timeout="), [])
        self.assertEqual(self.complete("hal-info re"), ["replay"])
        self.assertIn("devices", self.complete("hal-info "))

    @unittest.skipUnless(vmrun.starts_itself(), vmrun.NO_BINFMT)
    def test_devices(self):
        offered = self.complete("vm-run --device=")
        self.assertIn("local-sync://", offered)
        self.assertEqual(self.complete("vm-run --device=local-s"), ["local-sync://"])
        self.assertEqual(self.complete("vm-run --device=local-sync:"), ["//"])  # bash has split at the colon

    @unittest.skipUnless(vmrun.starts_itself(), vmrun.NO_BINFMT)
    def test_devices_of_a_given_driver(self):
        library = os.path.join(vmrun.BUILD, "tests", "drivers", "halyard-driver-sample.so")
        if not os.path.exists(library):
            self.skipTest("the sample drivers are not built")
        self.assertEqual(self.complete(f"vm-run --driver={library} --device=sample://s"), ["//slack"])

    @unittest.skipUnless(vmrun.starts_itself(), vmrun.NO_BINFMT)
    def test_functions(self):
        module = os.path.join(vmrun.SOURCE, "examples", "fib.vmasm")
        names = [line.split("(")[0] for line in vmrun.succeeds("vm-run", f"--module={module}", "--list_functions").stdout.splitlines()
                 if not line.startswith((" ", "__"))]
        self.assertIn("recursive", names)
        for line in (f"vm-run --module={module} --function=", f"vm-bench --module='{module}' --device=null --function=",
                     "vm-run --module=no.vmfb --module=fib.vmasm --function=", "vm-dump fib.vmasm --jit --function="):
            self.assertEqual(self.complete(line, os.path.join(vmrun.SOURCE, "examples")), names, line)
        self.assertEqual(self.complete(f"vm-run --module={module} --function=re"), ["recursive"])
        self.assertEqual(self.complete("vm-run --function="), [])
        self.assertEqual(self.complete(f"vm-run --module={__file__} --function="), [])
        # Code of a native module does not run because of a key.
        library = os.path.join(vmrun.BUILD, "tests", "bad_drivers", "halyard-driver-loops-in-constructor.so")
        self.assertEqual(self.complete(f"vm-run --module={library} --function="), [])

    def test_files(self):
        with tempfile.TemporaryDirectory() as folder:
            for name in ("model.vmfb", "model.vmasm", "weights.irpa"):
                with open(os.path.join(folder, name), "w", encoding="ascii"):
                    pass
            self.assertEqual(sorted(self.complete("vm-run --module=mo", folder)), ["model.vmasm", "model.vmfb"])
            self.assertEqual(self.complete("vm-run --parameters=model=w", folder), ["weights.irpa"])
            self.assertEqual(sorted(self.complete("vm-dump m", folder)), ["model.vmasm", "model.vmfb"])


class ZshCompletion(unittest.TestCase):
    def script(self, tool):
        return os.path.join(SHARE, "zsh", "site-functions", "_" + tool)

    def test_the_build_has_them(self):
        for tool in TOOLS:
            text = vmrun.read_text(self.script(tool), encoding="ascii")
            self.assertEqual(text, help_of(tool, "zsh"))
            self.assertTrue(text.startswith(f"#compdef {tool}\n"))
            specifications = re.findall(r"^  '\*?--(\w+)(=-)?\[", text, re.MULTILINE)
            self.assertEqual(specifications, [(name, "=-" if value else "") for name, _, value, _ in flags_of(tool)])

    @unittest.skipUnless(shutil.which("zsh"), "zsh is not installed")
    def test_zsh_can_read_them(self):
        for tool in TOOLS:
            done = subprocess.run(["zsh", "-n", self.script(tool)], capture_output=True, text=True, check=False)
            self.assertEqual((done.returncode, done.stderr), (0, ""), tool)
