"""The folder in which compiled functions are kept (--jit_cache): found again, never trusted where others could have written,
bounded, and shared by processes. Skipped where this build has no compiler."""
import glob
import os
import re
import subprocess

import vmrun

PROGRAM = """
vm.module @m
vm.export @sum
vm.func @sum(%i0:1: i64) -> (i64) {
  %i2:3 = vm.const.i64.zero
  %i4:5 = vm.const.i64.zero
  %i6:7 = vm.const.i64 1
  vm.br ^bb1
^bb1:
  %i8 = vm.cmp.lt.i64.s %i2:3, %i0:1
  vm.cond_br %i8, ^bb2, ^bb3
^bb2:
  %i4:5 = vm.add.i64 %i4:5, %i2:3
  %i2:3 = vm.add.i64 %i2:3, %i6:7
  vm.br ^bb1
^bb3:
  vm.return %i4:5
}
"""
# A sum that fast math may add up in another order.
FLOATS = """
vm.module @m
vm.type f32
vm.export @sum
vm.func @sum(%i0: i32) -> (f32) {
  .requires ext_f32
  %i1 = vm.const.i32.zero
  %i2 = vm.const.i32 1
  %i3 = vm.const.f32.zero
  vm.br ^bb1
^bb1:
  %i4 = vm.cmp.lt.i32.s %i1, %i0
  vm.cond_br %i4, ^bb2, ^bb3
^bb2:
  %i5 = vm.cast.si32.f32 %i1
  %i3 = vm.add.f32 %i3, %i5
  %i1 = vm.add.i32 %i1, %i2
  vm.br ^bb1
^bb3:
  vm.return %i3
}
"""
MOST_BYTES = 64 << 20


class Runner:
    def __init__(self, folder, checks):
        self.checks = checks
        self.module = os.path.join(folder, "sum.vmasm")
        vmrun.write(self.module, PROGRAM)

    def arguments(self, cache, *more):
        return [f"--module={self.module}", "--function=sum", "--input=10", "--jit=always", f"--jit_cache={cache}", "--print_stats",
                *more]

    def expect(self, name, cache, from_cache):
        """Runs the program: right, compiled, and out of the cache or not."""
        done = vmrun.run("vm-run", *self.arguments(cache))
        wrong = None
        if done.returncode != 0 or "45" not in done.stdout:
            wrong = "did not give 45"
        elif count(done.stderr, "functions") != 1:
            wrong = "did not compile one function"
        elif count(done.stderr, "from the cache") != from_cache:
            wrong = f"took {count(done.stderr, 'from the cache')} from the cache, expected {from_cache}"
        self.checks.check(name, wrong, done)


def count(text, label):
    found = re.search(rf"^  {label} +(\d+)$", text, re.MULTILINE)
    return int(found.group(1)) if found else None


def entries(cache):
    return sorted(os.path.join(cache, name) for name in os.listdir(cache))


