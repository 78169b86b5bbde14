"""A driver author with nothing but an installed Halyard: the template driver, copied away from this tree, builds with
CMake and with one line of cc, exports one symbol, and an installed vm-run finds and loads it."""

import os
import pathlib
import platform
import shutil
import sys
import tempfile

from installed import BUILD, SOURCE, exported, run

LIBRARY = "halyard-driver-null.so"


def expect(condition: bool, message: str) -> None:
    if not condition:
        sys.exit(f"FAILED: {message}")


def build_with_cmake(driver: pathlib.Path, prefix: pathlib.Path) -> pathlib.Path:
    # Only the Halyard of the prefix may be found, not one of the system or one that CMake remembers.
    run("cmake", "-S", driver, "-B", driver / "build", f"-DCMAKE_PREFIX_PATH={prefix}",
        "-DCMAKE_FIND_USE_PACKAGE_REGISTRY=OFF", "-DCMAKE_BUILD_TYPE=Release")
    found = [line for line in (driver / "build" / "CMakeCache.txt").read_text().splitlines()
             if line.startswith("Halyard_DIR:")]
    expect(len(found) == 1 and found[0].split("=", 1)[1].startswith(str(prefix)),
           f"expected the Halyard of {prefix}, found {found}")
    run("cmake", "--build", driver / "build")
    libraries = list((driver / "build").rglob(LIBRARY))
    expect(len(libraries) == 1, f"expected one {LIBRARY} below {driver / 'build'}, found {libraries}")
    return libraries[0]


def build_by_hand(driver: pathlib.Path, prefix: pathlib.Path, folder: pathlib.Path, *flags: str) -> pathlib.Path:
    folder.mkdir()
    run("cc", "-shared", "-fPIC", *flags, f"-I{prefix / 'include'}", *sorted(driver.glob("*.c")), "-o", folder / LIBRARY)
    return folder / LIBRARY


def check_exports(library: pathlib.Path) -> None:
    names = exported(library)
    expect(names == ["halyard_driver_negotiate"], f"{library} exports {names}; expected halyard_driver_negotiate alone")


def listed(vm_run: pathlib.Path, drivers: pathlib.Path | None) -> list[str]:
    """The drivers that vm-run lists: lines `%16s: description` after the header."""
    environment = {key: value for key, value in os.environ.items() if key != "HALYARD_DRIVER_PATH"}
    environment["HOME"] = str(vm_run.parent)  # no drivers of whoever runs the test
    if drivers:
        environment["HALYARD_DRIVER_PATH"] = str(drivers)
    lines = run(vm_run, "--list_drivers", env=environment, cwd=vm_run.parent).splitlines()
    return [line.split(":", 1)[0].strip() for line in lines if ":" in line and not line.startswith("#")]


def devices(vm_run: pathlib.Path, drivers: pathlib.Path) -> list[str]:
    environment = {**os.environ, "HALYARD_DRIVER_PATH": str(drivers)}
    return run(vm_run, "--list_devices=null", env=environment, cwd=vm_run.parent).split()


def main() -> int:
    if not (SOURCE / "drivers" / "null" / "CMakeLists.txt").exists():
        sys.exit("FAILED: drivers/null is gone; it is what driver authors copy")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name).resolve()
        prefix, driver = folder / "prefix", folder / "author" / "driver"
        run("cmake", "--install", BUILD, "--prefix", prefix)
        shutil.copytree(SOURCE / "drivers" / "null", driver)
        sources = sum(len(source.read_text().splitlines()) for source in driver.glob("*.[ch]"))
        expect(sources <= 600, f"the template has {sources} lines of C; expected at most 600, so that it is read")

        built = [build_with_cmake(driver, prefix), build_by_hand(driver, prefix, folder / "by-hand")]
        if platform.machine() == "x86_64":  # toolchains that harden by default add a note of their own, aligned to 8 bytes
            built.append(build_by_hand(driver, prefix, folder / "hardened", "-fcf-protection", "-Wl,-z,ibt,-z,shstk"))
        for library in built:
            check_exports(library)

        vm_run = prefix / "bin" / "vm-run"
        if not vm_run.exists():
            print("the driver builds; vm-run is not built, so nothing could load it")
            return 77
        # The template is also one of the installed drivers. Without that one, only what was built here can be found.
        for installed in prefix.rglob(LIBRARY):
            installed.unlink()
        expect("null" not in listed(vm_run, None), "vm-run lists null although no such driver is installed")
        for library in built:
            names = listed(vm_run, library.parent)
            expect(names.count("null") == 1, f"HALYARD_DRIVER_PATH={library.parent}: expected null once, found {names}")
            found = devices(vm_run, library.parent)
            expect(found == ["null://"], f"{library}: expected the device null://, found {found}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
