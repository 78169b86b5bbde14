"""Processors that Halyard is not built for are refused when it is configured, with the reason."""
import subprocess

import vmrun
from installed import SOURCE, cache


def main(checks, folder):
    if cache("CMAKE_TOOLCHAIN_FILE") or subprocess.run(["uname", "-m"], text=True, capture_output=True).stdout.strip() != "x86_64":
        vmrun.skip("compilers for other processors have no -m32")
    # Nothing is linked, so that no library of that target is needed.
    done = subprocess.run(["cmake", "-S", SOURCE, "-B", folder / "build", "-G", "Ninja", "-DCMAKE_C_FLAGS=-m32",
                           "-DCMAKE_CXX_FLAGS=-m32", "-DCMAKE_TRY_COMPILE_TARGET_TYPE=STATIC_LIBRARY",
                           f"-DCMAKE_C_COMPILER={cache('CMAKE_C_COMPILER')}",
                           f"-DCMAKE_CXX_COMPILER={cache('CMAKE_CXX_COMPILER')}"], text=True, capture_output=True)
    said = " ".join(done.stderr.split())
    expected = ("The target has 32-bit addresses; expected 64 bits", "docs/porting.md")
    wrong = "it was configured" if done.returncode == 0 else next((f"no '{part}'" for part in expected if part not in said), None)
    checks.check("32 bits", wrong, done)
