"""docs/embedding.md, typed from the page: its programs, built against a Halyard that is installed in a prefix, far from this tree,
print what the page says, with the Boost of this build and with Debian's default, 1.74, unpacked as in bindings/README.md. The
headers refuse older languages, and an older Boost for what needs 1.81, with one clear message."""
import re
import shutil
import subprocess

from documents import blocks, in_prefix, is_output, run_in_one_shell, steps
from installed import BUILD, cache, need_plain_library, run

PAGE = "docs/embedding.md"


def old_boost(folder):
    """The folder of the headers of Boost 1.74, from the build's cache, or from Debian's archive; None where it cannot be had."""
    known = cache("HALYARD_BOOST_1_74_INCLUDE")
    if known and not known.endswith("NOTFOUND"):
        return known
    if not shutil.which("apt-get"):
        return None
    folder.mkdir()
    done = subprocess.run(["apt-get", "-q", "-o", "APT::Sandbox::User=root", "download", "libboost1.74-dev"], cwd=folder,
                          capture_output=True, timeout=900)
    packages = list(folder.glob("*.deb"))
    if done.returncode != 0 or not packages:
        return None
    run("dpkg", "-x", packages[0], folder)
    return str(folder / "usr" / "include")


def session():
    """(command, what it prints) in the order of the page. Files are written by commands that print nothing."""
    for block in blocks(PAGE):
        if block.name:
            yield f"cat >{block.name} <<'END OF FILE'\n{block.text}END OF FILE", ""
        elif block.language == "console":
            for command, printed in steps(block):
                # Authors of programs would see warnings, too.
                yield re.sub(r"^(cc|c\+\+) ", r"\1 -Wall -Wextra -Werror ", in_prefix(command)), printed


def check_page(checks, name, here, environment):
    here.mkdir()
    commands = list(session())
    for (command, expected), (_, printed) in zip(commands, run_in_one_shell([each for each, _ in commands], here, environment)):
        # A second line of output shows a mistake in a command that prints nothing.
        checks.check(f"{name}: {command.splitlines()[0]}", None if is_output(printed, expected) else f"it prints\n{printed}expected\n{expected}")
    programs = [block.name for block in blocks(PAGE) if block.name]
    built = [program for program in programs if any(re.search(rf"^c\S+ .* {re.escape(program)} ", each) for each, _ in commands)]
    missing = set(programs) - set(built) - {"CMakeLists.txt"}
    checks.check(f"{name}: programs", None if len(programs) > 9 and not missing else f"of {programs} the page does not build {missing}")


def compile_errors(folder, code, *flags):
    """The messages of the compiler, its notes left out."""
    (folder / "refused.cpp").write_text(code)
    done = subprocess.run([cache("CMAKE_CXX_COMPILER"), "-fsyntax-only", *flags, folder / "refused.cpp"], capture_output=True, text=True)
    return re.findall(r"error: (.*)", done.stderr)


def check_refusals(checks, folder, include, old):
    for header in "halyard.hpp", "asio.hpp", "driver.hpp", "channel.hpp":
        for language in "c++11", "c++14", "c++17":
            found = compile_errors(folder, f"#include <halyard/{header}>\n", f"-std={language}", f"-I{include}")
            expected = f'#error "halyard/{header} needs C++20; compile with -std=c++20"'
            checks.check(f"{header} as {language}", None if found == [expected] else f"the compiler says {found}")
        found = compile_errors(folder, f"#include <halyard/{header}>\n", "-std=c++20", f"-I{include}")
        checks.check(f"{header} as c++20", f"the compiler says {found}" if found else None)
    if old:
        code = "#include <halyard/asio.hpp>\nvoid f(boost::asio::io_context& io) { halyard::on_context(io); }\n"
        found = compile_errors(folder, code, "-std=c++20", f"-I{include}", f"-I{old}")
        checks.check("on_context over Boost 1.74", None if len(found) == 1 and "needs Boost 1.81" in found[0] else f"the compiler says {found}")
        found = compile_errors(folder, code, "-std=c++20", f"-I{include}", f"-I{cache('HALYARD_BOOST_INCLUDE')}")
        checks.check("on_context over this Boost", f"the compiler says {found}" if found else None)


def check_components(checks, folder, prefix):
    for names, wrong in (("cpp", ""), ("halyard cpp driver module", ""), ("fortran", "fortran"), ("cpp plugins", "plugins")):
        (folder / names.replace(" ", "-")).mkdir()
        (folder / names.replace(" ", "-") / "CMakeLists.txt").write_text(
            f"cmake_minimum_required(VERSION 3.25)\nproject(components CXX)\nfind_package(Halyard REQUIRED COMPONENTS {names})\n")
        done = subprocess.run(["cmake", "-G", "Ninja", "-S", folder / names.replace(" ", "-"), "-B", folder / names.replace(" ", "-") / "build",
                               f"-DCMAKE_PREFIX_PATH={prefix}"], capture_output=True, text=True)
        said = " ".join(done.stderr.split())
        good = f"no component '{wrong}'; it has halyard, cpp, driver, module" in said if wrong else done.returncode == 0
        checks.check(f"find_package(Halyard COMPONENTS {names})", None if good else "not what was expected", done)


def main(checks, folder):
    need_plain_library("programs built without a sanitizer cannot use this build")
    prefix = folder / "prefix"
    run("cmake", "--install", BUILD, "--prefix", prefix)
    environment = {"PREFIX": str(prefix), "CXX": cache("CMAKE_CXX_COMPILER"), "CC": cache("CMAKE_C_COMPILER")}
    check_page(checks, "this Boost", folder / "programs", environment)
    old = old_boost(folder / "boost")
    if old:
        check_page(checks, "Boost 1.74", folder / "programs-1.74", {**environment, "CPLUS_INCLUDE_PATH": old})
    else:
        print("not checked with Boost 1.74: it is not here and cannot be downloaded")
    check_refusals(checks, folder, prefix / "include", old)
    (folder / "components").mkdir()
    check_components(checks, folder / "components", prefix)
