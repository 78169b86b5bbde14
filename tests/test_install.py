"""An installed Halyard, as its users meet it, far from this tree: a C program finds it through pkg-config and through
find_package, the template driver, copied out, builds against it both ways, and a project builds a model as a library."""

import os
import re
import shlex
import shutil
import sys

from installed import BUILD, SOURCE, cache, need_plain_library, run

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
MODEL = """cmake_minimum_required(VERSION 3.25)
project(product C)
find_package(Halyard REQUIRED)
halyard_add_model(mul mul.vmasm)
halyard_add_model(device_mul mul.vmasm RUNTIME hal)
add_executable(product product.c)
target_link_libraries(product PRIVATE mul)
"""
PRODUCT = """#include <stdio.h>
#include "mul.h"
int main(void) {
  static mul_state state;
  const float a[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  float product[8] = {0};
  if (mul_init(&state, NULL, 0) != 0 || mul_mul(&state, a, a, product) != 0) return 1;
  printf("%g\\n", product[7]);
  return 0;
}
"""


def models(folder, prefix, lib):
    """A model as a library without Halyard, and as a native module; kernels ahead of time, where their compiler is installed."""
    project = folder / "product"
    project.mkdir()
    shutil.copy(SOURCE / "examples" / "elementwise_mul.vmasm", project / "mul.vmasm")
    (project / "CMakeLists.txt").write_text(MODEL)
    (project / "product.c").write_text(PRODUCT)
    run("cmake", "-G", "Ninja", "-S", project, "-B", project / "b", f"-DCMAKE_PREFIX_PATH={prefix}", "-DCMAKE_C_FLAGS=-Wall -Wextra -Werror")
    run("cmake", "--build", project / "b")
    assert run(project / "b" / "product") == "64\n"
    needed = run("readelf", "-d", project / "b" / "product")
    assert "halyard" not in needed, f"a program with a model needs Halyard: {needed}"
    call = ["--device=local-sync", "--function=mul", "--input=8xf32=1,2,3,4,5,6,7,8", "--input=8xf32=2"]
    made = [project / "b" / "libdevice_mul.so"]
    if (lib / "halyard" / "halyard-emit-llvm.so").exists():
        made.append(project / "fast.vmfb")
        run(prefix / "bin" / "vm-cc", project / "mul.vmasm", "--emit=vmfb", "--target=x86-64-v2,arm64,riscv64", f"--output={made[-1]}")
    for module in made:
        printed = run(prefix / "bin" / "vm-run", f"--module={module}", *call)
        assert "8xf32=2 4 6 8 10 12 14 16" in printed, f"{module}: {printed}"


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

    models(folder, prefix, lib)

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
