"""The builds without shared libraries, of the presets that `./dev build static` and `./dev build small` use (docs/install.md), made
in folders beside the build. The static one installs: its tools need no shared library, and C programs use libhalyard.a by
pkg-config and by find_package. The small vm-run gives the results of the ordinary one, refuses what it leaves out, and is small; a C
program finds the drivers that were linked in."""
import os
import pathlib
import subprocess

import vmrun
from installed import BUILD, SOURCE, cache, run

STATIC, FOLDER = BUILD.parent / "static-test", BUILD.parent / "small-test"
# Bytes of a stripped vm-run, docs/install.md.
MOST_WITH_SHARED_LIBC = 1_500_000
MOST_STATIC = 2_500_000
EXAMPLES = [
    ("elementwise_mul", ["--function=mul", "--input=8xf32=1,2,3,4,5,6,7,8", "--input=8xf32=10"]),
    ("matmul", ["--function=matmul", "--input=4x3xf32=0.5", "--input=3x2xf32=1,2,3,4,5,6"]),
    ("fib", ["--function=recursive", "--input=20"]),
]
VMVX_FIXTURES = [("simple_mul.vmvx", ["--function=simple_mul", "--input=4xf32=1,2,3,4", "--input=4xf32=2"])]
PROGRAM = r"""
#include <halyard/halyard.h>
#include <stdio.h>
int main(void) {
  halyard_instance_t instance = NULL;
  halyard_driver_entry_t* drivers = NULL;
  size_t count = 0;
  halyard_instance_options_t options = {sizeof options, HALYARD_INSTANCE_NO_ENVIRONMENT | HALYARD_INSTANCE_NO_DEFAULT_FOLDERS};
  if (halyard_instance_create(&options, &instance)) return 1;
  if (halyard_instance_drivers(instance, &drivers, &count)) return 2;
  for (size_t i = 0; i < count; ++i) puts(drivers[i].name);
  halyard_device_t device = NULL;
  if (halyard_device_open(instance, DEVICE, &device)) return 3;
  puts(halyard_device_uri(device));
  halyard_release(device);
  halyard_free(drivers);
  halyard_release(instance);
  return 0;
}
"""
PROJECT = """cmake_minimum_required(VERSION 3.25)
project(program C)
find_package(Halyard REQUIRED COMPONENTS halyard)
add_executable(program program.c)
target_link_libraries(program PRIVATE Halyard::halyard)
"""


def why_not():
    """The reason why nothing static can be built here, or None."""
    if cache("HALYARD_SANITIZE") or cache("CMAKE_BUILD_TYPE") != "Release" or cache("CMAKE_TOOLCHAIN_FILE"):
        return "static builds are made beside an ordinary release build only"
    compiler = cache("CMAKE_CXX_COMPILER")
    for library in "libc.a", "libstdc++.a", "libffi.a", "libz.a":
        if subprocess.run([compiler, f"-print-file-name={library}"], text=True, capture_output=True).stdout.strip() == library:
            return f"there is no {library}"
    return None


def build(preset, folder, *options, targets=("all",)):
    run("cmake", "--preset", preset, "-B", folder, f"-DCMAKE_C_COMPILER={cache('CMAKE_C_COMPILER')}",
        f"-DCMAKE_CXX_COMPILER={cache('CMAKE_CXX_COMPILER')}", *options, cwd=SOURCE)
    run("cmake", "--build", folder, "--target", *targets, "-j", os.environ.get("HALYARD_JOBS", str(os.cpu_count())))


def stripped_size(program, folder):
    run("strip", "-o", folder / "stripped", program)
    return (folder / "stripped").stat().st_size


def needs(program):
    """The shared libraries that a program needs; "loader" where it needs one."""
    text = run("readelf", "--wide", "--program-headers", "--dynamic", program)
    return [line.split("[")[1].rstrip("]") for line in text.splitlines() if "(NEEDED)" in line] + ["loader"] * ("INTERP" in text)


def small(*arguments):
    return subprocess.run([FOLDER / "bin" / "vm-run", *arguments], text=True, capture_output=True, stdin=subprocess.DEVNULL, timeout=900)


def check_results(checks, folder):
    programs = []
    for name, arguments in EXAMPLES:
        module = folder / f"{name}.vmfb"
        run(BUILD / "bin" / "vm-as", SOURCE / "examples" / f"{name}.vmasm", f"--output={module}")
        programs.append((module, arguments))
    if vmrun.fixtures():
        programs += [(pathlib.Path(vmrun.fixtures(), "compiled", f"{name}.vmfb"), arguments) for name, arguments in VMVX_FIXTURES]
    for module, arguments in programs:
        for device in "local-sync", "local-task":
            flags = [f"--module={module}", f"--device={device}", *arguments]
            done, ordinary = small(*flags), vmrun.run("vm-run", *flags)
            same = (done.returncode, done.stdout) == (0, ordinary.stdout)
            checks.check(f"{module.name} on {device}", None if same else "not what the ordinary vm-run prints", done)


