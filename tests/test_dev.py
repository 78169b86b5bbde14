"""`./dev`: its usage has every verb, a wrong one is refused, and where there is no terminal, logs show progress and every failure."""
import re
import subprocess

from installed import SOURCE

# What ninja and ctest print where there is no terminal.
NINJA = """[1/3] Building CXX object one.o
[2/3] Building CXX object two.o
FAILED: two.o
two.cpp:1:1: error: expected a declaration
"""
CTEST = """  1/30 Test  #7: first ...............   Passed    0.10 sec
 2/30 Test #12: second ..............***Failed    0.20 sec
    an output with 3/4 in it
30/30 Test  #9: third ...............   Passed    0.10 sec
"""


def dev(*arguments):
    return subprocess.run([SOURCE / "dev", *arguments], capture_output=True, text=True, timeout=900)


def progress(seconds, pattern, what, text):
    """What the function `progress` of the script makes of a text, with so many seconds between its lines."""
    source = (SOURCE / "dev").read_text()
    function = re.search(r"^progress\(\) \{\n.*?^\}\n", source, re.MULTILINE | re.DOTALL)[0]
    script = f"set -euo pipefail\nseconds_between_lines={seconds}\n{function}progress '{pattern}' {what}"
    return subprocess.run(["bash", "-c", script], input=text, capture_output=True, text=True, check=True, timeout=900).stdout


def check_progress(checks):
    source = (SOURCE / "dev").read_text()
    patterns = re.findall(r"progress '([^']+)'", source)
    checks.check("both uses", None if len(patterns) == 2 else f"they are {patterns}")
    of_ninja, of_ctest = patterns
    often = progress(0, of_ninja, "steps", NINJA)
    expected = ["1 of 3 steps", "2 of 3 steps", "FAILED: two.o", "two.cpp:1:1: error: expected a declaration"]
    checks.check("each step", None if often.splitlines() == expected else often)
    seldom = progress(10000, of_ninja, "steps", NINJA)
    checks.check("only what goes wrong", None if seldom.splitlines() == expected[2:] else seldom)
    often = progress(0, of_ctest, "tests", CTEST)
    expected = ["1 of 30 tests", *CTEST.splitlines()[1:3], "30 of 30 tests"]
    checks.check("each test", None if often.splitlines() == expected else often)


def main(checks):
    usage = dev().stdout
    source = (SOURCE / "dev").read_text()
    verbs = set(re.findall(r"[a-z]+", " ".join(re.findall(r"^  ([a-z| ]+)\)", source[source.rindex('case "$verb" in'):], re.MULTILINE)))) - {"help"}
    checks.check("the verbs", None if len(verbs) > 10 else f"they are {verbs}")
    for verb in verbs:
        checks.check(f"usage of {verb}", None if re.search(rf"^  {verb}\b", usage, re.MULTILINE) else "it has none")
    wrong = dev("biuld")
    checks.check("a wrong verb", None if wrong.returncode != 0 and "no verb 'biuld'" in wrong.stderr else "it is not refused", wrong)
    wrong = dev("build", "relaese")
    checks.check("a wrong preset", None if wrong.returncode != 0 and "'relaese'" in wrong.stderr else "it is not refused", wrong)
    check_progress(checks)
