"""Programs and libraries as files: no element of a RUNPATH is empty or relative, in the build folder and installed; and what is
installed is hardened (cmake/Hardening.cmake). The folder that is installed to has a space in its name."""
import re

import vmrun
from installed import BUILD, cache, run

ENDBR64 = b"\xf3\x0f\x1e\xfa"  # where an indirect branch may go
# What is not as the others are, and why.
NO_CANARY = {
    "libtoolbox.so": "the example has no array on its stack",
    "halyard-driver-null.so": "the template has no array on its stack",
}
NO_CHECKED_FUNCTION = {"vm-serve-grpc.so": "it copies nothing itself"}
# What a warm call runs (halyard_harden_warm_calls).
UNMARKED = ("libhalyard.so", "halyard-driver-local.so")


def elf_files(folder):
    return [path for path in sorted(folder.rglob("*"))
            if path.is_file() and not path.is_symlink() and path.suffix not in (".o", ".a", ".gch") and path.open("rb").read(4) == b"\x7fELF"]


def run_path(dynamic):
    """The elements of RUNPATH or RPATH in the text of readelf; none where there is no such entry."""
    return [element for text in re.findall(r"\((?:RUNPATH|RPATH)\).*\[(.*)\]", dynamic) for element in text.split(":")]


def fault_of_run_path(path):
    elements = run_path(run("readelf", "--dynamic", "--wide", path))
    bad = [element for element in elements if not element.startswith(("/", "$ORIGIN"))]
    return f"it looks for libraries in {elements}" if bad else None


def faults_of_hardening(path):
    """What is missing of the hardening of a file."""
    text = run("readelf", "--program-headers", "--dynamic", "--wide", path)
    segments = dict(re.findall(r"^\s+(\w+)\s+0x\w+ 0x\w+ 0x\w+ 0x\w+ 0x\w+ ([RWE ]{3})", text, re.MULTILINE))
    loads = re.findall(r"^\s+LOAD\s+0x\w+ 0x\w+ 0x\w+ 0x\w+ 0x\w+ ([RWE ]{3})", text, re.MULTILINE)
    if "E" in segments.get("GNU_STACK", "E"):
        yield "its stack can be executed"
    if any("W" in flags and "E" in flags for flags in loads) or not loads:
        yield "a segment can be written and executed"
    is_static = "INTERP" not in segments and "(NEEDED)" not in text
    if is_static:
        return
    if "Elf file type is DYN" not in text:
        yield "it lies at a fixed address"
    if "TEXTREL" in text:
        yield "its code is changed when it is loaded"
    if "GNU_RELRO" not in segments:
        yield "no tables are read-only after loading"
    if not re.search(r"\(FLAGS\).*BIND_NOW|\(FLAGS_1\).*NOW", text):
        yield "functions are looked up when they are first called"
    symbols = "\n".join(re.findall(r"\bUND (\S+)", run("readelf", "--dyn-syms", "--wide", path)))
    if "__stack_chk_fail" not in symbols and path.name not in NO_CANARY:
        yield "it has no canaries on the stack"
    if path.name.startswith(("libhalyard", "vm-", "hal-")) and path.name not in NO_CHECKED_FUNCTION and not re.search(r"__\w+_chk\b(?<!__stack_chk)", symbols):
        yield "it calls no checked functions of the C library"
    if path.name.startswith(UNMARKED):
        return
    if cache("HALYARD_COMPILER_HAS_fcf_protection_full") and ENDBR64 not in path.read_bytes():
        yield "its functions do not begin with endbr64"
    if cache("HALYARD_COMPILER_HAS_mbranch_protection_standard") and b"\x5f\x24\x03\xd5" not in path.read_bytes():
        yield "its functions do not begin with bti c"


def main(checks, folder):
    built = elf_files(BUILD)
    if not built:
        vmrun.skip("nothing is built")
    for path in built:
        if "CMakeFiles" not in path.parts and (fault := fault_of_run_path(path)):
            checks.check(f"{path.relative_to(BUILD)} of the build folder", fault)
    checks.check(f"{len(built)} files of the build folder", None)
    checks.check("an empty element is found", None if run_path(" 0x1d (RUNPATH)  Library runpath: [$ORIGIN/../lib:]")[-1] == "" else "it is not")

    prefix = folder / "a prefix"
    run("cmake", "--install", BUILD, "--prefix", prefix)
    installed = elf_files(prefix)
    checks.check("there are programs and libraries", None if len(installed) > 8 or cache("HALYARD_STATIC") == "ON" else installed)
    for path in installed:
        checks.check(f"RUNPATH of {path.name}", fault_of_run_path(path))
        if cache("HALYARD_HARDENING") == "ON" and not cache("HALYARD_SANITIZE"):
            checks.check(f"hardening of {path.name}", "; ".join(faults_of_hardening(path)) or None)
