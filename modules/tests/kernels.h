// An executable for tests, as text and assembled.
#pragma once

#include <string_view>

#include "testing.h"
#include "vm/text/assembler.h"

namespace halyard::modules {

// Function 0 does nothing; function 1, scale: binding 0 [workgroup x] = workgroup x * constant 0 +
// constant 1.
inline constexpr std::string_view kKernels = R"(
vm.module @kernels version 0
vm.attr @scale "binding_count" "1"
vm.attr @scale "constant_count" "2"
vm.export @nothing
vm.func @nothing(%r0: !vm.buffer, %r1: !vm.buffer, %r2: !vm.list<!vm.buffer>, %i0: i32, %i1: i32, %i2: i32, %i3: i32, %i4: i32, %i5: i32, %i6: i32, %i7: i32, %i8: i32) -> () {
  vm.discard.refs %r0, %r1, %r2
  vm.return
}
vm.export @scale
vm.func @scale(%r0: !vm.buffer, %r1: !vm.buffer, %r2: !vm.list<!vm.buffer>, %i0: i32, %i1: i32, %i2: i32, %i3: i32, %i4: i32, %i5: i32, %i6: i32, %i7: i32, %i8: i32) -> () {
  %i9 = vm.const.i32.zero
  %r3 = vm.list.get.ref %r2, %i9 : !vm.buffer
  %i10:11 = vm.const.i64.zero
  %i12:13 = vm.const.i64 1
  %i14 = vm.buffer.load.i32 %r1, %i10:11
  %i15 = vm.buffer.load.i32 %r1, %i12:13
  %i14 = vm.mul.i32 %i0, %i14
  %i14 = vm.add.i32 %i14, %i15
  %i16:17 = vm.ext.i32.i64.s %i0
  vm.buffer.store.i32 %i14, %r3, %i16:17
  vm.discard.refs %r0, %r1, %r2, %r3
  vm.return
}
)";

inline Ref<vm::Buffer> assembled_kernels() {
  auto assembled = vm::assemble(kKernels, {});
  EXPECT_TRUE(assembled) << assembled.error().text();
  return assembled ? bytes_of(*assembled) : nullptr;
}

}  // namespace halyard::modules
