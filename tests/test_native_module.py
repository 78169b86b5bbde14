"""Native modules from the view of their authors: the example, copied away from this tree, builds against an installed
Halyard with CMake and with one line of cc, and an installed vm-run loads it; so does a module of ten lines. Files
that are not native modules get a clear message and no crash."""
import os
import pathlib
import shutil

import vmrun
from installed import BUILD, SOURCE, cache, exported, run

SMALL = """#include <halyard/module.h>
static int32_t add(int32_t a, int32_t b) { return a + b; }
static const halyard_module_export_t exports[] = {HALYARD_PLAIN("add", "0ii_i", add, 0)};
static const halyard_module_definition_t definition = {
    sizeof definition, HALYARD_MODULE_ABI_V1, "small", 1, sizeof exports[0], exports, 1, 0, 0, 0, 0, 0, 0, 0};
HALYARD_MODULE("small", "0.1", &definition)
"""


def out_of_tree(checks: vmrun.Checks, folder: pathlib.Path) -> None:
    prefix, author = folder / "prefix", folder / "author"
    run("cmake", "--install", BUILD, "--prefix", prefix)
    lib = prefix / cache("CMAKE_INSTALL_LIBDIR")
    installed = prefix / "share" / "halyard" / "examples" / "native-module"
    checks.check("installed example", None if installed.is_dir() else f"{installed} is not there")
    shutil.copytree(SOURCE / "examples" / "native_module", author)

    # With CMake.
    run("cmake", "-S", author, "-B", author / "build", f"-DCMAKE_PREFIX_PATH={prefix}",
        "-DCMAKE_FIND_USE_PACKAGE_REGISTRY=OFF", "-DCMAKE_BUILD_TYPE=Release")
    run("cmake", "--build", author / "build")
    built = list((author / "build").rglob("libtoolbox.so"))
    checks.check("built with CMake", None if len(built) == 1 else f"expected one libtoolbox.so, found {built}")

    # With pkg-config, as toolbox.c says; and with nothing but the folder of the headers, from C and from C++.
    environment = {**os.environ, "PKG_CONFIG_PATH": str(lib / "pkgconfig")}
    flags = {kind: run("pkg-config", "--" + kind, "halyard-module", env=environment).split()
             for kind in ("cflags", "libs")}
    by_hand = folder / "libtoolbox.so"
    run("cc", "-std=c11", "-pedantic-errors", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", *flags["cflags"],
        author / "toolbox.c", *flags["libs"], "-lm", "-o", by_hand)
    for library in [*built, by_hand]:
        names = exported(library)
        checks.check(f"exports of {library.name}", None if names == ["halyard_module_negotiate"] else f"{names}")
    (folder / "small.c").write_text(SMALL)
    run("cc", "-shared", "-fPIC", f"-I{prefix / 'include'}", folder / "small.c", "-o", folder / "libsmall.so")
    # The table grows, and a source without designated initializers leaves out what it does not know.
    run("c++", "-std=c++17", "-pedantic-errors", "-Wall", "-Wextra", "-Wno-missing-field-initializers", "-Werror", "-shared", "-fPIC", "-x", "c++",
        f"-I{prefix / 'include'}", folder / "small.c", "-o", folder / "small-cpp.so")

    vm_run = prefix / "bin" / "vm-run"
    program = f"--module={author / 'toolbox.vmasm'}"
    for library in [*built, by_hand]:
        text = run(vm_run, f"--module={library}@40", program, "--function=third", cwd=folder)
        checks.check(f"{library} runs", None if text.splitlines()[1:] == ["result[0]: i64=42"] else f"it prints {text}")
    for library in ("libsmall.so", "./libsmall.so", "small-cpp.so", folder / "small-cpp.so"):
        text = run(vm_run, f"--module={library}", "--input=40", "--input=2", cwd=folder)
        checks.check(f"{library} runs", None if text == "EXEC @add\nresult[0]: i32=42\n" else f"it prints {text}")
    shutil.copy(folder / "libsmall.so", folder / "libsmall.so.1")  # a library is one whatever its name
    text = run(vm_run, f"--module={folder / 'libsmall.so.1'}", "--list_functions")
    checks.check("a library by its content", None if text == "add(i32, i32) -> (i32)\n" else f"it prints {text}")


