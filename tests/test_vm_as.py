"""vm-as from the command line: sources of text, targets of modules, versions, and errors."""
import os
import pty
import struct
import subprocess

import vmrun

PROGRAM = """vm.module @m
vm.export @f
vm.func @f(%i0: i32) -> (i32) {
  %i0 = vm.add.i32 %i0, %i0
  vm.return %i0
}
"""
NEWER = """vm.module @m
vm.func @f(%r0: !vm.buffer) -> () {
  vm.discard.refs %r0
  vm.return
}
"""


def run_bytes(*arguments, **options):
    return subprocess.run([os.path.join(vmrun.BIN, "vm-as"), *arguments], capture_output=True, timeout=900, **options)


def version_of(module):
    """The bytecode version; the root table's field 13."""
    root = 4 + struct.unpack_from("<I", module, 4)[0]
    vtable = root - struct.unpack_from("<i", module, root)[0]
    return struct.unpack_from("<I", module, root + struct.unpack_from("<H", module, vtable + 4 + 2 * 13)[0])[0] >> 16


def on_terminal(path):
    """Exit status and what the terminal shows where standard output is one."""
    leader, follower = pty.openpty()
    done = subprocess.run([os.path.join(vmrun.BIN, "vm-as"), path], stdin=subprocess.DEVNULL, stdout=follower,
                          stderr=subprocess.PIPE, text=True, timeout=900)
    os.close(follower)
    os.close(leader)
    return done


def main(checks, folder):
    vmrun.need_tool("vm-as")

    def fails(name, done, *parts):
        checks.check(name, vmrun.why_bad_failure(done, *parts), done)

    def equal(name, found, expected):
        checks.check(name, None if found == expected else f"expected {expected!r}, found {found!r}")

    source = os.path.join(folder, "m.vmasm")
    target = os.path.join(folder, "m.vmfb")
    newer = os.path.join(folder, "newer.vmasm")
    for path, text in ((source, PROGRAM), (newer, NEWER)):
        vmrun.write(path, text)

    expected = run_bytes(source).stdout
    equal("standard output holds a module", expected[8:12], b"IREE")
    equal("its size stands first", struct.unpack_from("<I", expected)[0], len(expected) - 4)
    equal("standard input", run_bytes("-", input=PROGRAM.encode()).stdout, expected)
    for arguments in (["--output=" + target], ["-o", target], ["-o" + target]):
        done = vmrun.run("vm-as", source, *arguments)
        equal(f"{arguments[0]}: exit status", done.returncode, 0)
        equal(f"{arguments[0]}: nothing printed", done.stdout + done.stderr, "")
        equal(f"{arguments[0]}: the module", vmrun.read(target), expected)
        os.remove(target)
    equal("--output=-", run_bytes(source, "--output=-").stdout, expected)

    for version in (15, 16, 17):
        equal(f"version {version}", version_of(run_bytes(source, f"--bytecode-version={version}").stdout), version)
    equal("17 is the default", version_of(expected), 17)
    stated = os.path.join(folder, "stated.vmasm")
    vmrun.write(stated, PROGRAM.replace("@m\n", "@m bytecode 15\n"))
    equal("what the text says", version_of(run_bytes(stated).stdout), 15)
    equal("the flag counts more", version_of(run_bytes(stated, "--bytecode-version=16").stdout), 16)
    fails("an instruction that is too new", vmrun.run("vm-as", newer, "--bytecode-version=15", "-o", target),
          newer + ":3: ", "vm.discard.refs", "16")
    equal("no file is left of a failure", os.path.exists(target), False)
    fails("a version that does not exist", vmrun.run("vm-as", source, "--bytecode-version=18"), "15, 16 or 17")

    bad = os.path.join(folder, "bad.vmasm")
    vmrun.write(bad, PROGRAM.replace("vm.add.i32", "vm.ad.i32"))
    fails("an error names file and line", vmrun.run("vm-as", bad), bad + ":4: ", "did you mean 'add.i32'")
    done = subprocess.run([os.path.join(vmrun.BIN, "vm-as"), "-"], input="nonsense\n", capture_output=True, text=True)
    fails("an error in standard input", done, "<stdin>:1: ")

    for name, text in (("empty", b""), ("mark", b"\xef\xbb\xbf" + PROGRAM.encode()), ("wide", PROGRAM.encode("utf-16"))):
        vmrun.write(bad, text)
        done = vmrun.run("vm-as", bad, "-o", target)
        if name == "mark":
            equal("a byte-order mark is skipped", done.returncode, 0)
        else:
            fails(f"{name} text", done, bad, {"empty": "vm.module @NAME", "wide": "UTF-8"}[name])

    fails("no input", vmrun.run("vm-as"), "usage: vm-as")
    fails("two inputs", vmrun.run("vm-as", source, bad), "found 2")
    fails("an unknown flag", vmrun.run("vm-as", source, "--outptu=x"), "did you mean '--output'")
    fails("an unknown short flag", vmrun.run("vm-as", source, "-x"), "unknown flag '-x'")
    fails("-o without a file", vmrun.run("vm-as", source, "-o"), "needs a value")
    fails("a missing input", vmrun.run("vm-as", os.path.join(folder, "none.vmasm")), "NOT_FOUND", "none.vmasm")
    fails("a folder as input", vmrun.run("vm-as", folder), folder)
    fails("a folder that is missing", vmrun.run("vm-as", source, "-o", os.path.join(folder, "no", "m.vmfb")), "no/m.vmfb")
    fails("the input as output", vmrun.run("vm-as", source, "-o", source), "is the input")
    equal("the input is as it was", vmrun.read_text(source), PROGRAM)
    fails("binary to a terminal", on_terminal(source), "terminal", "--output=FILE")
    if os.path.exists("/dev/full"):
        fails("a full disk", vmrun.run("vm-as", source, "-o", "/dev/full"), "/dev/full")
        with open("/dev/full", "w") as full:
            fails("a full standard output", vmrun.run("vm-as", source, stdout=full), "standard output")

    done = vmrun.run("vm-as", "--help")
    equal("--help: exit status", done.returncode, 0)
    for part in ("usage: vm-as", "--output=FILE", "--bytecode_version=15|16|17", "examples:"):
        checks.check(f"--help names {part}", None if part in done.stdout else "missing", done)
