"""SECURITY.md names the tests that hold its claims: all of them exist, those of programs that are built are in the program, scripts
are tests of the build, every claim about hostile input has one, and the readers of README and docs find the page."""
import functools
import pathlib
import re
import subprocess

import vmrun
from installed import BUILD, SOURCE, cache

# The prefix of the tests of a folder in ctest, as its CMakeLists.txt gives it.
FOLDERS = {"base": "base/tests", "vm": "vm/tests", "jit": "jit/tests", "hal": "hal/tests", "modules": "modules/tests",
           "local": "drivers/local/tests", "serve": "tools/vm-serve/tests", "tools": "tools/common/tests", "device_server": "remote/server/tests",
           "remote_faults": "tests/remote_pair"}
PROGRAMS = {"remote_faults": "remote_fault"}  # prefixes that differ from the names of their programs
CLAIMS = ("Hostile", "Modules of unknown origin")  # sections whose rows have tests in the last column


def is_test(name):
    """None if it exists, else the problem."""
    if match := re.fullmatch(r"(\w+)\.(\w+)\.(\w+)", name):
        prefix, suite, test = match.groups()
        if prefix not in FOLDERS:
            return f"no folder has the prefix '{prefix}'"
        pattern = re.compile(rf"^(?:TEST|TEST_F|TEST_P|TYPED_TEST)\(\s*{suite},\s*{test}\)", re.MULTILINE)
        files = sorted((SOURCE / FOLDERS[prefix]).glob("*.cpp"))
        return None if any(pattern.search(file.read_text(encoding="utf-8")) for file in files) else f"it is not in {FOLDERS[prefix]}"
    path, _, function = name.partition("::")
    file = pathlib.Path(SOURCE, path)
    if not file.is_file():
        return "there is no such file"
    if function and not re.search(rf"^    def {function}\(", file.read_text(encoding="utf-8"), re.MULTILINE):
        return f"{path} has no such function"
    return None


@functools.lru_cache(maxsize=None)
def listed(program):
    """{"Suite.Name"} of the tests in a program, without the names of instances and parameters; None if it is not built."""
    if cache("CMAKE_CROSSCOMPILING_EMULATOR") or not program.exists():
        return None
    found, suite = set(), ""
    done = subprocess.run([program, "--gtest_list_tests"], capture_output=True, text=True, timeout=900)
    for line in done.stdout.splitlines():
        text = line.split("#")[0].rstrip()
        if not text.startswith(" "):
            suite = next((part for part in text.split("/") if part.endswith(".")), text.split("/")[0] + ".")
        else:
            found.add(suite + text.strip().split("/")[0])
    return found


def is_run(name):
    """None if the build runs it, or lacks the program; else the problem."""
    if re.fullmatch(r"\w+\.\w+\.\w+", name):
        prefix, test = name.split(".", 1)
        tests = listed(BUILD / "tests" / f"halyard_{PROGRAMS.get(prefix, prefix)}_tests")
        return None if tests is None or test in tests else f"halyard_{PROGRAMS.get(prefix, prefix)}_tests does not list it"
    path = name.partition("::")[0]
    registered = (BUILD / path).parent / "CTestTestfile.cmake"
    if not path.startswith("tests/") or not registered.exists() or cache("CMAKE_CROSSCOMPILING_EMULATOR"):
        return None
    return None if f'/{path}"' in registered.read_text() else "it is no test of the build"


def named(text):
    return re.findall(r"`((?:tests/test_\w+\.py(?:::\w+)?)|(?:fuzz/\w+\.cpp)|(?:[a-z_]+\.[A-Z]\w+\.\w+))`", text)


def rows(text):
    """The rows of the tables, as lists of cells, without heads."""
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in text.splitlines() if line.startswith("|")]
    heads = [number for number, row in enumerate(cells) if all(set(cell) <= {"-", "|"} for cell in row)]
    return [row for number, row in enumerate(cells) if number not in heads and number + 1 not in heads]


def main(checks):
    text = vmrun.read_text(SOURCE / "SECURITY.md")
    names = named(text)
    checks.check("it names tests", None if len(names) > 50 else f"it names {len(names)}")
    for name in names:
        checks.check(name, is_test(name) or is_run(name))
    built = [prefix for prefix in FOLDERS if listed(BUILD / "tests" / f"halyard_{PROGRAMS.get(prefix, prefix)}_tests")]
    checks.check("a missing test of a program would be found", None if all(is_run(f"{prefix}.Nothing.Nothing") for prefix in built) else "it is not")
    checks.check("a script that is no test would be found", None if is_run("tests/test_nothing.py") or not (BUILD / "tests/CTestTestfile.cmake").exists()
                 or cache("CMAKE_CROSSCOMPILING_EMULATOR") else "it is not")
    for section in CLAIMS:
        body = re.search(rf"^## {section}\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)[1]
        claims = rows(body)
        checks.check(f"{section} has claims", None if len(claims) > 3 else f"it has {len(claims)}")
        for claim in claims:
            checks.check(f"{section}: {claim[0]}", None if named(claim[-1]) else "no test holds it")
            rest = re.sub(r"`[^`]*`", "", claim[-1]).replace(",", "").strip()
            checks.check(f"{section}: {claim[0]}: only tests", None if not rest and len(named(claim[-1])) == claim[-1].count("`") / 2
                         else "the last column has something that is no test")
    for missing in ("vm.VerifyBody.Nothing", "none.VerifyBody.EveryBranchIsChecked", "tests/test_nothing.py",
                    "tests/test_limits.py::test_nothing"):
        checks.check(f"{missing} would be found", None if is_test(missing) else "it counts as a test")
    for page, link in (("README.md", "SECURITY.md"), ("docs/README.md", "../SECURITY.md"), ("docs/limits.md", "../SECURITY.md")):
        checks.check(f"{page} links to it", None if f"]({link})" in vmrun.read_text(SOURCE / page) else "it does not")
