"""An installed Halyard, as its users meet it, far from this tree: a C program finds it through pkg-config and through
find_package, and the template driver, copied out, builds against it both ways."""

import os
import re
import shlex
import shutil
import sys

from installed import BUILD, cache, need_plain_library, run

PROGRAM = """#include <halyard/halyard.h>
#include <stdio.h>
int main(void) { return puts(halyard_status_code_name(HALYARD_NOT_FOUND)) < 0; }
"""
PROJECT = """cmake_minimum_required(VERSION 3.25)
project(embedder C)
find_package(Halyard REQUIRED)
add_executable(program program.c)
target_link_libraries(program PRIVATE Halyard::halyard)
"""


def main(folder):
    need_plain_library("programs built without a sanitizer cannot use this build")
    first, prefix = folder / "the first", folder / "moved to a folder"
    run("cmake", "--install", BUILD, "--prefix", first)
    unit = (first / "lib/systemd/system/halyard-serve.service").read_text()
    assert f'\nExecStart="{first}/bin/vm-serve" ' in unit, "the unit of vm-serve does not name the installed program"
    first.rename(prefix)  # an installed tree can be moved
    lib = prefix / cache("CMAKE_INSTALL_LIBDIR")
    for tool in sorted((BUILD / "bin").iterdir()):
        run(prefix / "bin" / tool.name, "--help")
        if tool.name == "vulkan-pack":
            manual = (prefix / "share/man/man1/vulkan-pack.1").read_text().replace("\\-", "-")
            for flag in re.findall(r"--\w+", run(prefix / "bin" / tool.name, "--help")):
                assert flag in manual, f"the manual page of vulkan-pack lacks {flag}"
        else:
            for file in (f"man/man1/{tool.name}.1", f"bash-completion/completions/{tool.name}", f"zsh/site-functions/_{tool.name}"):
                assert tool.name in (prefix / "share" / file).read_text().replace("\\-", "-"), file
    environment = {**os.environ, "PKG_CONFIG_PATH": str(lib / "pkgconfig")}

    def pkg_config(*arguments) -> list[str]:
        return shlex.split(run("pkg-config", *arguments, env=environment))  # as a shell reads it

    # An embedder.
    program = folder / "program.c"
    program.write_text(PROGRAM)
    run("cc", program, *pkg_config("--cflags", "--libs", "halyard"), "-o", folder / "a.out")
    assert run(folder / "a.out", env={**os.environ, "LD_LIBRARY_PATH": str(lib)}) == "NOT_FOUND\n"
    (folder / "CMakeLists.txt").write_text(PROJECT)
    run("cmake", "-G", "Ninja", "-S", folder, "-B", f"{folder}/b", f"-DCMAKE_PREFIX_PATH={prefix}")
    run("cmake", "--build", f"{folder}/b")
    assert run(f"{folder}/b/program") == "NOT_FOUND\n"

    # A driver author.
    example = prefix / "share" / "halyard" / "examples" / "driver-null"
    if not example.is_dir() or not (example / "CMakeLists.txt").exists():
        sys.exit("FAILED: the template driver is not installed")
    driver = folder / "driver"
    shutil.copytree(example, driver)
    run("cmake", "-G", "Ninja", "-S", driver, "-B", driver / "b", f"-DCMAKE_PREFIX_PATH={prefix}")
    run("cmake", "--build", driver / "b")
    built = list((driver / "b").rglob("halyard-driver-null.so"))
    assert len(built) == 1, f"expected one halyard-driver-null.so, found {built}"
    other = folder / "halyard-driver-null.so"
    flags = pkg_config("--cflags", "--libs", "halyard-driver")
    run("cc", "-std=c11", "-shared", "-fPIC", *sorted(driver.glob("*.c")), *flags, "-o", other)
    for library in [*built, other]:
        symbols = run("nm", "-D", "--defined-only", "--format=posix", library).split("\n")
        assert [line.split()[0] for line in symbols if line] == ["halyard_driver_negotiate"], symbols

    # The author of a native module.
    module = folder / "libtoolbox.so"
    sources = prefix / "share" / "halyard" / "examples" / "native-module"
    flags = pkg_config("--cflags", "--libs", "halyard-module")
    run("cc", "-std=c11", "-shared", "-fPIC", *sorted(sources.glob("*.c")), *flags, "-o", module)
    symbols = run("nm", "-D", "--defined-only", "--format=posix", module).split("\n")
    assert [line.split()[0] for line in symbols if line] == ["halyard_module_negotiate"], symbols
