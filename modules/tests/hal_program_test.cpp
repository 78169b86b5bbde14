// Programs that call `hal` through the interpreter: linking, registers in place, results, failures with their
// trace.
#include <gtest/gtest.h>

#include "base/bytes.h"
#include "modules/hal_functions.h"
#include "testing.h"
#include "vm/compile/loaded_module.h"
#include "vm/run/context.h"
#include "vm/run/invocation.h"
#include "vm/text/assembler.h"

namespace halyard::modules {
namespace {

class HalProgram : public ::testing::Test {
 protected:
  void SetUp() override {
    auto opened = ASSERT_VALUE(open_device("local-sync"));
    context = vm::Context::create();
    ASSERT_OK(context->add(create_hal_module({.devices = {opened}})));
    add_hal_types(types);
  }
  Result<> load(std::string_view text) {
    auto bytes = HALYARD_TRY(vm::assemble(text, {}));
    return context->add(HALYARD_TRY(vm::LoadedModule::load(Bytes::own(std::move(bytes)), types)));
  }
  Result<std::vector<int64_t>> run(std::string_view function) {
    const vm::Callable callable = HALYARD_TRY(context->find("program", function));
    std::vector<vm::Variant> results(callable.convention.results.size());
    vm::Invocation invocation(context);
    HALYARD_TRY(invocation.call(callable, {}, results));
    std::vector<int64_t> numbers;
    for (const vm::Variant& result : results)
      numbers.push_back(result.type() == vm::ValueType::i32 ? result.as_i32() : result.as_i64());
    return numbers;
  }

