// Programs that call `check` through the interpreter: they continue after a failed expectation, which is
// reported with its place, and wait for copies like for other work.
#include <gtest/gtest.h>

#include <semaphore>

#include "base/bytes.h"
#include "hal/queue/host_copy.h"
#include "hal/queue/wait.h"
#include "modules/check_module.h"
#include "testing.h"
#include "vm/compile/loaded_module.h"
#include "vm/text/assembler.h"

namespace halyard::modules {
namespace {

constexpr std::string_view kProgram = R"(
vm.module @program version 0
vm.import @check.expect_true cconv "0i_v"
vm.import @check.expect_eq cconv "0rrr_v"
vm.import optional @check.expect_something_newer cconv "0rr_v"
vm.export @both
vm.func @both(%r0: !hal.device, %r1: !hal.buffer_view, %r2: !hal.buffer_view, %i0: i32) -> (i32) {
  vm.call @check.expect_eq(%r0, %r1, %r2)
  vm.call @check.expect_true(%i0)
  %i1 = vm.const.i32 7
  vm.return %i1
}
)";

class CheckProgram : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override { device = ASSERT_VALUE(open_device(GetParam())); }

  void load(ExpectationSink sink) {
    vm::TypeRegistry types;
    add_hal_types(types);
    context = vm::Context::create();
    ASSERT_OK(context->add(create_check_module({.failed = std::move(sink), .memory = {}})));
    auto bytes = ASSERT_VALUE(vm::assemble(kProgram, {}));
    auto module = ASSERT_VALUE(vm::LoadedModule::load(Bytes::own(std::move(bytes)), types));
    ASSERT_OK(context->add(module));
    both = context->find("program", "both").value();
  }
  void load_telling() {
    load([this](const FailedExpectation& failed) {
      reports.push_back(std::string(failed.function) + " " + std::string(failed.place));
    });
  }

  // A buffer of this size in memory that the host cannot map.
  Ref<hal::BufferView> bytes(size_t count, uint8_t value) {
    Ref<hal::Buffer> buffer = hal::Buffer::allocate(*device, hal::kAnyQueue, 0x30, 0xC03, count).value();
    buffer->allocation().usage = 0xC03;
    EXPECT_FALSE(buffer->is_mappable());
    const Ref<hal::Fence> written = hal::begin_write(std::vector<uint8_t>(count, value), *buffer, 0).value();
    hal::Fence* const fences[] = {written.get()};
    EXPECT_TRUE(hal::await(fences, hal::kWaitForever).ok());
    const int64_t shape[] = {static_cast<int64_t>(count)};
    return hal::BufferView::create(buffer, shape, hal::element_type(hal::kInteger, 8), 1).value();
  }
  std::vector<vm::Variant> arguments(const Ref<hal::BufferView>& left, const Ref<hal::BufferView>& right,
                                     int32_t value) {
    return {vm::Variant::ref(device), vm::Variant::ref(left), vm::Variant::ref(right),
            vm::Variant::i32(value)};
  }

  Ref<hal::Device> device;
  Ref<vm::Context> context;
  vm::Callable both;
  std::vector<std::string> reports;
};

TEST_P(CheckProgram, GoesOnAfterAnExpectationThatFails) {
  load_telling();
  vm::Invocation invocation(context);
  std::vector<vm::Variant> results(1);
  ASSERT_OK(invocation.call(both, arguments(bytes(4, 1), bytes(4, 2), 0), results));
  EXPECT_EQ(results[0].as_i32(), 7);
  ASSERT_EQ(reports.size(), 2u);
  EXPECT_TRUE(reports[0].starts_with("expect_eq at program.both+")) << reports[0];
  EXPECT_TRUE(reports[1].starts_with("expect_true at program.both+")) << reports[1];
  EXPECT_NE(reports[0].substr(reports[0].find('+')), reports[1].substr(reports[1].find('+')));
  reports.clear();
  ASSERT_OK(invocation.call(both, arguments(bytes(4, 1), bytes(4, 1), 1), results));
  EXPECT_TRUE(reports.empty());
}

TEST_P(CheckProgram, WithoutASinkTheFirstOneFailsTheCallAtItsPlace) {
  load({});
  vm::Invocation invocation(context);
  std::vector<vm::Variant> results(1);
  const auto done = invocation.call(both, arguments(bytes(4, 1), bytes(4, 2), 0), results);
  EXPECT_FAILS(FAILED_PRECONDITION, "'expect_eq' does not hold", done);
  EXPECT_FAILS(FAILED_PRECONDITION, "at program.both+", done);
}

// A step ends at a wait for a copy; whether a wait is needed depends on timing.
TEST_P(CheckProgram, WaitsForCopiesInSteps) {
  load_telling();
  std::binary_semaphore ready(0);
  vm::Invocation invocation(context);
  invocation.set_ready_hook(
      {[](void* user) { static_cast<std::binary_semaphore*>(user)->release(); }, &ready});
  constexpr size_t kSize = 4 << 20;
  const auto left = bytes(kSize, 1);
  const auto right = bytes(kSize, 2);
  for (int turn = 0; turn < 10; ++turn) {
    const bool same = turn % 2 == 0;
    auto outcome = invocation.begin(both, arguments(left, same ? left : right, 1));
    while (outcome && *outcome != vm::Outcome::done) {
      if (*outcome == vm::Outcome::waiting) ready.acquire();
      outcome = invocation.resume();
    }
    ASSERT_TRUE(outcome) << outcome.error().text();
    std::vector<vm::Variant> results(1);
    invocation.take_results(results);
    EXPECT_EQ(results[0].as_i32(), 7);
    EXPECT_EQ(reports.size(), same ? 0u : 1u);
    reports.clear();
  }
  invocation.set_ready_hook({});
}

INSTANTIATE_TEST_SUITE_P(Devices, CheckProgram, ::testing::Values("local-sync", "local-task"),
                         [](const auto& device_info) {
                           return std::string(device_info.param) == "local-sync" ? "sync" : "task";
                         });

}  // namespace
}  // namespace halyard::modules
