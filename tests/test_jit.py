"""Runs the shared fixtures and the conformance suite with kernels and functions of modules compiled (--jit=always); skipped
where this build has no compiler. The same results are wanted as of interpreted ones."""
import json
import os
import shlex

import vmrun
from test_fixtures import PROGRAMS as FIXTURES
from test_fixtures import run_all

# What a processor without x86-64's instructions can run of each folder.
PROGRAMS = [*FIXTURES, ("../bench/kernels", ["--only", ".vmvx"])]
# vm-run that compiles everything: kernels, and functions of modules.
RUNNER = """#!/bin/sh
exec {program} --jit=always --jit_cache={cache} "$@"
"""


def main(folder):
    vmrun.need_compiler()
    fixtures = vmrun.needed_fixtures()
    is_x86_64 = vmrun.processor() == "x86_64"
    failed = 0
    runner = os.path.join(folder, "vm-run")
    with open(runner, "w", encoding="utf-8") as file:
        file.write(RUNNER.format(program=shlex.quote(os.path.join(vmrun.BIN, "vm-run")),
                                 cache=shlex.quote(os.path.join(folder, "cache"))))
    os.chmod(runner, 0o755)
    failed += run_all(fixtures, PROGRAMS, runner=runner)
    failed += test_programs(os.path.join(fixtures, "check"), is_x86_64)
    return failed + conformance()


def test_programs(folder, is_x86_64):
    """vm-check with everything compiled: tests.json says which tests pass."""
    failed = ran = 0
    listed = json.loads(vmrun.read_text(os.path.join(folder, "tests.json")))
    for entry in listed:
        for device in ("local-sync", "local-task"):
            if device not in entry["devices"] or (".llvm-cpu" in entry["module"] and not is_x86_64):
                continue
            done = vmrun.run("vm-check", os.path.join(folder, entry["module"]), f"--device={device}", "--jit=always", "--jit_cache=",
                             "--json")
            tests = json.loads(done.stdout)["modules"][0]["tests"] if done.stdout else []
            ran += 1
            if {test["name"]: test["result"][:4] for test in tests} != entry["tests"]:
                print(f"FAILED {entry['module']} on {device}: {done.stdout} {done.stderr}")
                failed += 1
    return failed + (ran == 0)


def conformance():
    """The conformance suite on devices that compile the kernels of its cases."""
    driver = os.path.join(os.environ["HALYARD_BUILD"], "lib", "halyard", "drivers", "halyard-driver-local.so")
    failed = 0
    for device in ("local-sync", "local-task"):
        done = vmrun.run("hal-cts", f"--driver={driver}", f"--device={device}://?jit=always", timeout=600)
        if done.returncode != 0:
            print(done.stdout[-4000:], done.stderr[-2000:])
            failed += 1
    return failed