  vm::TypeRegistry types;
  Ref<vm::Context> context;
};

TEST_F(HalProgram, NewestSignatures) {
  ASSERT_OK(load(R"(
vm.module @program version 0
vm.import @hal.devices.count cconv "0v_i"
vm.import @hal.devices.get cconv "0i_r"
vm.import @hal.device.allocator cconv "0r_r"
vm.import @hal.allocator.allocate cconv "0rIiiI_r"
vm.import @hal.device.queue.fill cconv "0rIrrrIIIiI_v"
vm.import @hal.fence.create cconv "0rI_r"
vm.import @hal.fence.await cconv "0iICrD_i"
vm.import @hal.buffer.load cconv "0rIi_i"
vm.import @hal.buffer.length cconv "0r_I"
vm.export @main
vm.func @main() -> (i32, i64, i32, i32) {
^bb0:
  %i0 = vm.const.i32.zero
  %i1 = vm.call @hal.devices.count()
  %r0 = vm.call @hal.devices.get(%i0)
  %r1 = vm.call @hal.device.allocator(%r0)
  %i2:3 = vm.const.i64 -1
  %i4 = vm.const.i32 50
  %i5 = vm.const.i32 3075
  %i6:7 = vm.const.i64 12
  %r2 = vm.call @hal.allocator.allocate(%r1, %i2:3, %i4, %i5, %i6:7)
  %i8:9 = vm.const.i64.zero
  %r3 = vm.call @hal.fence.create(%r0, %i8:9)
  %r4 = vm.const.ref.zero
  %i10:11 = vm.const.i64 42
  %i12 = vm.const.i32 4
  vm.call @hal.device.queue.fill(%r0, %i2:3, %r4, %r3, %r2, %i8:9, %i6:7, %i10:11, %i12, %i8:9)
  %i13 = vm.const.i32 -1
  vm.call.variadic.yieldable @hal.fence.await segments[65535, 65535, 1](%i13, %i8:9, %r3) -> ^bb1(%i14)
^bb1:
  %i16:17 = vm.const.i64 8
  %i15 = vm.call @hal.buffer.load(%r2, %i16:17, %i12)
  %i18:19 = vm.call @hal.buffer.length(%r2)
  vm.return %i1, %i18:19, %i14, %i15
}
)"));
  auto results = ASSERT_VALUE(run("main"));
  EXPECT_EQ(results, (std::vector<int64_t>{1, 12, 0, 42}));
}

// Imports of hal 0.5 and 0.7 in one process, even in one module: each has the behaviour of its own signature.
TEST_F(HalProgram, SignaturesOfSeveralVersionsSideBySide) {
  ASSERT_OK(load(R"(
vm.module @program version 0
vm.import @hal.devices.get cconv "0i_r"
vm.import @hal.fence.create cconv "0ri_r"
vm.import @hal.fence.join cconv "0CrD_r"
vm.import @hal.device.queue.execute cconv "0rIrrCrD_v"
vm.import @hal.device.queue.barrier cconv "0rIrrI_v"
vm.import @hal.fence.await cconv "0iCrD_i"
vm.import @hal.fence.query cconv "0r_i"
vm.export @main
vm.func @main() -> (i32, i32, i32) {
^bb0:
  %i0 = vm.const.i32.zero
  %r0 = vm.call @hal.devices.get(%i0)
  %r1 = vm.call @hal.fence.create(%r0, %i0)
  %r2 = vm.call @hal.fence.create(%r0, %i0)
  %r3 = vm.const.ref.zero
  %i2:3 = vm.const.i64 -1
  %r4 = vm.call.variadic @hal.fence.join segments[2](%r1, %r2)
  %i4 = vm.call @hal.fence.query(%r4)
  vm.call.variadic @hal.device.queue.execute segments[65535, 65535, 65535, 65535, 0](%r0, %i2:3, %r3, %r1)
  %i6:7 = vm.const.i64.zero
  vm.call @hal.device.queue.barrier(%r0, %i2:3, %r1, %r2, %i6:7)
  %i8 = vm.const.i32 -1
  %i9 = vm.call.variadic @hal.fence.await segments[65535, 1](%i8, %r4)
  %i10 = vm.call @hal.fence.query(%r4)
  vm.return %i4, %i9, %i10
}
)"));
  auto results = ASSERT_VALUE(run("main"));
  EXPECT_EQ(results, (std::vector<int64_t>{17, 0, 0}));
}

TEST_F(HalProgram, AFailureSaysWhichFunctionAndEndsTheProgram) {
  ASSERT_OK(load(R"(
vm.module @program version 0
vm.import @hal.fence.signal cconv "0r_v"
vm.export @main
vm.func @main() -> () {
  %r0 = vm.const.ref.zero
  vm.call @hal.fence.signal(%r0)
  vm.return
}
)"));
  auto results = run("main");
  EXPECT_FAILS(INVALID_ARGUMENT, "null", results);
  EXPECT_FAILS(INVALID_ARGUMENT, "hal.fence.signal", results);
}

TEST_F(HalProgram, WhatDoesNotLink) {
  const auto with_import = [&](std::string_view import) {
    return load(std::string("vm.module @program version 0\n") + std::string(import) +
                "\nvm.export @main\nvm.func @main() -> () {\n  vm.return\n}\n");
  };
  EXPECT_FAILS(NOT_FOUND, "fence.signal", with_import("vm.import @hal.fence.signals cconv \"0r_v\""));
  auto mismatch = with_import("vm.import @hal.fence.create cconv \"0rii_r\"");
  EXPECT_FAILS(INCOMPATIBLE, "0rii_r", mismatch);
  EXPECT_FAILS(INCOMPATIBLE, "0ri_r", mismatch);
  EXPECT_FAILS(INCOMPATIBLE, "0rI_r", mismatch);
  EXPECT_TRUE(with_import("vm.import optional @hal.no.such cconv \"0r_v\""));
}

// A program that awaits a fence releases its thread; signalling the fence resumes it.
TEST_F(HalProgram, AwaitsWithoutAThread) {
  ASSERT_OK(load(R"(
vm.module @program
vm.import @hal.fence.await cconv "0iICrD_i"
vm.export @forever
vm.export @briefly
vm.func @forever(%r0: !hal.fence) -> (i32) {
  %i0 = vm.const.i32 -1
  %i2:3 = vm.const.i64.zero
  vm.call.variadic.yieldable @hal.fence.await segments[65535, 65535, 1](%i0, %i2:3, %r0) -> ^bb1(%i1)
^bb1:
  vm.discard.refs %r0
  vm.return %i1
}
vm.func @briefly(%r0: !hal.fence) -> (i32) {
  %i0 = vm.const.i32 5
  %i2:3 = vm.const.i64.zero
  vm.call.variadic.yieldable @hal.fence.await segments[65535, 65535, 1](%i0, %i2:3, %r0) -> ^bb1(%i1)
^bb1:
  vm.discard.refs %r0
  vm.return %i1
}
)"));
  auto device = ASSERT_VALUE(open_device("local-sync"));
  const auto begin = [&](vm::Invocation& invocation, const char* name, const Ref<hal::Fence>& fence) {
    const vm::Variant arguments[] = {vm::Variant::ref(fence)};
    return invocation.begin(*context->find("program", name), arguments);
  };
  const auto result = [](vm::Invocation& invocation) {
    vm::Variant results[1];
    invocation.take_results(results);
    return results[0].as_i32();
  };
  int calls = 0;
  const Wait::Hook count = {[](void* user) { ++*static_cast<int*>(user); }, &calls};

  {  // reached
    auto fence = *hal::Fence::create(device);
    vm::Invocation invocation(context);
    invocation.set_ready_hook(count);
    ASSERT_EQ(*begin(invocation, "forever", fence), vm::Outcome::waiting);
    EXPECT_EQ(calls, 0);
    ASSERT_TRUE(fence->signal());
    EXPECT_EQ(calls, 1);
    ASSERT_EQ(*invocation.resume(), vm::Outcome::done);
    EXPECT_EQ(result(invocation), 0);
  }
  {  // failed
    auto fence = *hal::Fence::create(device);
    vm::Invocation invocation(context);
    ASSERT_EQ(*begin(invocation, "forever", fence), vm::Outcome::waiting);
    fence->fail(Status(Code::DATA_LOSS, "gone"));
    EXPECT_FAILS(DATA_LOSS, "", invocation.resume());
  }
  {  // too late
    auto fence = *hal::Fence::create(device);
    vm::Invocation invocation(context);
    ASSERT_EQ(*begin(invocation, "briefly", fence), vm::Outcome::waiting);
    ASSERT_TRUE(invocation.wait_deadline());
    while (vm::Clock::now() < *invocation.wait_deadline()) {
    }
    ASSERT_EQ(*invocation.resume(), vm::Outcome::done);
    EXPECT_EQ(result(invocation), static_cast<int>(Code::DEADLINE_EXCEEDED));
  }
  {  // dropped while it waits; the fence is reached afterwards
    auto fence = *hal::Fence::create(device);
    {
      vm::Invocation invocation(context);
      ASSERT_EQ(*begin(invocation, "forever", fence), vm::Outcome::waiting);
    }
    EXPECT_TRUE(fence->signal());
  }
}

}  // namespace
}  // namespace halyard::modules
