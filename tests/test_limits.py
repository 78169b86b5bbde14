"""--timeout and --max_memory: the limits of a program, and the errors when it exceeds them."""
import os

import vmrun

PROGRAM = vmrun.with_exports("""vm.module @greedy
vm.func @endless() -> (i32) {
  %i0 = vm.const.i32.zero
  %i1 = vm.const.i32 1
  vm.br ^bb1
^bb1:
  %i0 = vm.add.i32 %i0, %i1
  vm.br ^bb1
^bb2:
  vm.return %i0
}
vm.func @quick() -> (i32) {
  %i0 = vm.const.i32 7
  vm.return %i0
}
vm.func @big() -> (i32) {
  %i0:1 = vm.const.i64 1048576
  %i2 = vm.const.i32.zero
  %r0 = vm.buffer.alloc %i0:1, %i2
  vm.discard.refs %r0
  vm.return %i2
}
""")

# Waits for a fence that is never signalled, in a call that is not yieldable.
WAITS = """vm.module @waits
vm.import @hal.devices.get cconv "0i_r"
vm.import @hal.fence.create cconv "0rI_r"
vm.import @hal.fence.await cconv "0iICrD_i"
vm.export @waits
vm.func @waits() -> (i32) {
  %i0 = vm.const.i32.zero
  %i2:3 = vm.const.i64.zero
  %r0 = vm.call @hal.devices.get(%i0)
  %r1 = vm.call @hal.fence.create(%r0, %i2:3)
  %i0 = vm.const.i32 60000
  %i0 = vm.call.variadic @hal.fence.await segments[65535, 65535, 1](%i0, %i2:3, %r1)
  vm.return %i0
}
"""


def main(checks, folder):
    path = os.path.join(folder, "greedy.vmasm")
    vmrun.write(path, PROGRAM)

    def run(*flags):
        return vmrun.run("vm-run", f"--module={path}", *flags)

    def fails(name, flags, *parts):
        done = run(*flags)
        checks.check(name, vmrun.why_bad_failure(done, *parts), done)

    def prints(name, flags, line):
        done = run(*flags)
        checks.check(name, None if done.returncode == 0 and line in done.stdout else f"expected {line!r}", done)

    fails("endless", ["--function=endless", "--timeout=50ms"], "DEADLINE_EXCEEDED", "50 ms")
    prints("in time", ["--function=quick", "--timeout=1min"], "result[0]: i32=7")
    waits = os.path.join(folder, "waits.vmasm")
    vmrun.write(waits, WAITS)
    done = vmrun.run("vm-run", f"--module={waits}", "--device=local-sync", "--function=waits", "--timeout=50ms")
    checks.check("waits", vmrun.why_bad_failure(done, "DEADLINE_EXCEEDED", "50 ms"), done)
    fails("too big", ["--function=big", "--max_memory=1MB"], "RESOURCE_EXHAUSTED", "a buffer", "1000000",
          "max_memory")
    prints("just fits", ["--function=big", "--max_memory=1032KiB"], "result[0]: i32=0")
    for flag, values in (("timeout", ["soon", "-1s", "0", "5 s"]),
                         ("max_memory", ["lots", "0", "1e300GiB", "nan"])):
        for value in values:
            fails(f"{flag}={value}", ["--function=quick", f"--{flag}={value}"], "INVALID_ARGUMENT",
                  f"--{flag}={value}", "expected")
