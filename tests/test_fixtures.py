"""Runs the shared fixtures, with the outputs of the reference runtime: all programs and checks that need no Vulkan device
(test_vulkan.py runs those)."""
import os
import re
import subprocess
import sys

import installed
import vmrun

# Folders of programs, with the flags that select the programs for other processors than x86-64.
PROGRAMS = [("compiled", ["--only", ".vmvx"]), ("constants", ["--only", ".vmvx"]), ("vmasm", []), ("vmasm/legacy", []),
            ("inline", ["--only", ".inline-static."])]
PROGRAMS_FOR_ARM = [("compiled-arm64", [])]
CHECKS = ["vmvx", "params", "cli"]
CHECKS_FOR_X86_64 = ["cpu"]
# Ruling 11: a fence failed with code 0 has failed, with UNKNOWN; these expect no effect.
# Channels work here; these expect the reference runtime's refusal on CPUs. An import with another convention than its
# function's is INCOMPATIBLE; this expects INTERNAL.
OTHERWISE_RULED = (".fail_ok_code.", "channels.create", "channels.hal5.create", "channels.hal6.create", "import_signature.main")
# A missing input is NOT_FOUND; these expect UNKNOWN, like the reference runtime.
# Ruling 32: numbers are read whole, truth values and complex numbers as words and sums, arrays in either order, and
# tolerances are for scalars, too.
READ_WHOLE = re.compile(r"FAILED cli/(ref\(2xi1=(1,0|true,false)\)|ref\(1xcf128=0\)|i32\(1xi32=5\)|ref\(@fortran\.npy\)"
                        r"|f32\(1\) --expected_output=1\.00001): ")
# Every tool has --version; the reference runtime lacks it.
HAS_VERSION = "FAILED cli/version flag: "
LISTINGS = re.compile(r"FAILED cli/(list|dump) (drivers|devices)")
NOT_FOUND_HERE = re.compile(r"FAILED cli/ref\(.*vm-run: NOT_FOUND; --input=.*cannot open .* lacks 'UNKNOWN' *$")


def run(fixtures, script, *arguments, runner=os.path.join(vmrun.BIN, "vm-run")):
    """How many passed, and the lines that name what failed."""
    done = subprocess.run([sys.executable, os.path.join(fixtures, script), runner, *arguments],
                          capture_output=True, text=True)
    print(done.stdout[-4000:], done.stderr[-2000:])
    lines = done.stdout.splitlines()
    passed = int(lines[-1].split()[0]) if lines and lines[-1].split()[0].isdigit() else 0
    return passed, [line for line in lines if line.startswith("FAILED ")]


def run_all(fixtures, folders, **how):
    """How many of the folders with programs, and of those with checks, have a failure that no ruling explains."""
    is_x86_64 = vmrun.processor() == "x86_64"
    failed = 0
    for folder, elsewhere in folders:
        passed, wrong = run(fixtures, "run.py", os.path.join(fixtures, folder), "--skip-device", "vulkan",
                            *([] if is_x86_64 else elsewhere), **how)
        wrong = [line for line in wrong if not any(name in line.split(":")[0] for name in OTHERWISE_RULED)]
        failed += bool(wrong) or passed == 0
    for folder in CHECKS + (CHECKS_FOR_X86_64 if is_x86_64 else []):
        passed, wrong = run(fixtures, "exec/check.py", os.path.join(fixtures, "exec", folder), **how)
        if installed.cache("HALYARD_SANITIZE"):  # a sanitized host has the symbols whose absence these expect
            wrong = [line for line in wrong if not line.startswith("FAILED cpu/asan.")]
        wrong = [line for line in wrong if not NOT_FOUND_HERE.match(line) and not READ_WHOLE.match(line)
                 and not line.startswith(HAS_VERSION)]
        if not vmrun.starts_itself():
            wrong = [line for line in wrong if not LISTINGS.match(line)]
        failed += bool(wrong) or passed == 0
    return failed


def main():
    fixtures = vmrun.needed_fixtures()
    return run_all(fixtures, PROGRAMS + (PROGRAMS_FOR_ARM if vmrun.processor() == "aarch64" else []))