def files(checks: vmrun.Checks, folder: pathlib.Path) -> None:
    toolbox = BUILD / "examples" / "libtoolbox.so"
    program = "--module=examples/native_module/toolbox.vmasm"

    def refuse(name, arguments, *parts):
        done = vmrun.run("vm-run", *arguments)
        checks.check(name, vmrun.why_bad_failure(done, *parts), done)

    refuse("no such file", ["--module=/none/libx.so"], "NOT_FOUND", "/none/libx.so")
    refuse("no such file, with an argument", ["--module=/none/libx.so@y"], "NOT_FOUND", "'/none/libx.so'")
    refuse("a folder", [f"--module={folder}/x.so/"], "/x.so/")
    for argument in ("5x", "x", "9223372036854775808", "5 "):
        refuse(f"an argument that is no number: {argument}", [f"--module={toolbox}@{argument}", program, "--function=third"],
               "INVALID_ARGUMENT", "toolbox")
    (folder / "text.so").write_text("vm.module @m\n")
    refuse("text", [f"--module={folder}/text.so"], "INVALID_ARGUMENT", "text.so", "native module")
    (folder / "cut.so").write_bytes(toolbox.read_bytes()[:9000])
    refuse("cut short", [f"--module={folder}/cut.so"], "INVALID_ARGUMENT", "cut short")
    refuse("another library", [f"--module={BUILD}/lib/libhalyard.so"], "NOT_FOUND", "HALYARD_MODULE")
    driver = BUILD / "lib" / "halyard" / "drivers" / "halyard-driver-null.so"
    if driver.exists():
        refuse("a driver", [f"--module={driver}"], "INVALID_ARGUMENT", "is a Halyard driver; expected a native module")
    explained = vmrun.run("vm-run", "--list_drivers", "--explain", f"--driver={toolbox}")
    checks.check("a module as a driver", None if "is a Halyard native module; expected a driver" in explained.stdout
                 else "its refusal is not explained", explained)
    refuse("an executable", [f"--module={BUILD}/bin/vm-run"], "vm-run")
    refuse("the wrong order", [program, f"--module={toolbox}", "--function=length"], "NOT_FOUND", "toolbox")
    refuse("a type before its module", [program, "--function=length"], "NOT_FOUND", "!toolbox.counter")
    refuse("a function's failure", [f"--module={toolbox}", program, "--function=divide", "--input=1", "--input=0"],
           "INVALID_ARGUMENT", "the divisor is 0", "native function toolbox.divide")
    refuse("a variadic function from outside", [f"--module={toolbox}", "--function=sum", "--input=1"],
           "INVALID_ARGUMENT", "'sum'", "only modules can call it")
    refuse("a misspelt function", [f"--module={toolbox}", "--function=hypott"], "did you mean 'hypot'")

    oddly_named = folder / "a.so@b"  # the name of an existing file wins
    oddly_named.write_bytes(vmrun.assemble(
        "vm.module @odd\nvm.export @f\nvm.func @f() -> () {\n  vm.return\n}\n", folder))
    done = vmrun.run("vm-run", f"--module={oddly_named}")
    checks.check("a program named like a library with an argument", None if done.returncode == 0 else "it fails", done)

    listed = vmrun.run("vm-run", f"--module={toolbox}", "--list_functions").stdout.splitlines()
    for line in ("hypot(f64, f64) -> (f64)", "sum((i64)...) -> (i64)", "counter.next(ref) -> (i64)"):
        checks.check(f"listed: {line}", None if line in listed else f"the list is {listed}")


def main(checks, folder):
    if not (BUILD / "bin" / "vm-run").exists() or not (BUILD / "examples" / "libtoolbox.so").exists():
        vmrun.skip("vm-run or the example module is not built")
    files(checks, folder)
    if cache("HALYARD_SANITIZE"):
        print("libraries built without a sanitizer are tried elsewhere")
    else:
        out_of_tree(checks, folder)
