// hal.device.queue.* and hal.command_buffer.*, every signature of every version, on local-sync: work is
// complete when the call returns.
#include <gtest/gtest.h>

#include "hal/queue/fence.h"
#include "hal/queue/wait.h"
#include "modules/hal_functions.h"
#include "testing.h"

namespace halyard::modules {
namespace {

class HalQueue : public HalTest {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(HalTest::SetUp());
    done = hal->object<hal::Fence>("fence.create", "0rI_r", {device, 0});
  }

  Ref<hal::Buffer> buffer(const std::vector<uint8_t>& bytes) {
    return buffer_of(*device, bytes, kDefaultUsage | 0x3000000, 0x30);
  }
  std::vector<uint8_t> contents(const Ref<hal::Buffer>& buffer) { return contents_of<uint8_t>(*buffer); }
  bool signalled() { return hal->number("fence.query", "0r_i", {done}) == 0; }
  bool untouched() { return hal->number("fence.query", "0r_i", {done}) == 17; }
  Status run(std::string_view name, std::string_view convention, const std::vector<Argument>& rest) {
    std::vector<Argument> arguments = {device, kAny, nullptr, done};
    arguments.insert(arguments.end(), rest.begin(), rest.end());
    return hal->status(name, convention, arguments);
  }
  // With an older form: the same without the last argument.
  std::vector<Argument> without_last(std::vector<Argument> arguments) {
    arguments.pop_back();
    return arguments;
  }

