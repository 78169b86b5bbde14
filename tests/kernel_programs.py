"""Programs with one portable kernel over two buffers of eight i32, whose host code is hal_inline and hal_loader: without a device."""

TEXT = """vm.module @m
vm.dependency @hal_inline 0
vm.dependency @hal_loader 0
vm.import @hal_inline.buffer.allocate cconv "0iI_rr"
vm.import @hal_inline.buffer.storage cconv "0r_r"
vm.import @hal_inline.buffer_view.create cconv "0rIIiiCID_r"
vm.import @hal_inline.buffer_view.assert cconv "0rriiCID_v"
vm.import @hal_inline.buffer_view.buffer cconv "0r_r"
vm.import @hal_loader.executable.query_support cconv "0r_i"
vm.import @hal_loader.executable.load cconv "0rrr_r"
vm.import @hal_loader.executable.dispatch cconv "0riiiiCiDCrIID_v"
vm.rodata[0] = "vmvx-bytecode-fb"
vm.rodata[1] = "input0"
vm.rodata[2] = module {
  vm.module @kernels
  vm.rodata[0] = 0100000002000000030000000400000005000000060000000700000008000000
  vm.export @k
  vm.attr @k "binding_count" "2"
  vm.attr @k "local_memory" "LOCAL"
  vm.func @k(%r0: !vm.buffer, %r1: !vm.buffer, %r2: !vm.list<!vm.buffer>, %i0: i32, %i1: i32, %i2: i32, %i3: i32, %i4: i32, %i5: i32, %i6: i32, %i7: i32, %i8: i32) -> () {
    %i9 = vm.const.i32.zero
    %i10 = vm.const.i32 1
    %i12:13 = vm.const.i64.zero
    %r3 = vm.list.get.ref %r2, %i9 : !vm.buffer
    %r4 = vm.list.get.ref %r2, %i10 : !vm.buffer
BODY
    vm.return
  }
}
vm.export @__init
vm.func @__init() -> () {
  %r0 = vm.const.ref.rodata 0
  %r1 = vm.const.ref.rodata 2
  %r2 = vm.const.ref.zero
  %r3 = vm.call @hal_loader.executable.load(%r0, %r1, %r2)
  vm.global.store.ref %R3, .refs[0] : !hal.executable
  vm.return
}
vm.export @f
vm.func @f(%r0: !hal.buffer_view) -> (!hal.buffer_view) {
  %i0 = vm.const.i32.zero
  %i1 = vm.const.i32 1
  %i2 = vm.const.i32 0x10000020
  %i4:5 = vm.const.i64 8
  %i6:7 = vm.const.i64 32
  %i8:9 = vm.const.i64.zero
  %i10 = vm.const.i32 64
  %r1 = vm.global.load.ref .refs[0] : !hal.executable
  %r2 = vm.const.ref.rodata 1
  vm.call.variadic @hal_inline.buffer_view.assert segments[65535, 65535, 65535, 65535, 1](%r0, %r2, %i2, %i1, %i4:5)
  %r2 = vm.call @hal_inline.buffer_view.buffer(%r0)
  %r3 = vm.call @hal_inline.buffer.storage(%r2)
  %r4, %r5 = vm.call @hal_inline.buffer.allocate(%i10, %i6:7)
  vm.buffer.fill.i8 %r5, %i8:9, %i6:7, %i0
  vm.call.variadic @hal_loader.executable.dispatch segments[65535, 65535, 65535, 65535, 65535, 0, 2](%r1, %i0, %i1, %i1, %i1, %r3, %i8:9, %i6:7, %r5, %i8:9, %i6:7)
  %r6 = vm.call.variadic @hal_inline.buffer_view.create segments[65535, 65535, 65535, 65535, 65535, 1](%r4, %i8:9, %i6:7, %i2, %i1, %i4:5)
  vm.return %R6
}
"""


def program(body, local_memory=0):
    """`body` has the input in %r3, the result in %r4, 0 in %i9 and %i12:13, and 1 in %i10."""
    return TEXT.replace("BODY", body.strip("\n")).replace("LOCAL", str(local_memory))


