"""Which sources ./dev lint checks, and when it takes a clean one for known. A small project in a temporary folder."""
import importlib.util
import json
import os
import pathlib
import shutil
import subprocess
import unittest

import vmrun
from installed import SOURCE

spec = importlib.util.spec_from_file_location("lint", SOURCE / "cmake" / "lint.py")
lint = importlib.util.module_from_spec(spec)
spec.loader.exec_module(lint)

FILES = {
    "base/src/base/a.h": "#pragma once\nint a();\n",
    "base/src/base/b.h": '#pragma once\n#include "base/a.h"\nint b();\n',
    "base/src/base/lonely.h": "#pragma once\n",
    "base/src/base/a.cpp": '#include "base/a.h"\nint a() { return 1; }\n',
    "base/src/base/b.cpp": '#include "base/b.h"\nint b() { return a(); }\n',
    "base/tests/b_test.cpp": '#include "../src/base/b.h"\nint main() { return b(); }\n',
    ".clang-tidy": "Checks: '-*,bugprone-sizeof-expression,clang-diagnostic-shadow'\nWarningsAsErrors: '*'\n",
}


class Lint(vmrun.FolderCase):
    def setUp(self):
        super().setUp()
        self.folder = pathlib.Path(self.folder).resolve()
        for name, text in FILES.items():
            (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / name).write_text(text)
        self.build = self.folder / "build"
        self.build.mkdir()
        sources = [name for name in FILES if name.endswith(".cpp")]
        (self.build / "compile_commands.json").write_text(json.dumps([
            {"directory": str(self.build), "file": str(self.folder / name),
             "command": f"g++ -std=c++20 -Wshadow=local -I{self.folder}/base/src -o x.o -c {self.folder / name}"} for name in sources]))
        self.addCleanup(setattr, lint, "SOURCE", lint.SOURCE)
        lint.SOURCE = self.folder
        os.environ["HALYARD_LINT_CACHE"] = str(self.folder / "cache")
        self.addCleanup(os.environ.pop, "HALYARD_LINT_CACHE")
        self.commands = lint.compile_commands(self.build)

    def sources(self, *changed):
        return lint.sources_for(set(changed), [name for name in FILES if not name.startswith(".")], self.commands)

    def test_sources(self):
        self.assertEqual(self.sources("base/src/base/a.cpp"), ["base/src/base/a.cpp"])
        self.assertEqual(self.sources("base/src/base/a.h"), ["base/src/base/a.cpp"])  # the one that includes least besides
        self.assertEqual(self.sources("base/src/base/a.h", "base/src/base/b.cpp"), ["base/src/base/b.cpp"])
        self.assertEqual(len(self.sources("base/src/base/a.h", "base/src/base/b.h")), 1)  # one source has both
        self.assertEqual(self.sources("base/src/base/lonely.h"), [])
        self.assertEqual(self.sources("README.md"), [])

    @unittest.skipUnless(shutil.which("clang++-19") and shutil.which("clang-tidy-19"), "clang-tidy-19 is not installed")
    def test_cache(self):
        name = "base/src/base/b.cpp"
        header = self.folder / "base/src/base/a.h"
        check = lambda: lint.Checker(self.build, self.commands).check(name)  # noqa: E731
        self.assertEqual(check()[1], False)
        self.assertEqual(check()[1], True)
        header.write_text(FILES["base/src/base/a.h"] + "// a comment\n")
        self.assertEqual(check()[1], True)
        header.write_text(FILES["base/src/base/a.h"] + "// NOLINTNEXTLINE\n")
        self.assertEqual(check()[1], False)
        header.write_text(FILES["base/src/base/a.h"] + "int c();\n")
        self.assertEqual(check()[1], False)
        (self.folder / ".clang-tidy").write_text(FILES[".clang-tidy"] + "# other checks\n")
        self.assertEqual(check()[1], False)
        header.write_text(FILES["base/src/base/a.h"] + "inline int* p = nullptr;\ninline unsigned long n = sizeof(sizeof(p));\n")
        for _ in range(2):  # findings are found again
            source, was_known, _, findings = check()
            self.assertFalse(was_known)
            (self.folder / name).write_text(FILES[name] + "unsigned long m = sizeof(sizeof(int));\n")
        self.assertIn("bugprone-sizeof-expression", findings)
        # A local that shadows a member is an error in builds with clang, and none in those with g++.
        (self.folder / name).write_text("struct P { int n = 1; int f() { int n = 0; return n; } };\nint b() { return P().f(); }\n")
        self.assertIn("shadows a field", check()[3])
        (self.folder / name).write_text("#include <nothing_of_that_name.h>\n")
        self.assertIn("nothing_of_that_name.h", check()[3])

    def test_changes(self):
        def git(*arguments):
            subprocess.run(["git", "-C", self.folder, "-c", "user.name=n", "-c", "user.email=e@e", *arguments], check=True,
                           capture_output=True)

        git("init", "-q", "-b", "main")
        git("add", "base")
        git("commit", "-q", "-m", "first")
        git("checkout", "-q", "-b", "work")
        (self.folder / "base/src/base/a.cpp").write_text("int a() { return 2; }\n")
        git("commit", "-q", "-a", "-m", "second")
        (self.folder / "base/src/base/b.cpp").write_text("int b() { return 2; }\n")
        (self.folder / "base/src/base/new.cpp").write_text("int n;\n")
        changed = lint.changed_files("main")
        self.assertLessEqual({"base/src/base/a.cpp", "base/src/base/b.cpp", "base/src/base/new.cpp"}, changed)
        self.assertNotIn("base/src/base/a.h", changed)
