"""Host functions over tensors: the example, copied away from this tree, builds against an installed Halyard with CMake and
with one line of cc, and prints what its first comment says."""
import os
import pathlib
import re
import shutil

from installed import BUILD, cache, need_plain_library, run


def promised(source: pathlib.Path) -> list[str]:
    """The lines that the first comment says it prints."""
    comment = source.read_text().split("*/", 1)[0]
    return re.findall(r"^ \*   (\S.*)$", comment.split("prints", 1)[1], re.MULTILINE)


def check_output(checks, name, printed, expected):
    lines = printed.splitlines()
    same = len(lines) == len(expected) and all(
        line.startswith(wanted.removesuffix("...")) if wanted.endswith("...") else line == wanted
        for line, wanted in zip(lines, expected))
    checks.check(name, None if same and expected else f"it prints\n{printed}expected\n" + "\n".join(expected))


def main(checks, folder):
    need_plain_library("programs built without a sanitizer cannot use this build")
    prefix, author = folder / "prefix", folder / "author"
    run("cmake", "--install", BUILD, "--prefix", prefix)
    shutil.copytree(prefix / "share/halyard/examples/host-functions", author)
    source = author / "host_functions.c"
    expected = promised(source)
    run("cmake", "-G", "Ninja", "-S", author, "-B", author / "build", f"-DCMAKE_PREFIX_PATH={prefix}",
        "-DCMAKE_FIND_USE_PACKAGE_REGISTRY=OFF")
    run("cmake", "--build", author / "build")
    check_output(checks, "built with CMake", run(author / "build/host_functions"), expected)

    lib = prefix / cache("CMAKE_INSTALL_LIBDIR")
    flags = run("pkg-config", "--cflags", "--libs", "halyard", env={**os.environ, "PKG_CONFIG_PATH": str(lib / "pkgconfig")})
    run("cc", "-std=c11", "-pedantic-errors", "-Wall", "-Wextra", "-Werror", source, *flags.split(), "-lm", "-o", folder / "program")
    printed = run(folder / "program", env={**os.environ, "LD_LIBRARY_PATH": str(lib)})
    check_output(checks, "built with cc", printed, expected)
