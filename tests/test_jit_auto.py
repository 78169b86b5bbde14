"""--jit=auto, the tools' default: a process does not wait at its end for what is being compiled, and what it writes is there.
Skipped where this build has no compiler."""
import os

import vmrun

LIBRARY = os.path.join(vmrun.BUILD, "lib", "halyard", "halyard-jit-llvm.so")
LOADER = dict(os.environ, LD_DEBUG="files")
LOOPS = 45  # after the hot loop: compiling the function takes almost as long as is allowed
SIDE = """
^bb{first}:
  %i8:9 = vm.const.i64.zero
  vm.br ^bb{second}
^bb{second}:
  %i10 = vm.buffer.load.i32 %r0, %i8:9
  %i10 = vm.add.i32 %i10, %i1
  vm.buffer.store.i32 %i10, %r0, %i8:9
  %i8:9 = vm.add.i64 %i8:9, %i4:5
  %i11 = vm.cmp.lt.i64.s %i8:9, %i6:7
  vm.cond_br %i11, ^bb{second}, ^bb{next}
"""


def program():
    """sum(n): 0 + ... + n - 1; then many loops over a buffer, and a failure where fails() called it."""
    side = "".join(SIDE.format(first=2 * i + 2, second=2 * i + 3, next=2 * i + 4) for i in range(LOOPS))
    return vmrun.with_exports(f"""
vm.module @m
vm.type !vm.buffer
vm.func @sum(%i0: i32) -> (i32) {{
  %i1 = vm.const.i32 1
  %i2 = vm.const.i32.zero
  %i3 = vm.const.i32.zero
  %i4:5 = vm.const.i64 1
  %i6:7 = vm.const.i64 8
  %i12:13 = vm.const.i64 32
  %i14 = vm.const.i32 16
  %r0 = vm.buffer.alloc %i12:13, %i14
  vm.br ^bb1
^bb1:
  %i3 = vm.add.i32 %i3, %i2
  %i2 = vm.add.i32 %i2, %i1
  %i15 = vm.cmp.lt.i32.s %i2, %i0
  vm.cond_br %i15, ^bb1, ^bb2
{side}
^bb{2 * LOOPS + 2}:
  vm.return %i3
}}
vm.func @fails(%i0: i32) -> (i32) {{
  %i1 = vm.call @m:0(%i0)
  %i2 = vm.const.i32 9
  vm.fail %i2, "on purpose"
}}
""")


def ends_meanwhile(function, module, folder, *flags):
    """Runs longer and longer, with an empty cache, until a run has begun to compile and has ended without a result of that.
    That run and its argument; None where every run that began to compile had time for it."""
    turns = 20_000_000
    for attempt in range(16):
        turns += turns // 4
        cache = os.path.join(folder, f"cache-{function}-{attempt}")
        done = vmrun.run("vm-run", f"--module={module}", f"--function={function}", f"--input={turns}", f"--jit_cache={cache}",
                         *flags, env=LOADER)
        if "halyard-jit-llvm-codegen" in done.stderr and not (os.path.exists(cache) and os.listdir(cache)):
            return done, turns
    return None


def main(checks, folder):
    vmrun.need_compiler()
    vmrun.assemble(program(), folder)
    module = os.path.join(folder, "module.vmfb")
    done = vmrun.run("vm-run", f"--module={module}", "--function=sum", "--input=1000", env=LOADER)
    checks.check("a short run does not open the compiler",
                 None if done.returncode == 0 and "halyard-jit-llvm" not in done.stderr and "i32=499500" in done.stdout
                 else "wrong", done)

    found = ends_meanwhile("sum", module, folder)
    checks.check("a run ends while its loop is compiled", None if found else "every run waited for it, or was compiled in time")
    if found:
        done, turns = found
        total = turns * (turns - 1) // 2 & 0xFFFFFFFF
        total -= (total & 0x80000000) << 1
        checks.check("its result", None if done.returncode == 0 and done.stdout == f"EXEC @sum\nresult[0]: i32={total}\n"
                     else "wrong", done)

    found = ends_meanwhile("fails", module, folder, "--print_stats")
    checks.check("a run fails while its loop is compiled", None if found else "every run waited for it, or was compiled in time")
    if found:
        done, _ = found
        checks.check("its failure", None if done.returncode == 1 and "on purpose" in done.stderr else "wrong", done)

    done = vmrun.run("vm-run", f"--module={module}", "--function=sum", "--input=320000000", "--jit=off", env=LOADER)
    checks.check("off", None if done.returncode == 0 and "halyard-jit-llvm" not in done.stderr else "the loader opened it", done)
