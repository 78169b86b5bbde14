"""What the libraries export: libhalyard.so the functions halyard_*, a driver halyard_driver_negotiate, nothing else."""

import pathlib
import re

import vmrun
from installed import BUILD, exported, run

NEGOTIATE = "halyard_driver_negotiate"


def needed(library: pathlib.Path) -> set[str]:
    text = run("readelf", "-d", library)
    return set(re.findall(r"\(NEEDED\).*\[(.*)\]", text))


# Functions that register destructors of static objects for exit, when threads of a library may still use those
# objects.
AT_EXIT = {"__cxa_atexit", "atexit", "__cxa_thread_atexit_impl", "__cxa_thread_atexit"}
# The system's libraries that check shaders have some; no thread of ours uses them.
OTHERS_AT_EXIT = {"halyard-driver-vulkan.so"}


def undefined(library: pathlib.Path) -> set[str]:
    lines = run("nm", "--dynamic", "--undefined-only", "--format=posix", library).splitlines()
    return {line.split()[0].split("@")[0] for line in lines}


def main():
    failures = []
    runtime = BUILD / "lib" / "libhalyard.so"
    drivers = sorted((BUILD / "lib" / "halyard" / "drivers").glob("*.so"))
    if not runtime.exists() and not drivers:
        vmrun.skip("neither libhalyard.so nor a driver is built")
    if runtime.exists():
        names = exported(runtime)
        failures += [f"libhalyard.so exports {name}" for name in sorted(names) if not name.startswith("halyard_")]
        if not names:
            failures.append("libhalyard.so exports nothing")
    for driver in drivers:
        names = exported(driver)
        if names != [NEGOTIATE]:
            failures.append(f"{driver.name} exports {sorted(names)}; expected {NEGOTIATE} alone")
    for library in [runtime] * runtime.exists() + drivers:
        foreign = {name for name in needed(library) if name.startswith(("libfmt", "libflatbuffers", "libhalyard", "libhwy"))}
        failures += [f"{library.name} needs {name} at run time" for name in sorted(foreign)]
    for library in [runtime] * runtime.exists() + drivers:
        names = undefined(library)
        is_instrumented = any(re.match(r"__(asan|tsan|ubsan|msan|sanitizer)_", name) for name in names)
        if library.name not in OTHERS_AT_EXIT and not is_instrumented:
            failures += [f"{library.name} has static objects with destructors ({name})" for name in sorted(names & AT_EXIT)]
    print(f"libhalyard.so: {runtime.exists()}, drivers: {[driver.name for driver in drivers]}")
    return failures
