// Capturing: every form in which programs execute command buffers is captured, buffers of another driver too.
#include <gtest/gtest.h>
#include <unistd.h>

#include "fixtures.h"
#include "hal/capture/replay.h"
#include "kernels.h"
#include "modules/hal_functions.h"
#include "testing.h"

namespace halyard::modules {
namespace {

class HalCapture : public ::testing::Test {
 protected:
  void SetUp() override {
    device = ASSERT_VALUE(open_device("local-sync"));
    capture = hal::Capture::create(path()).value();
  }
  std::string path() const { return (folder / "c.hycap").string(); }
  hal::CaptureFile captured() {
    capture = nullptr;
    auto file = hal::read_capture(::halyard::Bytes::map_file(path()).value(), hal::Incomplete::refuse);
    EXPECT_TRUE(file) << file.error().text();
    return file ? *std::move(file) : hal::CaptureFile();
  }
  static Ref<hal::Buffer> zeros(hal::Device& device, size_t size) {
    return buffer_of(device, std::vector<uint8_t>(size), 0x3000C03, 0x32);
  }
  void expect_same(const hal::CaptureFile& file) {
    hal::Replay replay(file, device);
    for (size_t i = 0; i < file.executions.size(); ++i) {
      const auto result = ASSERT_VALUE(replay.execute(i));
      EXPECT_EQ(result.outcome, hal::ReplayResult::Outcome::same) << i;
    }
  }

  TemporaryFolder folder;
  Ref<hal::Device> device;
  Ref<hal::Capture> capture;
};

TEST_F(HalCapture, EveryFormOfExecute) {
  auto module = std::make_unique<ModuleCaller>(create_hal_module({.devices = {device}, .capture = capture}));
  const Ref<hal::Buffer> target = zeros(*device, 8);
  const auto direct = *hal::CommandBuffer::create(device, 0, hal::kTransfer, hal::kAnyQueue, 0);
  ASSERT_TRUE(direct->fill({target.get(), 0, 0, 4}, 1, 1));
  ASSERT_TRUE(direct->finalize());
  const auto indirect = *hal::CommandBuffer::create(device, 0, hal::kTransfer, hal::kAnyQueue, 1);
  ASSERT_TRUE(indirect->fill({nullptr, 0, 0, 2}, 2, 1));
  ASSERT_TRUE(indirect->finalize());
  const Entries table = {target, 4, 4};
  EXPECT_TRUE(
      module->status("device.queue.execute", "0rIrrrI_v", {device, kAny, nullptr, nullptr, direct, 0}).ok());
  EXPECT_TRUE(
      module->status("device.queue.execute", "0rIrrCrD_v", {device, kAny, nullptr, nullptr, Entries{direct}})
          .ok());
  EXPECT_TRUE(module
                  ->status("device.queue.execute.indirect", "0rIrrrICrIID_v",
                           {device, kAny, nullptr, nullptr, indirect, 0, table})
                  .ok());
  EXPECT_TRUE(module
                  ->status("device.queue.execute.indirect", "0rIrrrCrIID_v",
                           {device, kAny, nullptr, nullptr, indirect, table})
                  .ok());
  module = nullptr;
  const hal::CaptureFile file = captured();
  ASSERT_EQ(file.executions.size(), 4u);
  EXPECT_EQ(file.executions[0].buffers[0].ranges[0].offset, 0u);
  EXPECT_EQ(file.executions[3].buffers[0].ranges[0].offset, 4u);
  EXPECT_EQ(file.executions[3].entries.size(), 1u);
  expect_same(file);
}

TEST_F(HalCapture, BuffersOfAnotherDriver) {
  auto opened = ASSERT_VALUE(open_device("null"));
  const Ref<vm::Buffer> bytes = assembled_kernels();
  const auto executable =
      hal::Executable::create(device, hal::kAnyQueue, "vmvx-bytecode-fb", bytes->span(), bytes, {}).value();
  const Ref<hal::Buffer> theirs = zeros(*opened, 16);
  const Ref<hal::Buffer> bound = zeros(*opened, 32);
  const auto commands =
      *hal::CommandBuffer::create(device, 0, hal::kTransfer | hal::kDispatchCategory, hal::kAnyQueue, 3);
  const uint32_t constants[] = {3, 1};  // scale: word i = i * 3 + 1
  for (const hal::BufferRange range : {hal::BufferRange{theirs.get(), 0, 0, 16}, {nullptr, 2, 0, 16}})
    ASSERT_TRUE(commands->dispatch({.executable = executable.get(),
                                    .function = 1,
                                    .workgroups = {4, 1, 1},
                                    .constants = constants,
                                    .bindings = {&range, 1}}));
  ASSERT_TRUE(commands->finalize());
  const Ref<hal::Fence> done = hal::Fence::create(opened).value();  // signalled by the host
  const hal::Binding table[] = {{}, {}, {bound.get(), 8, 16}};
  ASSERT_TRUE(capture->execute({*device, hal::kAnyQueue, nullptr, done.get()}, *commands, table));
  EXPECT_TRUE(done->query().ok()) << done->query().text();
  int32_t words[4] = {};
  ASSERT_TRUE(bound->read(8, words, sizeof words));
  EXPECT_EQ(words[3], 10);

  const hal::CaptureFile file = captured();
  ASSERT_EQ(file.executions.size(), 1u);
  const hal::CapturedExecution& execution = file.executions[0];
  EXPECT_EQ(execution.device, "local-sync://");
  ASSERT_EQ(execution.buffers.size(), 2u);
  EXPECT_EQ(execution.buffers[0].device, "null://");
  EXPECT_EQ(execution.entries.size(), 3u);
  EXPECT_FALSE(hal::command_text(execution.commands[0]).contains("slot"))
      << hal::command_text(execution.commands[0]);
  expect_same(file);
}

}  // namespace
}  // namespace halyard::modules
