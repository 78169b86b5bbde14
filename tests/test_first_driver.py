"""The promise to driver authors: a driver built from the first header of driver ABI version 1, kept as a binary, is
loaded, listed, opened and used by the Halyard of today."""
import hashlib
import json
import os
import pathlib
import platform
import shutil

import installed
import vmrun

FOLDER = pathlib.Path(vmrun.SOURCE).resolve() / "tests" / "abi" / "first"
DRIVER = FOLDER / "halyard-driver-null.so"
ARGUMENTS = [f"--module={FOLDER / 'moves_bytes.vmasm'}", "--function=shuffle", "--device=null", "--input=8xf32=5,6,7,8,9,10,11,12"]
EXPECTED = "EXEC @shuffle\nresult[0]: hal.buffer_view\n8xf32=1 1 40 42 5 6 7 8\n"


def main(checks, folder):
    if platform.machine() != "x86_64":
        vmrun.skip("the driver that is kept is for x86_64")
    if installed.cache("HALYARD_SANITIZE"):
        vmrun.skip("the driver that is kept is not instrumented; the optimized build tests it")
    digest = hashlib.sha256(DRIVER.read_bytes()).hexdigest()
    documented = digest in (FOLDER.parent / "README.md").read_text()
    checks.check("it is what it was", None if documented else f"its sha256 {digest} is not the one in tests/abi/README.md")
    environment = {**os.environ, "HOME": folder, "HALYARD_DRIVER_PATH": ""}
    done = vmrun.run("vm-run", f"--driver={DRIVER}", *ARGUMENTS, env=environment)
    checks.check("a program on it", None if done.stdout == EXPECTED and done.returncode == 0 else f"expected {EXPECTED!r}", done)
    done = vmrun.run("vm-run", *ARGUMENTS, env=environment)
    checks.check("the same on the driver of today", None if done.stdout == EXPECTED else f"expected {EXPECTED!r}", done)

    # In the folder of drivers, beside the drivers of this build, as users have them.
    drivers = folder / ".local/lib/halyard/drivers"
    drivers.mkdir(parents=True)
    shutil.copy(DRIVER, drivers)
    done = vmrun.run("hal-info", "devices", "null", "--json", env=environment)
    devices = json.loads(done.stdout or '{"devices": []}')["devices"]
    used = [device["library"] for device in devices if not device["error"]]
    checks.check("it is opened", None if used == [str(drivers.resolve() / DRIVER.name)] else f"opened {used}", done)
    done = vmrun.run("hal-info", "--explain", env=environment)
    checks.check("it is taken", None if f"taken     {drivers / DRIVER.name}  null  (version 1.0, ABI 1)\n" in done.stdout
                 else "--explain does not say so", done)
