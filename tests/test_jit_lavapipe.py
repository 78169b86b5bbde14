"""One process in which host code is compiled by LLVM 19 while a Vulkan driver compiles shaders, in Mesa's case with an LLVM
of its own: whichever comes first, both give right results. Skipped without a compiler, without Vulkan, and without the
shared fixtures."""
import json
import os
import re

import vmrun

PROGRAMS = "compiled"


def main(checks, folder):
    vmrun.need_compiler()
    fixtures = vmrun.needed_fixtures()
    if not vmrun.vulkan_device():
        vmrun.skip("there is no Vulkan device")
    programs = os.path.join(fixtures, PROGRAMS)
    with open(os.path.join(programs, "cases.json"), encoding="utf-8") as file:
        cases = [case for case in json.load(file) if "vulkan" in case["devices"] and not case["flags"]
                 and not any("..." in text or text.startswith("result[") for text in case["expected"])]  # whole tensors only
    for case in cases[:6]:
        # Eagerly: functions are compiled before the device is opened; lazily: when its shaders have been.
        for verify in ("eager", "lazy"):
            expected = [f"--expected_output={text}" for text in case["expected"]]
            done = vmrun.run("vm-run", f"--module={case['module']}", f"--function={case['function']}", f"--verify={verify}",
                             *(f"--device={device}" for device in case["devices"]),
                             *(f"--input={text}" for text in case["inputs"]), *case["flags"], *expected, "--jit=always",
                             f"--jit_cache={folder}/{verify}", "--print_stats", cwd=programs)
            found = re.search(r"^  functions +(\d+)$", done.stderr, re.MULTILINE)
            wrong = None
            if done.returncode != 0:
                wrong = f"exit status {done.returncode}"
            elif not found or int(found.group(1)) == 0:
                wrong = "nothing was compiled"
            checks.check(f"{case['name']}, {verify}", wrong, done)