# %i14:15 counts 0, 3, 6, 9, which are below 11; %i26:27 is its negative. A store is at 7 - counter, if -counter is at least LEAST.
NEGATIVE_STEPS = """
    %i14:15 = vm.const.i64.zero
    %i16:17 = vm.const.i64 11
    %i18:19 = vm.const.i64 3
    %i20:21 = vm.const.i64 LEAST
    %i22:23 = vm.const.i64 7
    vm.br ^bb1
  ^bb1:
    %i26:27 = vm.sub.i64 %i12:13, %i14:15
    %i30 = vm.cmp.lt.i64.s %i14:15, %i16:17
    vm.cond_br %i30, ^bb2, ^bb4
  ^bb2:
    %i31 = vm.cmp.lt.i64.s %i26:27, %i20:21
    vm.cond_br %i31, ^bb5, ^bb3
  ^bb3:
    %i28:29 = vm.add.i64 %i26:27, %i22:23
    vm.buffer.store.i32 %i10, %r4, %i28:29
    vm.br ^bb5
  ^bb5:
    %i14:15 = vm.add.i64 %i14:15, %i18:19
    vm.br ^bb1
  ^bb4:
"""

# The constant is first named in the loop, before a buffer is allocated there.
CONSTANT_IN_A_LOOP = """
    %i14:15 = vm.const.i64.zero
    %i16:17 = vm.const.i64 8
    %i18:19 = vm.const.i64 1
    %i20:21 = vm.const.i64 32
    vm.br ^bb1
  ^bb1:
    %i22 = vm.cmp.lt.i64.s %i14:15, %i16:17
    vm.cond_br %i22, ^bb2, ^bb3
  ^bb2:
    %r6 = vm.const.ref.rodata 0
    %r7 = vm.buffer.alloc %i20:21, %i9
    %i23 = vm.buffer.load.i32 %r6, %i14:15
    vm.buffer.store.i32 %i23, %r7, %i14:15
    %i24 = vm.buffer.load.i32 %r3, %i14:15
    %i23 = vm.buffer.load.i32 %r7, %i14:15
    %i24 = vm.add.i32 %i24, %i23
    vm.buffer.store.i32 %i24, %r4, %i14:15
    %i14:15 = vm.add.i64 %i14:15, %i18:19
    vm.br ^bb1
  ^bb3:
"""

COPY_OF_A_BINDING = """
    %i14:15 = vm.const.i64 24
    vm.buffer.copy %r3, %i12:13, %r4, %i12:13, %i14:15
"""

# How long the local memory is, beside a buffer of the kernel's own.
LOCAL_MEMORY = """
    %i14:15 = vm.buffer.length %r0
    %i16 = vm.trunc.i64.i32 %i14:15
    %i18:19 = vm.const.i64 32
    %r6 = vm.buffer.alloc %i18:19, %i9
    vm.buffer.store.i32 %i10, %r6, %i12:13
    %i17 = vm.buffer.load.i32 %r6, %i12:13
    %i16 = vm.add.i32 %i16, %i17
    vm.buffer.store.i32 %i16, %r4, %i12:13
"""

CALLS = [["f", "8xi32=10,20,30,40,50,60,70,80"]]


def programs():
    """Name, text and calls of each."""
    yield "negative_steps", program(NEGATIVE_STEPS.replace("LEAST", "-6")), CALLS
    yield "negative_steps_out_of_range", program(NEGATIVE_STEPS.replace("LEAST", "-9")), CALLS
    yield "constant_in_a_loop", program(CONSTANT_IN_A_LOOP), CALLS
    yield "copy_of_a_binding", program(COPY_OF_A_BINDING), CALLS
    yield "local_memory", program(LOCAL_MEMORY, 4096), CALLS
    yield "shift_by_its_own_half", SHIFTS, [["f", "4294967300"], ["f", "-1"], ["f", "63"]]


SHIFTS = """vm.module @m
vm.export @f
vm.func @f(%i0:1: i64) -> (i64, i64, i64, i32) {
  %i2:3 = vm.shl.i64 %i0:1, %i0
  %i4:5 = vm.shr.i64.u %i0:1, %i0
  %i6:7 = vm.shr.i64.s %i0:1, %i0
  %i8 = vm.shl.i32 %i0, %i0
  vm.return %i2:3, %i4:5, %i6:7, %i8
}
"""
