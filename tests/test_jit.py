"""Runs the shared fixtures with kernels and functions of modules compiled (--jit=always); skipped where this build has no
compiler. The same results are wanted as of interpreted ones."""
import os
import sys
import tempfile

import vmrun
from test_fixtures import NOT_FOUND_HERE, OTHERWISE_RULED, run

PROGRAMS = [("compiled", ["--only", ".vmvx"]), ("constants", ["--only", ".vmvx"]), ("vmasm", []), ("../bench/kernels", ["--only", ".vmvx"])]
CHECKS = ["vmvx"]
# vm-run that compiles everything: kernels, and functions of modules.
RUNNER = """#!{python}
import os, sys
os.execv({program!r}, [{program!r}, "--jit=always", "--jit_cache={cache}", *sys.argv[1:]])
"""


def main():
    library = os.path.join(os.environ["HALYARD_BUILD"], "lib", "halyard", "halyard-jit-llvm.so")
    if not os.path.exists(library):
        vmrun.skip("this build has no compiler: llvm-19-dev was not there, or a sanitizer is in the way")
    fixtures = vmrun.fixtures()
    if not fixtures:
        vmrun.skip("the shared fixtures are not here; HALYARD_FIXTURES names their folder")
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        runner = os.path.join(folder, "vm-run")
        with open(runner, "w", encoding="utf-8") as file:
            file.write(RUNNER.format(python=sys.executable, program=os.path.join(vmrun.BIN, "vm-run"),
                                     cache=os.path.join(folder, "cache")))
        os.chmod(runner, 0o755)
        for programs, only in PROGRAMS:
            passed, wrong = run(fixtures, "run.py", os.path.join(fixtures, programs), "--skip-device", "vulkan", *only, runner=runner)
            failed += bool([line for line in wrong if not any(name in line.split(":")[0] for name in OTHERWISE_RULED)])
            failed += passed == 0
        for checks in CHECKS:
            passed, wrong = run(fixtures, "exec/check.py", os.path.join(fixtures, "exec", checks), runner=runner)
            failed += bool([line for line in wrong if not NOT_FOUND_HERE.match(line)]) or passed == 0
    return failed


if __name__ == "__main__":
    sys.exit(main())