  Ref<hal::Fence> done;
};

using Bytes = std::vector<uint8_t>;

TEST_F(HalQueue, Fill) {
  const auto target = buffer(Bytes(8, 9));
  EXPECT_TRUE(run("device.queue.fill", "0rIrrrIIIiI_v", {target, 2, 4, 0x998877665544'0102, 2, 0}).ok());
  EXPECT_EQ(contents(target), (Bytes{9, 9, 2, 1, 2, 1, 9, 9}));
  EXPECT_TRUE(signalled());
  EXPECT_TRUE(run("device.queue.fill", "0rIrrrIIIiI_v", {target, 4, -1, 7, 4, 0}).ok());
  EXPECT_EQ(contents(target), (Bytes{9, 9, 2, 1, 7, 0, 0, 0}));
}

TEST_F(HalQueue, FillErrorsSubmitNothing) {
  const auto target = buffer(Bytes(8));
  const auto fill = [&](int64_t offset, int64_t length, int size) {
    return run("device.queue.fill", "0rIrrrIIIiI_v", {target, offset, length, 1, size, 0});
  };
  EXPECT_FAILS(INVALID_ARGUMENT, "1, 2 or 4 bytes, found 3", fill(0, 6, 3));
  EXPECT_FAILS(INVALID_ARGUMENT, "", fill(2, 4, 4));
  EXPECT_FAILS(INVALID_ARGUMENT, "", fill(0, 6, 4));
  EXPECT_FAILS(OUT_OF_RANGE, "", fill(4, 8, 4));
  EXPECT_FAILS(OUT_OF_RANGE, "", fill(-4, 8, 4));
  EXPECT_TRUE(untouched());
  EXPECT_TRUE(fill(100, 0, 4).ok()) << "length 0 chains the fences only";
  EXPECT_TRUE(signalled());
}

TEST_F(HalQueue, Update) {
  const auto target = buffer(Bytes(4, 9));
  const auto source = bytes_of({1, 2, 3, 4});
  EXPECT_TRUE(run("device.queue.update", "0rIrrrIrIII_v", {source, 1, target, 2, 2, 0}).ok());
  EXPECT_EQ(contents(target), (Bytes{9, 9, 2, 3}));
  EXPECT_TRUE(signalled());
}

TEST_F(HalQueue, UpdateErrors) {
  const auto target = buffer(Bytes(4, 9));
  const auto source = bytes_of({1, 2, 3, 4});
  EXPECT_FAILS(OUT_OF_RANGE, "within the 4 bytes of the vm.buffer, found 2 bytes at offset 3",
               run("device.queue.update", "0rIrrrIrIII_v", {source, 3, target, 0, 2, 0}));
  EXPECT_FAILS(OUT_OF_RANGE, "", run("device.queue.update", "0rIrrrIrIII_v", {source, 0, target, 3, 2, 0}));
  EXPECT_TRUE(untouched());
}

TEST_F(HalQueue, Copy) {
  const auto source = buffer({1, 2, 3, 4});
  const auto target = buffer(Bytes(4, 9));
  EXPECT_TRUE(run("device.queue.copy", "0rIrrrIrIII_v", {source, 1, target, 0, 3, 0}).ok());
  EXPECT_EQ(contents(target), (Bytes{2, 3, 4, 9}));
  EXPECT_FAILS(OUT_OF_RANGE, "", run("device.queue.copy", "0rIrrrIrIII_v", {source, 2, target, 0, 3, 0}));
  EXPECT_FAILS(INVALID_ARGUMENT, "null",
               run("device.queue.copy", "0rIrrrIrIII_v", {nullptr, 2, target, 0, 3, 0}));
}

TEST_F(HalQueue, ReadAndWriteInBothForms) {
  const auto bytes = bytes_of({1, 2, 3, 4});
  const auto file =
      hal->object<hal::File>("ex.file.from_memory", "0rIirIIi_r", {device, kAny, 1, bytes, 0, 4, 0});
  for (const char* convention : {"0rIrrrIrIIi_v", "0rIrrrIrIII_v"}) {
    const auto target = buffer(Bytes(4, 9));
    EXPECT_TRUE(run("device.queue.read", convention, {file, 1, target, 2, 2, 0}).ok());
    EXPECT_EQ(contents(target), (Bytes{9, 9, 2, 3}));
    EXPECT_FAILS(OUT_OF_RANGE, "read 2 bytes at offset 3 of a file of 4 bytes",
                 run("device.queue.read", convention, {file, 3, target, 0, 2, 0}));
    EXPECT_FAILS(OUT_OF_RANGE, "", run("device.queue.read", convention, {file, 0, target, 3, 2, 0}));
    EXPECT_FAILS(PERMISSION_DENIED, "allows WRITE, found one that allows READ",
                 run("device.queue.write", convention, {target, 0, file, 0, 4, 0}));
    std::vector<uint8_t> writable(4, 0);
    const auto out = hal::File::from_memory(writable, hal::kRead | hal::kWrite, nullptr);
    EXPECT_TRUE(run("device.queue.write", convention, {target, 2, out, 1, 2, 0}).ok());
    EXPECT_EQ(writable, (Bytes{0, 2, 3, 0}));
  }
}

TEST_F(HalQueue, AllocaAndDeallocaInBothForms) {
  for (const bool is_new : {false, true}) {
    std::vector<Argument> arguments = {device, kAny, nullptr, done, 0, 0x30, kDefaultUsage, 24};
    if (is_new) arguments.push_back(0);
    const char* convention = is_new ? "0rIrrIiiII_r" : "0rIrriiiI_r";
    const auto made = hal->object<hal::Buffer>("device.queue.alloca", convention, arguments);
    ASSERT_NE(made, nullptr);
    EXPECT_EQ(made->length(), 24u);
    EXPECT_TRUE(signalled());
    arguments[4] = 1;
    EXPECT_FAILS(UNIMPLEMENTED, "pool 0", hal->status("device.queue.alloca", convention, arguments));
    std::vector<Argument> last = {made};
    if (is_new) last.push_back(1);
    EXPECT_TRUE(run("device.queue.dealloca", is_new ? "0rIrrrI_v" : "0rIrrr_v", last).ok());
    EXPECT_EQ(made->length(), 24u);
  }
}

TEST_F(HalQueue, DeallocaOfOtherMemoryChainsTheFences) {
  const auto target = buffer({1, 2, 3});
  EXPECT_TRUE(run("device.queue.dealloca", "0rIrrrI_v", {target, 0}).ok());
  EXPECT_TRUE(signalled());
  EXPECT_EQ(contents(target), (Bytes{1, 2, 3}));
}

TEST_F(HalQueue, BarrierAndFlush) {
  EXPECT_TRUE(run("device.queue.barrier", "0rIrrI_v", {0}).ok());
  EXPECT_TRUE(signalled());
  EXPECT_TRUE(hal->status("device.queue.flush", "0rI_v", {device, kAny}).ok());
  EXPECT_FAILS(INVALID_ARGUMENT, "null", hal->status("device.queue.flush", "0rI_v", {nullptr, kAny}));
}

// ---- Recordings ----

class HalRecording : public HalQueue {
 protected:
  Ref<hal::CommandBuffer> begin(int modes = 0, int capacity = 0, int categories = 3) {
    return hal->object<hal::CommandBuffer>("command_buffer.create", "0riiIi_r",
                                           {device, modes, categories, kAny, capacity});
  }
  void finalize(const Ref<hal::CommandBuffer>& commands) {
    const Status status = hal->status("command_buffer.finalize", "0r_v", {commands});
    EXPECT_TRUE(status.ok()) << status.text();
  }
  Status barrier(const Ref<hal::CommandBuffer>& commands) {
    return hal->status("command_buffer.execution_barrier", "0riiI_v", {commands, 28, 13, 0});
  }
};

TEST_F(HalRecording, TransfersInBothForms) {
  for (const bool is_new : {false, true}) {
    const auto source = buffer({1, 2, 3, 4});
    const auto target = buffer(Bytes(8, 9));
    const auto commands = begin(1);
    const auto record = [&](const char* name, const char* old_form, const char* new_form,
                            const std::vector<Argument>& arguments) {
      const Status status =
          hal->status(name, is_new ? new_form : old_form, is_new ? arguments : without_last(arguments));
      EXPECT_TRUE(status.ok()) << name << ": " << status.text();
      EXPECT_TRUE(hal->status("command_buffer.execution_barrier", is_new ? "0riiI_v" : "0riii_v",
                              {commands, 28, 13, 0})
                      .ok());
    };
    record("command_buffer.fill_buffer", "0rrIIiii_v", "0rrIIiIiI_v",
           {commands, target, 0, 4, 0, 0x0605, 2, 0});
    record("command_buffer.update_buffer", "0rrIrIIi_v", "0rrIrIIiI_v",
           {commands, bytes_of({70, 71, 72}), 1, target, 3, 2, 0, 0});
    record("command_buffer.copy_buffer", "0riirIrII_v", "0riirIrIII_v",
           {commands, 0, 0, source, 1, target, 6, 2, 0});
    finalize(commands);
    EXPECT_TRUE(run("device.queue.execute", "0rIrrrI_v", {commands, 0}).ok());
    EXPECT_EQ(contents(target), (Bytes{5, 6, 5, 71, 72, 9, 2, 3}));
  }
}

TEST_F(HalRecording, UpdateCapturesItsBytes) {
  const auto target = buffer(Bytes(2));
  const auto source = bytes_of({1, 2}, true);
  const auto commands = begin();
  EXPECT_TRUE(
      hal->status("command_buffer.update_buffer", "0rrIrIIiI_v", {commands, source, 0, target, 0, 2, 0, 0})
          .ok());
  source->data()[0] = 50;
  finalize(commands);
  EXPECT_TRUE(run("device.queue.execute", "0rIrrrI_v", {commands, 0}).ok());
  EXPECT_EQ(contents(target), (Bytes{1, 2}));
  EXPECT_FAILS(
      OUT_OF_RANGE, "within the 2 bytes of the vm.buffer, found 2 bytes at offset 1",
      hal->status("command_buffer.update_buffer", "0rrIrIIiI_v", {begin(), source, 1, target, 0, 2, 0, 0}));
}

TEST_F(HalRecording, APatternOfTheOldFormIsIts32Bits) {
  const auto target = buffer(Bytes(4));
  const auto commands = begin();
  EXPECT_TRUE(
      hal->status("command_buffer.fill_buffer", "0rrIIiii_v", {commands, target, 0, 4, 0, -2, 4}).ok());
  finalize(commands);
  EXPECT_TRUE(run("device.queue.execute", "0rIrrrI_v", {commands, 0}).ok());
  EXPECT_EQ(contents(target), (Bytes{0xFE, 0xFF, 0xFF, 0xFF}));
}

TEST_F(HalRecording, SlotsResolveThroughTheTableInBothForms) {
  const auto commands = begin(0, 2);
  EXPECT_TRUE(
      hal->status("command_buffer.fill_buffer", "0rrIIiIiI_v", {commands, nullptr, 1, 2, 1, 7, 1, 0}).ok());
  finalize(commands);
  for (const bool is_new : {false, true}) {
    const auto target = buffer(Bytes(8, 9));
    std::vector<Argument> arguments = {commands, 0, Entries{nullptr, 0, 0, target, 3, 4}};
    if (!is_new) arguments.erase(arguments.begin() + 1);
    const Status status =
        run("device.queue.execute.indirect", is_new ? "0rIrrrICrIID_v" : "0rIrrrCrIID_v", arguments);
    EXPECT_TRUE(status.ok()) << status.text();
    EXPECT_EQ(contents(target), (Bytes{9, 9, 9, 9, 7, 7, 9, 9}));
  }
  EXPECT_FAILS(INVALID_ARGUMENT, "2 slots of a binding table, but was executed without one",
               run("device.queue.execute", "0rIrrrI_v", {commands, 0}));
  EXPECT_FAILS(OUT_OF_RANGE, "2 slots of a binding table, but the table has 1 entries",
               run("device.queue.execute.indirect", "0rIrrrICrIID_v", {commands, 0, Entries{nullptr, 0, 0}}));
  EXPECT_FAILS(INVALID_ARGUMENT, "binding table slot 1",
               run("device.queue.execute.indirect", "0rIrrrICrIID_v",
                   {commands, 0, Entries{nullptr, 0, 0, nullptr, 0, 0}}));
}

TEST_F(HalRecording, ExecuteOfHal5TakesNoneOrOne) {
  const auto target = buffer(Bytes(2));
  const auto commands = begin();
  EXPECT_TRUE(
      hal->status("command_buffer.fill_buffer", "0rrIIiii_v", {commands, target, 0, 2, 0, 3, 1}).ok());
  finalize(commands);
  EXPECT_TRUE(run("device.queue.execute", "0rIrrCrD_v", {Entries{}}).ok());
  EXPECT_TRUE(signalled());
  EXPECT_EQ(contents(target), (Bytes{0, 0}));
  EXPECT_TRUE(run("device.queue.execute", "0rIrrCrD_v", {Entries{commands}}).ok());
  EXPECT_EQ(contents(target), (Bytes{3, 3}));
  EXPECT_FAILS(INVALID_ARGUMENT, "one command buffer or none, found 2",
               run("device.queue.execute", "0rIrrCrD_v", {Entries{commands, commands}}));
  EXPECT_FAILS(INVALID_ARGUMENT, "null", run("device.queue.execute", "0rIrrCrD_v", {Entries{nullptr}}));
}

TEST_F(HalRecording, LifeOfARecording) {
  const auto target = buffer(Bytes(4));
  const auto commands = begin();
  EXPECT_FAILS(FAILED_PRECONDITION, "being recorded",
               run("device.queue.execute", "0rIrrrI_v", {commands, 0}));
  finalize(commands);
  EXPECT_FAILS(FAILED_PRECONDITION, "being recorded",
               hal->status("command_buffer.finalize", "0r_v", {commands}));
  EXPECT_FAILS(FAILED_PRECONDITION, "being recorded", barrier(commands));
  EXPECT_FAILS(FAILED_PRECONDITION, "being recorded",
               hal->status("command_buffer.advise_buffer", "0rrIIIi_v", {commands, target, 0, 0, 0, 0}));
  EXPECT_FAILS(FAILED_PRECONDITION, "being recorded",
               hal->status("command_buffer.begin_debug_group", "0rr_v", {commands, text_of("x")}));
}

TEST_F(HalRecording, Modes) {
  EXPECT_FAILS(INVALID_ARGUMENT, "ONE_SHOT",
               hal->status("command_buffer.create", "0riiIi_r", {device, 0x10, 3, kAny, 0}));
  EXPECT_FAILS(INVALID_ARGUMENT, "ALLOW_INLINE_EXECUTION, found 1",
               hal->status("command_buffer.create", "0riiIi_r", {device, 0x11, 3, kAny, 1}));
  EXPECT_FAILS(INVALID_ARGUMENT, "null",
               hal->status("command_buffer.create", "0riiIi_r", {nullptr, 0, 3, kAny, 0}));
}

TEST_F(HalRecording, Categories) {
  const auto target = buffer(Bytes(4));
  EXPECT_FAILS(
      FAILED_PRECONDITION, "categories TRANSFER, found DISPATCH",
      hal->status("command_buffer.fill_buffer", "0rrIIiIiI_v", {begin(0, 0, 2), target, 0, 4, 0, 0, 4, 0}));
  EXPECT_TRUE(barrier(begin(0, 0, 0)).ok());
}

TEST_F(HalRecording, DebugGroupsAndHints) {
  const auto commands = begin();
  EXPECT_TRUE(hal->status("command_buffer.begin_debug_group", "0rr_v", {commands, text_of("")}).ok());
  EXPECT_TRUE(
      hal->status("command_buffer.advise_buffer", "0rrIIIi_v", {commands, buffer({1}), 0, 0, 0, 0}).ok());
  EXPECT_TRUE(hal->status("command_buffer.end_debug_group", "0r_v", {commands}).ok());
  finalize(commands);
  EXPECT_TRUE(run("device.queue.execute", "0rIrrrI_v", {commands, 0}).ok());

  const auto unbalanced = begin();
  EXPECT_TRUE(hal->status("command_buffer.begin_debug_group", "0rr_v", {unbalanced, text_of("open")}).ok());
  EXPECT_FAILS(FAILED_PRECONDITION, "found depth 1",
               hal->status("command_buffer.finalize", "0r_v", {unbalanced}));
}

TEST_F(HalRecording, References) {
  const auto target = buffer(Bytes(4));
  EXPECT_FAILS(
      OUT_OF_RANGE, "slot 1 of the binding table, but the command buffer has a binding capacity of 1",
      hal->status("command_buffer.fill_buffer", "0rrIIiIiI_v", {begin(0, 1), nullptr, 0, 4, 1, 0, 4, 0}));
  EXPECT_FAILS(
      INVALID_ARGUMENT, "do not overlap",
      hal->status("command_buffer.copy_buffer", "0riirIrIII_v", {begin(), 0, 0, target, 0, target, 1, 2, 0}));
  EXPECT_TRUE(
      hal->status("command_buffer.copy_buffer", "0riirIrIII_v", {begin(), 9, 9, nullptr, 0, nullptr, 1, 0, 0})
          .ok())
      << "length 0 is not looked at";
  EXPECT_FAILS(INVALID_ARGUMENT, "null",
               hal->status("command_buffer.collective", "0rriiiirrIIIII_v",
                           {begin(), nullptr, 0, 0, 0, 0, nullptr, nullptr, 0, 0, 0, 0, 0}));
}

// ---- Traced step by step ----

class HalTracedQueue : public HalRecording {
 protected:
  void SetUp() override { trace(hal::TracedSteps::all); }
  void trace(hal::TracedSteps steps) {
    HalRecording::SetUp();
    const auto sink = [this](const hal::TracedTensor& tensor) -> Result<> {
      told.push_back(std::string(tensor.operation) + ":" + std::to_string(tensor.bytes.size()));
      return failure ? Result<>(std::unexpected(failure)) : Result<>();
    };
    hal = std::make_unique<ModuleCaller>(
        create_hal_module({.devices = {device}, .tensors = make<hal::TensorTrace>("*", sink, steps)}));
    done = hal->object<hal::Fence>("fence.create", "0rI_r", {device, 0});
  }
  Status await() {
    hal::Fence* awaited = done.get();
    return hal::await({&awaited, 1}, 10000);
  }

  std::vector<std::string> told;
  Status failure;
};

TEST_F(HalTracedQueue, QueueOperationsWriteAndAreTold) {
  const auto target = buffer(Bytes(8, 9));
  const auto file = hal->object<hal::File>("ex.file.from_memory", "0rIirIIi_r",
                                           {device, kAny, 1, bytes_of({31, 32, 33}), 0, 3, 0});
  EXPECT_OK(run("device.queue.fill", "0rIrrrIIIiI_v", {target, 0, 4, 0x0201, 2, 0}));
  EXPECT_OK(await());
  done = hal->object<hal::Fence>("fence.create", "0rI_r", {device, 0});
  EXPECT_OK(run("device.queue.update", "0rIrrrIrIII_v", {bytes_of({11, 12, 13}), 1, target, 4, 2, 0}));
  EXPECT_OK(await());
  done = hal->object<hal::Fence>("fence.create", "0rI_r", {device, 0});
  EXPECT_OK(run("device.queue.copy", "0rIrrrIrIII_v", {buffer({21, 22}), 1, target, 6, 1, 0}));
  EXPECT_OK(await());
  done = hal->object<hal::Fence>("fence.create", "0rI_r", {device, 0});
  EXPECT_OK(run("device.queue.read", "0rIrrrIrIII_v", {file, 2, target, 7, 1, 0}));
  EXPECT_OK(await());
  EXPECT_EQ(contents(target), (Bytes{1, 2, 1, 2, 12, 13, 22, 33}));
  EXPECT_EQ(told, (std::vector<std::string>{"fill:4", "update:2", "copy:1", "read:1"}));
}

TEST_F(HalTracedQueue, CommandsWriteAndAreTold) {
  const auto target = buffer(Bytes(4, 9));
  const auto commands = begin();
  EXPECT_OK(hal->status("command_buffer.fill_buffer", "0rrIIiIiI_v", {commands, target, 0, 2, 0, 7, 1, 0}));
  EXPECT_OK(hal->status("command_buffer.fill_buffer", "0rrIIiIiI_v", {commands, target, 0, 0, 0, 7, 1, 0}));
  EXPECT_FALSE(
      hal->status("command_buffer.fill_buffer", "0rrIIiIiI_v", {commands, target, 0, 9, 0, 7, 1, 0}).ok());
  finalize(commands);
  EXPECT_OK(run("device.queue.execute", "0rIrrrI_v", {commands, 0}));
  EXPECT_OK(await());
  EXPECT_EQ(contents(target), (Bytes{7, 7, 9, 9}));
  ASSERT_FALSE(told.empty());
  EXPECT_EQ(told[0], "fill:2");
}

TEST_F(HalTracedQueue, AFailureOfTheSinkFailsTheWork) {
  failure = Status(Code::ABORTED, "enough");
  const auto target = buffer(Bytes(4, 9));
  const Status submitted = run("device.queue.fill", "0rIrrrIIIiI_v", {target, 0, 4, 7, 1, 0});
  EXPECT_FAILS(ABORTED, "enough", submitted.ok() ? await() : submitted);
}

TEST_F(HalTracedQueue, WorkThatOutlivesTheContextIsNotTold) {
  const auto target = buffer(Bytes(4, 9));
  const auto ready = hal->object<hal::Fence>("fence.create", "0rI_r", {device, 0});
  EXPECT_OK(
      hal->status("device.queue.fill", "0rIrrrIIIiI_v", {device, kAny, ready, done, target, 0, 4, 7, 1, 0}));
  hal.reset();
  EXPECT_OK(ready->signal());
  EXPECT_OK(await());
  EXPECT_EQ(contents(target), Bytes(4, 7));
  EXPECT_TRUE(told.empty());
}

TEST_F(HalTracedQueue, OfDispatchesAloneQueueOperationsAreNotTold) {
  trace(hal::TracedSteps::dispatches);
  const auto target = buffer(Bytes(4, 9));
  EXPECT_OK(run("device.queue.fill", "0rIrrrIIIiI_v", {target, 0, 4, 7, 1, 0}));
  EXPECT_OK(await());
  EXPECT_EQ(contents(target), Bytes(4, 7));
  EXPECT_TRUE(told.empty());
}

}  // namespace
}  // namespace halyard::modules
