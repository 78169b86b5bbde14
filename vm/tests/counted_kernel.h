// The text of a kernel whose operations and accesses are counted.
#pragma once

#include <string>
#include <string_view>

namespace halyard::vm::test {

inline constexpr std::string_view kCountedSignature =
    "(%r0: !vm.buffer, %r1: !vm.buffer, %r2: !vm.list<!vm.buffer>, %i0: i32, %i1: i32, %i2: i32, %i3: i32, "
    "%i4: i32, %i5: i32, %i6: i32, %i7: i32, %i8: i32) -> ()";

// A kernel with bindings 0 to 2 in r3 to r5, and the numbers 0 and 1 in i10:11 and i12:13.
inline std::string counted_kernel(const std::string& body, const std::string& before = "") {
  return "vm.module @kernels\n" + before + "vm.export @f\nvm.func @f" + std::string(kCountedSignature) + R"( {
    %i9 = vm.const.i32.zero
    %r3 = vm.list.get.ref %r2, %i9 : !vm.buffer
    %i9 = vm.const.i32 1
    %r4 = vm.list.get.ref %r2, %i9 : !vm.buffer
    %i9 = vm.const.i32 2
    %r5 = vm.list.get.ref %r2, %i9 : !vm.buffer
    %i10:11 = vm.const.i64.zero
    %i12:13 = vm.const.i64 1
)" + body +
         "}\n";
}

}  // namespace halyard::vm::test
