"""Shared by the end-to-end tests: the build folder, running tools, checking errors."""
import os
import pathlib
import platform
import re
import subprocess
import sys
import tempfile
import time
import unittest

SOURCE = os.environ.get("HALYARD_SOURCE", os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("HALYARD_BUILD", os.path.join(SOURCE, "build", "release"))
BIN = os.path.join(BUILD, "bin")
DRIVERS = os.path.join(BUILD, "lib", "halyard", "drivers")
COMPILER = os.path.join(BUILD, "lib", "halyard", "halyard-jit-llvm.so")
TIMEOUT = 240  # seconds, only to end what hangs: a machine may be busy

CODES = ("CANCELLED UNKNOWN INVALID_ARGUMENT DEADLINE_EXCEEDED NOT_FOUND ALREADY_EXISTS PERMISSION_DENIED "
         "RESOURCE_EXHAUSTED FAILED_PRECONDITION ABORTED OUT_OF_RANGE UNIMPLEMENTED INTERNAL UNAVAILABLE DATA_LOSS "
         "UNAUTHENTICATED INCOMPATIBLE").split()


# In a build for another processor, the programs that the scripts in BIN start in an emulator.
EMULATED = os.path.join(BUILD, "emulated")
ARCHITECTURES = {"x86_64": "x86_64", "aarch64": "arm_64", "riscv64": "riscv_64"}  # as compilers of programs name them


def is_emulated():
    return os.path.isdir(EMULATED)


def processor():
    """That of the tools, as `uname -m` names it."""
    if not is_emulated():
        return platform.machine()
    with open(os.path.join(EMULATED, "vm-run"), "rb") as file:
        machine = int.from_bytes(file.read(20)[18:], "little")
    return {62: "x86_64", 183: "aarch64", 243: "riscv64"}[machine]


def starts_itself():
    """Whether a tool can start its own program again, to try a driver there. Not in an emulator that the system does not know."""
    if not is_emulated():
        return True
    try:
        return subprocess.run([os.path.join(EMULATED, "vm-run"), "--version"], capture_output=True).returncode == 0
    except OSError:
        return False


NO_BINFMT = "the system does not start programs for another processor (binfmt_misc)"


def fixtures():
    """The folder of the shared fixtures, or None if it does not exist."""
    folder = os.environ.get("HALYARD_FIXTURES", os.path.join(SOURCE, "..", "shared", "fixtures"))
    return folder if os.path.isdir(folder) else None


def machine_code(program):
    """The shared program of that name, compiled to machine code for the tools' processor; None if it does not exist."""
    place = {"x86_64": "compiled/%s.llvm-cpu.vmfb", "aarch64": "compiled-arm64/%s.llvm-cpu-arm64.vmfb"}.get(processor())
    path = os.path.join(fixtures() or "", (place or "") % program) if place else ""
    return path if os.path.isfile(path) else None


def skip(why):
    print("skipped:", why)
    sys.exit(77)


def needed_fixtures():
    """The folder of the shared fixtures; skips the test if it does not exist."""
    return fixtures() or skip("the shared fixtures are not here; HALYARD_FIXTURES names their folder")


def need_tool(tool):
    """Skips the test in a build without that tool."""
    if not os.path.exists(os.path.join(BIN, tool)):
        skip(tool + " is not built")


def need_compiler():
    """Skips the test in a build without the compiler."""
    if not os.path.exists(COMPILER):
        skip("this build has no compiler: llvm-19-dev was not there, or a sanitizer is in the way")


def only(items):
    items = list(items)
    assert len(items) == 1, items
    return items[0]


def wait_until(condition, what, limit=TIMEOUT):
    end = time.monotonic() + limit
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"not within {limit} s: {what}")
        time.sleep(0.01)


def processor_seconds(process):
    """The time that the processors have given to a process, by its number; 0 if there is none any more."""
    try:
        fields = read_text(f"/proc/{process}/stat").rsplit(")", 1)[1].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def wait_until_it_computes(process, seconds=0.5):
    """Until a process, which starts quickly and then does not end, has computed for so long, so that it is where it does not end."""
    wait_until(lambda: processor_seconds(process.pid) >= seconds or process.poll() is not None, "the process to compute")


def has_handler(process, number):
    status = re.search(r"(?m)^SigCgt:\s*([0-9a-f]+)", read_text(f"/proc/{process.pid}/status"))
    return bool(status and int(status[1], 16) >> (number - 1) & 1)


def wait_until_it_handles(process, number):
    """Until a process has a handler of this signal, which would end it otherwise."""
    wait_until(lambda: process.poll() is not None or has_handler(process, number), f"a handler of signal {int(number)}")


