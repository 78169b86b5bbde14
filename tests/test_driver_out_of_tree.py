"""A driver author with only an installed Halyard: each template driver, copied away from this tree, builds with CMake
and with one line of a compiler, exports one symbol, and an installed vm-run finds and loads it."""

import os
import pathlib
import platform
import typing
import shutil
import sys

import vmrun
from installed import BUILD, SOURCE, exported, run


class Template(typing.NamedTuple):
    name: str
    compiler: tuple[str, ...]
    most_lines: int  # of the example: a longer one is not read

    @property
    def library(self) -> str:
        return f"halyard-driver-{self.name}.so"


TEMPLATES = [Template("null", ("cc",), 610), Template("template", ("c++", "-std=c++20"), 200)]


def expect(condition: bool, message: str) -> None:
    if not condition:
        sys.exit(f"FAILED: {message}")


def build_with_cmake(template: Template, driver: pathlib.Path, prefix: pathlib.Path) -> pathlib.Path:
    # Only the Halyard of the prefix may be found, not one of the system or one that CMake remembers.
    run("cmake", "-S", driver, "-B", driver / "build", f"-DCMAKE_PREFIX_PATH={prefix}",
        "-DCMAKE_FIND_USE_PACKAGE_REGISTRY=OFF", "-DCMAKE_BUILD_TYPE=Release")
    found = [line for line in (driver / "build" / "CMakeCache.txt").read_text().splitlines()
             if line.startswith("Halyard_DIR:")]
    expect(len(found) == 1 and found[0].split("=", 1)[1].startswith(str(prefix)),
           f"expected the Halyard of {prefix}, found {found}")
    run("cmake", "--build", driver / "build")
    libraries = list((driver / "build").rglob(template.library))
    expect(len(libraries) == 1, f"expected one {template.library} below {driver / 'build'}, found {libraries}")
    return libraries[0]


def build_by_hand(template: Template, driver: pathlib.Path, prefix: pathlib.Path, folder: pathlib.Path,
                  *flags: str) -> pathlib.Path:
    folder.mkdir()
    # The map hides symbols of the C++ library.
    maps = [f"-Wl,--version-script={file}" for file in prefix.rglob("halyard-driver.map")]
    expect(len(maps) == 1, f"expected one halyard-driver.map below {prefix}, found {maps}")
    run(*template.compiler, "-shared", "-fPIC", *(maps if template.compiler[0] == "c++" else []), *flags,
        f"-I{prefix / 'include'}", *sorted([*driver.glob("*.c"), *driver.glob("*.cpp")]), "-o", folder / template.library)
    return folder / template.library


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


def devices(vm_run: pathlib.Path, drivers: pathlib.Path, name: str) -> list[str]:
    environment = {**os.environ, "HALYARD_DRIVER_PATH": str(drivers)}
    return run(vm_run, f"--list_devices={name}", env=environment, cwd=vm_run.parent).split()


def check(template: Template, prefix: pathlib.Path, folder: pathlib.Path) -> bool:
    """False where vm-run is not built, so that nothing could load the driver."""
    source, driver = SOURCE / "drivers" / template.name, folder / "author" / "driver"
    expect((source / "CMakeLists.txt").exists(), f"drivers/{template.name} is gone; it is what driver authors copy")
    shutil.copytree(source, driver)
    lines = sum(len(file.read_text().splitlines()) for file in [*driver.glob("*.c"), *driver.glob("*.cpp")])
    expect(lines <= template.most_lines,
           f"{template.name} has {lines} lines; expected at most {template.most_lines}, so that it is read")

    built = [build_with_cmake(template, driver, prefix), build_by_hand(template, driver, prefix, folder / "by-hand")]
    if platform.machine() == "x86_64":  # toolchains that harden by default add a note of their own, aligned to 8 bytes
        built.append(build_by_hand(template, driver, prefix, folder / "hardened", "-fcf-protection",
                                   "-Wl,-z,ibt,-z,shstk"))
    for library in built:
        check_exports(library)
    vm_run = prefix / "bin" / "vm-run"
    if not vm_run.exists():
        return False
    # The template is also one of the installed drivers. Without that one, only the driver built here can be found.
    for installed in prefix.rglob(template.library):
        installed.unlink()
    expect(template.name not in listed(vm_run, None),
           f"vm-run lists {template.name} although no such driver is installed")
    for library in built:
        names = listed(vm_run, library.parent)
        expect(names.count(template.name) == 1,
               f"HALYARD_DRIVER_PATH={library.parent}: expected {template.name} once, found {names}")
        found = devices(vm_run, library.parent, template.name)
        expect(found == [f"{template.name}://"], f"{library}: expected the device {template.name}://, found {found}")
    return True


def main(folder):
    run("cmake", "--install", BUILD, "--prefix", folder / "prefix")
    for template in TEMPLATES:
        if not check(template, folder / "prefix", folder / template.name):
            vmrun.skip("the drivers build; vm-run is not built, so nothing could load them")
