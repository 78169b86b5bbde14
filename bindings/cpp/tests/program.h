// The program that these tests call, with its instance and device.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "halyard/halyard.hpp"

inline constexpr const char* kProgram = R"(
vm.module @program version 3
vm.dependency @hal 7
vm.import @hal.fence.await cconv "0iICrD_i"
vm.import @hal.fence.signal cconv "0r_v"
vm.export @add
vm.export @mix
vm.export @pass
vm.export @list
vm.export @spin
vm.export @wait
vm.export @echo
vm.export @none
vm.attr @echo "iree.abi.model" "coarse-fences"
vm.attr @add "iree.abi.declaration" "sync func @add(%x: f32, %y: f32) -> f32"
vm.func @add(%i0: f32, %i1: f32) -> (f32) {
  %i0 = vm.add.f32 %i0, %i1
  vm.return %i0
}
vm.func @mix(%i0:1: i64, %i2:3: f64, %i4: i32, %i5: f32) -> (f32, i32, f64, i64) {
  vm.return %i5, %i4, %i2:3, %i0:1
}
vm.func @pass(%r0: !vm.ref<?>) -> (!vm.ref<?>) {
  vm.return %R0
}
vm.func @list() -> (!vm.list<!vm.opaque>) {
  %i0 = vm.const.i32 2
  %i1 = vm.const.i32 0
  %r0 = vm.list.alloc %i0 : !vm.list<!vm.opaque>
  vm.list.resize %r0, %i0
  vm.list.set.i32 %r0, %i1, %i0
  vm.return %R0
}
vm.func @spin() -> () {
  vm.br ^bb1
^bb1:
  vm.br ^bb1
^bb2:
  vm.return
}
vm.func @wait(%r0: !hal.fence, %i0: i32) -> (i32) {
  %i2:3 = vm.const.i64.zero
  vm.call.variadic.yieldable @hal.fence.await segments[65535, 65535, 1](%i0, %i2:3, %r0) -> ^bb1(%i1)
^bb1:
  vm.return %i1
}
vm.func @echo(%r0: !hal.buffer_view, %r1: !hal.fence, %r2: !hal.fence) -> (!hal.buffer_view) {
  %i0 = vm.const.i32 -1
  %i2:3 = vm.const.i64.zero
  vm.call.variadic.yieldable @hal.fence.await segments[65535, 65535, 1](%i0, %i2:3, %r1) -> ^bb1(%i1)
^bb1:
  vm.call @hal.fence.signal(%r2)
  vm.return %R0
}
vm.func @none() -> () {
  vm.return
}
)";

#if HALYARD_CPP_EXCEPTIONS
// A context with the program on a device of local-sync.
struct Program {
  explicit Program(uint32_t flags = 0, const halyard::InstanceOptions& options = {})
      : instance(halyard::Instance::create(options)),
        device(instance.open("local-sync")),
        module(halyard::Module::from_text(instance, kProgram)),
        context(
            halyard::Context::create(instance, {.modules = {module}, .devices = {device}, .flags = flags})) {}
  halyard::Instance instance;
  halyard::Device device;
  halyard::Module module;
  halyard::Context context;
};

// The code of the exception that `body` throws; OK if it throws none. `text` receives the error's text.
template <typename Body>
halyard::StatusCode code_of(Body&& body, std::string* text = nullptr) {
  try {
    body();
    return halyard::StatusCode::OK;
  } catch (const halyard::Error& error) {
    if (text) *text = error.what();
    return error.code();
  }
}
#endif
