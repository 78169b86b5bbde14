"""A driver author with only an installed Halyard: hal-cts, moved with its prefix, tests the installed drivers and one
that was built by hand from the installed template."""

import re
import shutil
import sys

import vmrun
from installed import BUILD, cache, run


def main(folder):
    vmrun.need_tool("hal-cts")
    first, prefix = folder / "first", folder / "moved"
    run("cmake", "--install", BUILD, "--prefix", first)
    first.rename(prefix)
    hal_cts = prefix / "bin" / "hal-cts"
    # Without remote, which has devices of a server only.
    drivers = sorted(file for file in (prefix / cache("CMAKE_INSTALL_LIBDIR") / "halyard" / "drivers").glob("*.so")
                     if file.name != "halyard-driver-remote.so")
    if not cache("HALYARD_SANITIZE"):
        author = folder / "author"
        author.mkdir()
        shutil.copytree(prefix / "share" / "halyard" / "examples" / "driver-null", author / "driver")
        drivers.append(author / "halyard-driver-null.so")
        run("cc", "-std=c11", "-shared", "-fPIC", "-fvisibility=hidden", f"-I{prefix / 'include'}",
            *sorted((author / "driver").glob("*.c")), "-o", drivers[-1])
    if len(drivers) < 2:
        sys.exit(f"FAILED: expected at least two drivers, found {drivers}")
    for driver in drivers:
        # Also by a name without a folder, as in the folder of the driver.
        output = run(hal_cts, f"--driver={driver.name}", "--skip_tag=slow", cwd=driver.parent)
        counts = re.search(r"(\d+) passed, 0 failed, \d+ skipped\n\Z", output)
        if not counts or int(counts.group(1)) < 50:
            sys.exit(f"FAILED: hal-cts of {driver} ends with {output[-200:]!r}; expected at least 50 passed, 0 failed")