def check_refusals(checks):
    for name, flags, parts in (
            ("text", [f"--module={SOURCE}/examples/fib.vmasm"], ["UNIMPLEMENTED", "vm-as"]),
            ("a flag of the ordinary vm-run", ["--module=x.vmfb", "--capture=y"], ["INVALID_ARGUMENT", "--capture", "--help"]),
            ("no module", [], ["INVALID_ARGUMENT", "--module=FILE"]),
            ("a driver in a file", ["--module=x.vmfb", "--device=vulkan"], ["NOT_FOUND", "vulkan"])):
        done = small(*flags)
        checks.check(f"refusal of {name}", vmrun.why_bad_failure(done, *parts), done)
    usage = small("--help").stdout
    missing = [part for part in ("leaves out", ".vmasm", "traces", "io_parameters", "vector instructions") if part not in usage]
    checks.check("--help says what is left out", f"it does not tell of {missing}" if missing else None)


def write_program(folder, device):
    (folder / "program.c").write_text(f'#define DEVICE "{device}"\n{PROGRAM}')


def check_program(checks, name, program, expected):
    done = subprocess.run([program], text=True, capture_output=True, timeout=900)
    lines = done.stdout.split()
    checks.check(name, None if done.returncode == 0 and expected <= set(lines) else f"it found {lines}", done)


def check_installed(checks, folder):
    """The static build as its users have it: programs and one archive below a prefix."""
    prefix = folder / "prefix"
    run("cmake", "--install", STATIC, "--prefix", prefix)
    tools = sorted(path.name for path in (prefix / "bin").iterdir())
    expected = {"hal-info", "vm-as", "vm-cc", "vm-check", "vm-diff", "vm-dump", "vm-run", "vm-serve"}
    checks.check("the tools", None if set(tools) == expected else f"they are {tools}")
    for tool in tools:
        libraries = needs(prefix / "bin" / tool)
        checks.check(f"{tool} needs no library", f"it needs {libraries}" if libraries else None)
        run(prefix / "bin" / tool, "--help")
    print(f"vm-run, static: {(prefix / 'bin' / 'vm-run').stat().st_size} bytes")
    for name, arguments in EXAMPLES:
        flags = [f"--module={SOURCE}/examples/{name}.vmasm", "--device=local-task", *arguments]
        done = subprocess.run([prefix / "bin" / "vm-run", *flags], text=True, capture_output=True, stdin=subprocess.DEVNULL, timeout=900)
        checks.check(f"{name} by the installed vm-run", None if done.stdout == vmrun.run("vm-run", *flags).stdout else "other results", done)
    write_program(folder, "local-sync")
    environment = {**os.environ, "PKG_CONFIG_PATH": f"{prefix}/lib/pkgconfig"}
    flags = run("pkg-config", "--cflags", "--libs", "halyard", env=environment).split()
    run(cache("CMAKE_C_COMPILER"), folder / "program.c", *flags, "-o", folder / "by-hand")
    check_program(checks, "a C program by pkg-config", folder / "by-hand", {"local-sync", "local-task"})
    (folder / "CMakeLists.txt").write_text(PROJECT)
    run("cmake", "-G", "Ninja", "-S", folder, "-B", folder / "b", f"-DCMAKE_PREFIX_PATH={prefix}")
    run("cmake", "--build", folder / "b")
    check_program(checks, "a C program by find_package", folder / "b" / "program", {"local-sync", "local-task"})


def check_library(checks, folder):
    write_program(folder, "null")
    includes = [f"-I{SOURCE / part / 'include'}" for part in ("base", "vm", "bindings/c")]
    run(cache("CMAKE_C_COMPILER"), "-c", *includes, folder / "program.c", "-o", folder / "program.o")
    run(cache("CMAKE_CXX_COMPILER"), "-static", folder / "program.o", FOLDER / "lib" / "merged" / "libhalyard.a", "-lffi",
        "-o", folder / "program")
    check_program(checks, "a C program with libhalyard.a", folder / "program", {"local-sync", "local-task", "null"})


def main(checks, folder):
    reason = why_not()
    if reason:
        vmrun.skip(reason)
    build("static", STATIC)
    check_installed(checks, folder)
    drivers = "-DHALYARD_STATIC_DRIVERS=local;null"
    build("small", FOLDER, drivers, "-DHALYARD_STATIC_LIBC=OFF", targets=("vm-run",))
    shared = stripped_size(FOLDER / "bin" / "vm-run", folder)
    print(f"vm-run, small, with the system's C library: {shared} bytes")
    checks.check("its size", None if shared < MOST_WITH_SHARED_LIBC else f"expected less than {MOST_WITH_SHARED_LIBC} bytes")
    libraries = needs(FOLDER / "bin" / "vm-run")
    checks.check("its libraries", None if not any("halyard" in each or "ffi" in each for each in libraries) else f"{libraries}")
    build("small", FOLDER, drivers, "-DHALYARD_STATIC_LIBC=ON", targets=("vm-run", "halyard"))
    static = stripped_size(FOLDER / "bin" / "vm-run", folder)
    print(f"vm-run, small, static: {static} bytes")
    checks.check("the static one's size", None if static < MOST_STATIC else f"expected less than {MOST_STATIC} bytes")
    checks.check("it needs no library", f"it needs {needs(FOLDER / 'bin' / 'vm-run')}" if needs(FOLDER / "bin" / "vm-run") else None)
    check_results(checks, folder)
    check_refusals(checks)
    check_library(checks, folder)
