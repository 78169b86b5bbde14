"""Flags of tools are typed constants: a misspelt flag does not compile, and neither does a value of the wrong type.
Compiles lines with the flags that vm-run is built with."""
import json
import os
import pathlib
import re
import shlex
import subprocess
import unittest

import vmrun

HEAD = '#include "run_flags.h"\nnamespace halyard::tools {\nvoid read(const Flags& flags) {\n  '
TAIL = '\n}\n}\n'


def compiler():
    """The command that compiles vm-run's main.cpp, without its file and output; None if it is not in this build."""
    path = os.path.join(vmrun.BUILD, "compile_commands.json")
    if not os.path.exists(path):
        return None
    with open(path, encoding="utf-8") as file:
        entries = [entry for entry in json.load(file) if entry["file"].endswith("tools/vm-run/main.cpp")]
    if not entries:
        return None
    words = shlex.split(entries[0]["command"])
    words = words[1:] if os.path.basename(words[0]) == "ccache" else words
    return [*words[: words.index("-o")], "-I" + os.path.dirname(entries[0]["file"]), "-fsyntax-only", "-x", "c++", "-"]


class Flags(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.command = compiler()
        if not cls.command:
            raise unittest.SkipTest("vm-run is not in this build")

    def compile(self, line):
        return subprocess.run(self.command, input=HEAD + line + TAIL, text=True, capture_output=True, timeout=vmrun.TIMEOUT * 4)

    def test_values_have_the_type_of_the_declaration(self):
        done = self.compile("""
            [[maybe_unused]] const bool toggle = flags[flag::json_results];
            [[maybe_unused]] const std::string text = flags[flag::function];
            [[maybe_unused]] const std::optional<std::string> optional = flags[flag::list_devices];
            [[maybe_unused]] const std::vector<std::string> list = flags[flag::module];
            [[maybe_unused]] const Result<uint64_t> number = flags[flag::output_max_element_count];
            [[maybe_unused]] const Result<double> threshold = flags[flag::expected_rtol];
            [[maybe_unused]] const Result<std::optional<uint64_t>> size = flags[flag::max_memory];
            [[maybe_unused]] const Result<std::optional<std::chrono::nanoseconds>> time = flags[flag::timeout];
            [[maybe_unused]] const Verify choice = flags[flag::verify];
            [[maybe_unused]] const bool given = flags.has(flag::trace);""")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_other_reads_do_not_compile(self):
        reads = (("(void)flags[flag::jsom];", "jsom"), ('(void)flags["json"];', "no match"),
                 ('(void)flags.has("json");', "Flag"), ("(void)(flags[flag::verify] == ModuleMode::mmap);", "no match"),
                 ("bool value = flags[flag::function];", "cannot convert"),
                 ("std::string value = flags[flag::json_results];", "conversion"),
                 ("uint64_t value = flags[flag::output_max_element_count];", "cannot convert"),
                 ("std::string value = flags[flag::module];", "conversion"))
        done = self.compile("\n".join(f"{{ {line} }}" for line, _ in reads))  # each has an error of its own
        self.assertNotEqual(done.returncode, 0)
        for number, (line, message) in enumerate(reads, HEAD.count("\n") + 1):
            with self.subTest(line):
                self.assertRegex(done.stderr, rf"(?m)^<stdin>:{number}:\d+: error: .*{message}")

    def test_every_declared_flag_is_in_the_help_of_a_tool(self):
        declared = set()
        for file in pathlib.Path(vmrun.SOURCE, "tools").glob("*/*flags.h"):
            declared |= set(re.findall(r'^inline constexpr [\w:<>]+ \w+ = \{\s*"(\w+)"', file.read_text(encoding="utf-8"), re.MULTILINE))
        self.assertGreater(len(declared), 60)
        shown = "".join(vmrun.run(tool, "--help").stdout for tool in sorted(os.listdir(vmrun.BIN)))
        # Those of other runtimes are accepted only; tests/test_help.py has them.
        ignored = set(re.findall(r'^inline constexpr Ignored \w+ = \{\s*"(\w+)"', "".join(
            file.read_text(encoding="utf-8") for file in pathlib.Path(vmrun.SOURCE, "tools").glob("*/*flags.h")), re.MULTILINE))
        self.assertGreater(len(ignored), 10)
        self.assertEqual({name for name in ignored if re.search(rf"^ +--{name}\b", shown, re.MULTILINE)}, set())
        declared -= ignored
        self.assertEqual({name for name in declared if not re.search(rf"^ +--{name}\b", shown, re.MULTILINE)}, set())