def main(checks, folder):
    vmrun.need_compiler()
    runner = Runner(folder, checks)
    cache = os.path.join(folder, "new", "cache")
    runner.expect("the first run compiles", cache, 0)
    checks.check("one entry", None if len(entries(cache)) == 1 else f"found {entries(cache)}")
    checks.check("the user's own", None if os.stat(cache).st_mode & 0o777 == 0o700 else "others may look into the folder")
    runner.expect("the second finds it", cache, 1)
    for name, folder_used, loads in [("a run that compiles loads LLVM", os.path.join(folder, "other"), True),
                                     ("one that finds all in the cache does not", cache, False)]:
        done = vmrun.run("vm-run", *runner.arguments(folder_used), env={**os.environ, "LD_DEBUG": "files"})
        loaded = "halyard-jit-llvm-codegen.so" in done.stderr
        checks.check(name, None if "45" in done.stdout and loaded == loads else f"loaded: {loaded}")

    entry, = entries(cache)
    good = open(entry, "rb").read()
    for name, bad in [("a changed byte", good[:100] + bytes([good[100] ^ 1]) + good[101:]), ("cut off", good[:-1]),
                      ("longer", good + b"x"), ("empty", b""), ("a header alone", good[:48]),
                      ("of another key", None)]:
        if bad is None:  # a valid file under the name of another key: the digest covers the key
            other = PROGRAM.replace("i64 1\n", "i64 2\n")
            vmrun.write(runner.module, other)
            vmrun.run("vm-run", *runner.arguments(cache))
            vmrun.write(runner.module, PROGRAM)
            another, = set(entries(cache)) - {entry}
            bad = open(another, "rb").read()
            os.remove(another)
        vmrun.write(entry, bad)
        runner.expect(f"{name}: not used", cache, 0)
        checks.check(f"{name}: replaced", None if open(entry, "rb").read() == good else "the damaged entry is still there")

    os.chmod(entry, 0o666)
    runner.expect("an entry that others may write to", cache, 0)
    os.remove(entry)
    os.symlink("/etc/passwd", entry)
    runner.expect("a link", cache, 0)
    checks.check("the link is gone", None if not os.path.islink(entry) else "it is still there")
    os.chmod(cache, 0o777)
    runner.expect("a folder that others may write to", cache, 0)
    os.chmod(cache, 0o700)
    runner.expect("and again as it was", cache, 1)
    link = os.path.join(folder, "link")
    os.symlink(cache, link)
    runner.expect("a link to a folder", link, 0)
    if os.geteuid() == 0:
        os.chown(cache, 1, -1)
        runner.expect("another user's folder", cache, 0)
        os.chown(cache, 0, -1)
        os.chown(entry, 1, -1)
        runner.expect("another user's entry", cache, 0)
        os.chown(entry, 0, -1)
    runner.expect("a file", runner.module, 0)

    # Twice as much as may be there, older than all else; a half-written entry of a process that is gone.
    for i in range(8):
        path = os.path.join(cache, f"{i:064}.object")
        with open(path, "wb") as file:
            file.truncate(MOST_BYTES // 4)
        os.utime(path, (1000 + i, 1000 + i))
    forgotten = os.path.join(cache, "1-1.unfinished")
    open(forgotten, "wb").close()
    os.utime(forgotten, (1000, 1000))
    os.remove(entry)
    runner.expect("a full folder", cache, 0)
    total = sum(os.path.getsize(path) for path in entries(cache))
    checks.check("bounded", None if total <= MOST_BYTES else f"{total} bytes are there")
    checks.check("the oldest go first", None if os.path.exists(os.path.join(cache, f"{7:064}.object")) else "the newest went")
    checks.check("what was never finished goes", None if not os.path.exists(forgotten) else "it is still there")

    # Two at once, many times, from nothing.
    for path in entries(cache):
        os.remove(path)
    running = [subprocess.Popen([os.path.join(vmrun.BIN, "vm-run"), *runner.arguments(cache)], stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True) for _ in range(6)]
    outputs = [process.communicate(timeout=vmrun.TIMEOUT) for process in running]
    checks.check("six at once", None if all("45" in out for out, _ in outputs) else f"found {outputs}")
    checks.check("one entry for all", None if entries(cache) == [entry] else f"found {entries(cache)}")
    runner.expect("and it is whole", cache, 1)

    # Exact and fast code of one function are different entries.
    module = os.path.join(folder, "floats.vmasm")
    vmrun.write(module, FLOATS)
    for math, from_cache in [("exact", 0), ("fast", 0), ("exact", 1), ("fast", 1)]:
        done = vmrun.run("vm-run", f"--module={module}", "--function=sum", "--input=10", "--jit=always", f"--jit_math={math}",
                         f"--jit_cache={cache}", "--print_stats")
        found = count(done.stderr, "from the cache")
        checks.check(f"{math} math", None if "f32=45" in done.stdout and found == from_cache else
                     f"expected 45 and {from_cache} from the cache, found {found}", done)

    # Addresses differ from process to process; keys have none of those of constants, types, calls and messages.
    for example in sorted(glob.glob(os.path.join(vmrun.SOURCE, "examples", "*.vmasm"))):
        lines = re.findall(r"^// run: vm-run (.*)$", vmrun.read_text(example), re.MULTILINE)
        for line in lines[:1]:
            name, words = os.path.basename(example), [*line.split(), "--jit=always", "--print_stats", f"--jit_cache={folder}/examples"]
            first, second = vmrun.run("vm-run", *words), vmrun.run("vm-run", *words)
            functions = count(first.stderr, "functions")
            checks.check(f"{name}: compiled", None if functions else "nothing was", first)
            checks.check(f"{name}: found again", None if count(second.stderr, "from the cache") == functions and
                         second.stdout == first.stdout else "not everything was", second)
