"""Programs that write to their constants, on every local device, from mapped, preloaded and assembled files: the file
never changes, and validate=1 refuses the writes. The program is examples/elementwise_mul.vmasm, adding its products
to a constant instead of writing them to new memory."""
import os
import re
import struct

import vmrun

FLOATS = struct.pack("<8f", *range(1, 9))
ALIGNMENTS = (0, 16, 32, 48)  # where in a line of 64 bytes the constant may begin: devices import whole lines
TWICE = vmrun.with_exports("""
vm.attr @twice "iree.abi.declaration" "sync func @twice(%input0: tensor<8xf32>, %input1: tensor<8xf32>) -> (%output0: tensor<8xf32>)"
vm.func @twice(%r0: !hal.buffer_view, %r1: !hal.buffer_view) -> (!hal.buffer_view) {
  %r2 = vm.call @mul(%r0, %r1)
  %r2 = vm.call @mul(%R0, %R1)
  vm.return %R2
}
// Not allowed: the host writes to a constant.
vm.func @store() -> () {
  %r0 = vm.const.ref.rodata 7
  %i0 = vm.const.i32 1
  %i2:3 = vm.const.i64.zero
  vm.buffer.store.i32 %i0, %r0, %i2:3
  vm.return
}
// Likewise, through a buffer of the constant.
vm.func @fill() -> () {
  %r0 = vm.global.load.ref .refs[0] : !hal.device
  %r1 = vm.global.load.ref .refs[3] : !hal.buffer
  %r2 = vm.const.ref.zero
  %i0:1 = vm.const.i64 -1
  %i2:3 = vm.const.i64.zero
  %i4:5 = vm.const.i64 32
  %i6 = vm.const.i32 4
  vm.call @hal.device.queue.fill(%r0, %i0:1, %r2, %r2, %r1, %i2:3, %i4:5, %i2:3, %i6, %i2:3)
  vm.return
}
""")


def replaced(text, *pairs):
    for old, new in pairs:
        if text.count(old) != 1:
            raise AssertionError(f"{text.count(old)} times in the example: {old!r}")
        text = text.replace(old, new)
    return text


def program(offset):
    constant = bytes(offset) + FLOATS + bytes(64)
    text = re.sub(r"(?m)^// (run|expect).*\n", "", vmrun.read_text(os.path.join(vmrun.SOURCE, "examples", "elementwise_mul.vmasm")))
    return replaced(
        text,
        ('vm.import @hal.device.allocator cconv "0r_r"\n',
         'vm.import @hal.device.allocator cconv "0r_r"\nvm.import @hal.allocator.import cconv "0riIiirII_r"\n'
         'vm.import @hal.device.queue.fill cconv "0rIrrrIIIiI_v"\n'),
        ("// Ref globals: 0 the device,", "vm.rodata[7] = " + constant.hex() + "\n\n// Ref globals: 0 the device,"),
        ("    %i20 = vm.mul.f32 %i20, %i21\n",
         "    %i20 = vm.mul.f32 %i20, %i21\n    %i21 = vm.buffer.load.f32 %r5, %i18:19\n    %i20 = vm.add.f32 %i20, %i21\n"),
        ("  vm.global.store.ref %R2, .refs[0] : !hal.device\n",
         "  %r8 = vm.call @hal.device.allocator(%r2)\n  %r9 = vm.const.ref.rodata 7\n  %i24 = vm.const.i32 0x30\n"
         f"  %i25 = vm.const.i32 0x80C03\n  %i26:27 = vm.const.i64 {offset}\n"
         "  %r8 = vm.call @hal.allocator.import(%r8, %i0, %i10:11, %i24, %i25, %r9, %i26:27, %i20:21)\n"
         "  vm.global.store.ref %R8, .refs[3] : !hal.buffer\n  vm.global.store.ref %R2, .refs[0] : !hal.device\n"),
        ("  %r10 = vm.call @hal.fence.create(%r2, %i8:9)\n", "  %r10 = vm.const.ref.zero\n"),
        ("  %r11 = vm.call @hal.device.queue.alloca(%r2, %i10:11, %r9, %r10, %i8:9, %i12, %i7, %i4:5, %i8:9)\n",
         "  %r11 = vm.global.load.ref .refs[3] : !hal.buffer\n"),
        ("  vm.call.variadic.yieldable @hal.fence.await segments[65535, 65535, 1](%i13, %i8:9, %r12) -> ^bb1(%i14)\n^bb1:\n",
         "  %i14 = vm.call.variadic @hal.fence.await segments[65535, 65535, 1](%i13, %i8:9, %r12)\n"),
    ) + TWICE


def main(checks, folder):
    inputs = ("--input=8xf32=1,2,3,4,5,6,7,8", "--input=8xf32=10")
    mapped, text = os.path.join(folder, "constants.vmfb"), os.path.join(folder, "constants.vmasm")
    for offset in ALIGNMENTS:
        before = vmrun.assemble(program(offset), folder, "constants")
        done = vmrun.run("vm-run", f"--module={mapped}", "--device=local-sync", "--function=mul", *inputs)
        if "OUT_OF_RANGE" not in done.stderr:
            break
    for device in ("local-sync", "local-task", "local-task?workers=3"):
        for module, flags in ((mapped, ("--module_mode=mmap",)), (text, ()), (mapped, ("--module_mode=preload",))):
            def run(function, *more, device=device, module=module, flags=flags):
                return vmrun.run("vm-run", f"--module={module}", f"--device={device}", f"--function={function}",
                                 *flags, *more)

            for function, factor in (("mul", 11), ("twice", 21)):
                done = run(function, *inputs)
                line = "8xf32=" + " ".join(str(i * factor) for i in range(1, 9))
                checks.check(f"{function} on {device}", None if line in done.stdout else f"expected {line!r}", done)
            for function in ("store", "fill"):
                done = run(function)
                checks.check(f"{function} on {device}", vmrun.why_bad_failure(done, "PERMISSION_DENIED"), done)
            separator = "&" if "?" in device else "?"
            done = run("mul", *inputs, device=f"{device}{separator}validate=1")
            checks.check(f"validate on {device}", vmrun.why_bad_failure(done, "PERMISSION_DENIED", "binding 2 ", "validate=1"),
                         done)
    with open(mapped, "rb") as file:
        checks.check("the file", None if file.read() == before else "it has changed")