def wait_until_it_has_taken(process, number):
    """Until a tool has taken its first signal, and the next one ends it."""
    wait_until(lambda: process.poll() is not None or not has_handler(process, number), f"signal {int(number)} to be taken")



def stopped_in_time(case, run, pattern):
    """`run` gives the errors of a call that a signal has stopped; they must match. On a machine that is busy, the signal may come before
    the call has begun, or the call may not have seen it after a while: then it runs again."""
    for _ in range(20):
        errors = run()
        if not re.search("before the call|the call did not stop", errors):
            break
    case.assertRegex(errors, pattern)


def programs_with_sources():
    """Kind, module, device and source of the kernel of simple_mul, for each kind of executable that runs here."""
    for kind, device, source in (("vmvx", "local-sync", "simple_mul.mlir:3:8"), ("llvm-cpu", "local-task", "simple_mul.mlir:2"),
                                 ("vulkan", vulkan_device(), "simple_mul.mlir:2")):
        if device and (kind != "llvm-cpu" or processor() == "x86_64"):
            yield kind, os.path.join(needed_fixtures(), "compiled", f"simple_mul.{kind}.vmfb"), device, source


def run(tool, *arguments, timeout=TIMEOUT, **options):
    """Runs a tool of the build; text in, text out."""
    options.setdefault("cwd", SOURCE)
    options.setdefault("stdout", subprocess.PIPE)
    return subprocess.run([os.path.join(BIN, tool), *arguments], stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
                          text=True, timeout=timeout, **options)


def succeeds(tool, *arguments, **options):
    """As `run`; raises an error if the tool fails."""
    done = run(tool, *arguments, **options)
    if done.returncode != 0:
        raise AssertionError(f"{tool} ended with {done.returncode}: {done.stderr}")
    return done


def vulkan_device():
    """The URI of the first device of the driver for Vulkan, or None."""
    listed = run("vm-run", "--list_devices=vulkan").stdout.split()
    return listed[0] if listed else None


def endless(name):
    """The text of a function that does not return."""
    return f"""vm.func @{name}() -> () {{
  %i0 = vm.const.i32 1
  vm.br ^bb1
^bb1:
  vm.cond_br %i0, ^bb1, ^bb2
^bb2:
  vm.return
}}
"""


def with_exports(text):
    """The text of a module that exports each function under its name."""
    return text + "".join(f"vm.export @{name}\n" for name in re.findall(r"(?m)^vm\.func @([\w.]+)", text))


def read(path):
    """The bytes of a file."""
    return pathlib.Path(path).read_bytes()


def read_text(path, encoding="utf-8"):
    return pathlib.Path(path).read_text(encoding=encoding)


def write(path, contents):
    """Makes a file of a text or of bytes."""
    pathlib.Path(path).write_bytes(contents.encode() if isinstance(contents, str) else contents)


def assemble(text, folder, name="module"):
    """The bytes of a module given as text."""
    source = os.path.join(folder, name + ".vmasm")
    write(source, text)
    target = os.path.join(folder, name + ".vmfb")
    succeeds("vm-as", source, "--output=" + target)
    return read(target)


def why_bad_failure(done, *parts):
    """None if the tool failed as expected, with a code, a sentence and every part; else the problem."""
    if done.returncode < 0:
        return f"died of signal {-done.returncode}"
    if done.returncode == 0:
        return "succeeded, must fail"
    if not re.match(r"(?:vm|hal|vulkan)-\w+: (%s); \S+ \S+" % "|".join(CODES), done.stderr):
        return "no code and sentence on standard error"
    for part in parts:
        if str(part) not in done.stderr:
            return f"standard error lacks {part!r}"
    return None


class Checks:
    """Counts checks; prints those that fail; `finish` gives the exit code."""

    def __init__(self):
        self.passed = self.failed = 0

    def check(self, name, wrong, done=None):
        if wrong is None:
            self.passed += 1
            return
        self.failed += 1
        print(f"FAILED {name}: {wrong}")
        if done is not None:
            print("   ", " ".join(str(part) for part in done.args))
            print("    stdout:", (done.stdout or "")[-300:])
            print("    stderr:", (done.stderr or "")[-600:])

    def finish(self):
        print(f"{self.passed} checks passed, {self.failed} failed")
        return 1 if self.failed or not self.passed else 0


def temporary_folder():
    return tempfile.TemporaryDirectory(prefix="halyard-test-")


class FolderCase(unittest.TestCase):
    """Tests that have a temporary folder each."""

    def setUp(self):
        folder = temporary_folder()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, contents):
        """The path of a new file in the folder."""
        write(self.path(name), contents)
        return self.path(name)
