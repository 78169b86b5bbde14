"""Runs the shared fixture programs that the devices of this build can run, with the outputs of the reference runtime."""
import json
import os
import platform
import subprocess
import sys

import installed
import vmrun

# Folders of programs, and which of their cases are promised so far.
SUITES = [("compiled", ["--only", ".vmvx."])]
# Programs for x86-64 processors, and folders of checks of such.
X86_64_SUITES = [("compiled", ["--only", ".llvm-cpu."])]
X86_64_CHECKS = ["cpu"]
SKIPPED_DEVICES = ["vulkan"]


def main():
    fixtures = vmrun.fixtures()
    if not fixtures:
        vmrun.skip("the shared fixtures are not here; HALYARD_FIXTURES names their folder")
    failed = 0
    is_x86_64 = platform.machine() == "x86_64"
    for folder, selection in SUITES + (X86_64_SUITES if is_x86_64 else []):
        command = [sys.executable, os.path.join(fixtures, "run.py"), os.path.join(vmrun.BIN, "vm-run"),
                   os.path.join(fixtures, folder), *selection]
        for device in SKIPPED_DEVICES:
            command += ["--skip-device", device]
        done = subprocess.run(command, capture_output=True, text=True)
        print(done.stdout[-4000:], done.stderr[-2000:])
        cases = [case for case in json.load(open(os.path.join(fixtures, folder, "cases.json")))
                 if selection[1] in case["name"]]
        ran = int(done.stdout.splitlines()[-1].split()[0]) if done.stdout else 0
        if done.returncode != 0 or not cases or ran == 0:
            failed += 1
    for folder in X86_64_CHECKS if is_x86_64 else []:
        done = subprocess.run([sys.executable, os.path.join(fixtures, "exec", "check.py"),
                               os.path.join(vmrun.BIN, "vm-run"), os.path.join(fixtures, "exec", folder)],
                              capture_output=True, text=True)
        print(done.stdout[-4000:], done.stderr[-2000:])
        wrong = [line for line in done.stdout.splitlines() if line.startswith("FAILED ")]
        if installed.cache("HALYARD_SANITIZE"):  # which has what this one shall find missing
            wrong = [line for line in wrong if not line.startswith("FAILED cpu/asan.")]
        if wrong or int(done.stdout.splitlines()[-1].split()[0]) == 0:
            failed += 1
    return failed


if __name__ == "__main__":
    sys.exit(main())
