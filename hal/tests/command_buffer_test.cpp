// Recording: errors, requirements of slots, lifetimes, text.
#include "hal/command/command_buffer.h"

#include <gtest/gtest.h>

#include <string>

#include "hal/queue/queue.h"
#include "hal_test.h"

namespace halyard::hal {
namespace {

class CommandBufferTest : public FakeDriverTest {
 protected:
  static Ref<Buffer> make_zeros(Device& device, size_t size, uint32_t usage = kPlainUsage) {
    return make_buffer(device, std::vector<uint8_t>(size), usage);
  }
  Ref<Buffer> make_zeros(size_t size, uint32_t usage = kPlainUsage) {
    return make_zeros(*device_, size, usage);
  }

  const Ref<Device> device_ = open_fake_device();
};

TEST_F(CommandBufferTest, InlineNeedsOneShotAndNoSlots) {
  EXPECT_FAILS(INVALID_ARGUMENT, "ONE_SHOT",
               CommandBuffer::create(device_, kAllowInline, kTransfersAndDispatches, kAnyQueue, 0));
  EXPECT_FAILS(
      INVALID_ARGUMENT, "ALLOW_INLINE_EXECUTION, found 1",
      CommandBuffer::create(device_, kAllowInline | kOneShot, kTransfersAndDispatches, kAnyQueue, 1));
  EXPECT_OK(CommandBuffer::create(device_, kAllowInline | kOneShot, kTransfersAndDispatches, kAnyQueue, 0));
}

TEST_F(CommandBufferTest, RecordsOnlyUntilFinalized) {
  const Ref<Buffer> buffer = make_zeros(8);
  const Ref<Executable> executable = load_fake(device_, "f 0 0\n");
  const Ref<CommandBuffer> commands = record(device_);
  EXPECT_EQ(commands->state(), CommandBuffer::State::recording);
  EXPECT_OK(commands->finalize());
  EXPECT_EQ(commands->state(), CommandBuffer::State::ready);
  const uint8_t byte[1] = {};
  const char* text = "being recorded";
  EXPECT_FAILS(FAILED_PRECONDITION, text, commands->barrier(28, 13));
  EXPECT_FAILS(FAILED_PRECONDITION, text, commands->begin_debug_group("x"));
  EXPECT_FAILS(FAILED_PRECONDITION, text, commands->end_debug_group());
  EXPECT_FAILS(FAILED_PRECONDITION, text, commands->advise({buffer.get()}));
  EXPECT_FAILS(FAILED_PRECONDITION, text,
               commands->fill({buffer.get(), 0, 0, 4}, 0, 3));  // checked before the pattern
  EXPECT_FAILS(FAILED_PRECONDITION, text, commands->update({buffer.get()}, byte));
  EXPECT_FAILS(FAILED_PRECONDITION, text, commands->copy({buffer.get(), 0, 0, 4}, {buffer.get(), 0, 4, 4}));
  EXPECT_FAILS(FAILED_PRECONDITION, text,
               commands->dispatch({executable.get(), 0, {1, 1, 1}, {}, {}, nullptr}));
  EXPECT_FAILS(FAILED_PRECONDITION, text, commands->finalize());
  EXPECT_EQ(commands->command_count(), 0u);
}

TEST_F(CommandBufferTest, NeedsTheCategory) {
  const Ref<Buffer> buffer = make_zeros(8);
  const Ref<Executable> executable = load_fake(device_, "f 0 0\n");
  const Ref<CommandBuffer> dispatches = record(device_, 0, 0, kDispatchCategory);
  const char* text = "categories TRANSFER, found DISPATCH";
  const uint8_t byte[1] = {};
  EXPECT_FAILS(FAILED_PRECONDITION, text, dispatches->fill({buffer.get(), 0, 0, 4}, 0, 4));
  EXPECT_FAILS(FAILED_PRECONDITION, text, dispatches->update({buffer.get()}, byte));
  EXPECT_FAILS(FAILED_PRECONDITION, text, dispatches->copy({buffer.get(), 0, 0, 4}, {buffer.get(), 0, 4, 4}));
  EXPECT_FAILS(FAILED_PRECONDITION, text, dispatches->advise({buffer.get()}));
  EXPECT_OK(dispatches->barrier(28, 13));
  EXPECT_FAILS(FAILED_PRECONDITION, "categories DISPATCH, found TRANSFER",
               record(device_, 0, 0, kTransfer)->dispatch({executable.get(), 0, {1, 1, 1}, {}, {}, nullptr}));
  EXPECT_FAILS(FAILED_PRECONDITION, "found NONE",
               record(device_, 0, 0, 0)->fill({buffer.get(), 0, 0, 4}, 0, 4));
}

TEST_F(CommandBufferTest, FillChecksPatternAndAlignment) {
  const Ref<Buffer> buffer = make_zeros(16);
  const Ref<CommandBuffer> commands = record(device_, 0, 1);
  for (const uint32_t length : {0u, 3u, 5u, 8u})
    EXPECT_FAILS(INVALID_ARGUMENT, fmt::format("1, 2 or 4 bytes, found {}", length),
                 commands->fill({buffer.get(), 0, 0, 8}, 0, length));
  EXPECT_FAILS(INVALID_ARGUMENT, "4 bytes, found offset 2 and length 4",
               commands->fill({buffer.get(), 0, 2, 4}, 0, 4));
  EXPECT_FAILS(INVALID_ARGUMENT, "2 bytes, found offset 0 and length 3",
               commands->fill({buffer.get(), 0, 0, 3}, 0, 2));
  EXPECT_FAILS(INVALID_ARGUMENT, "4 bytes, found offset 2 and length 4",
               commands->fill({nullptr, 0, 2, 4}, 0, 4));
  EXPECT_OK(commands->fill({buffer.get(), 0, 2, 4}, 0, 2));
  EXPECT_OK(commands->fill({buffer.get(), 0, 3, 5}, 0, 1));
  // Alignment is checked relative to the allocation.
  const Ref<Buffer> odd = buffer->subspan(2, 8).value();
  EXPECT_FAILS(INVALID_ARGUMENT, "offset 0 in a buffer at byte 2",
               commands->fill({odd.get(), 0, 0, 4}, 0, 4));
  EXPECT_OK(commands->fill({odd.get(), 0, 0, 4}, 0, 2));
}

TEST_F(CommandBufferTest, RangesStayWithinTheBuffer) {
  const Ref<Buffer> allocation = make_zeros(64);
  const Ref<Buffer> buffer = allocation->subspan(16, 16).value();
  const Ref<CommandBuffer> commands =
      record(device_, kUnvalidated | kUnretained);  // modes that turn no check off
  const uint8_t bytes[8] = {};
  EXPECT_FAILS(OUT_OF_RANGE, "", commands->fill({buffer.get(), 0, 8, 12}, 0, 4));
  EXPECT_FAILS(OUT_OF_RANGE, "", commands->fill({buffer.get(), 0, UINT64_MAX - 3, 8}, 0, 4));
  EXPECT_FAILS(OUT_OF_RANGE, "", commands->fill({buffer.get(), 0, 32, kWholeLength}, 0, 4));
  EXPECT_FAILS(OUT_OF_RANGE, "", commands->update({buffer.get(), 0, 9, 8}, bytes));
  EXPECT_FAILS(OUT_OF_RANGE, "copy source",
               commands->copy({buffer.get(), 0, 12, 8}, {allocation.get(), 0, 32, 8}));
  EXPECT_FAILS(OUT_OF_RANGE, "copy target",
               commands->copy({allocation.get(), 0, 48, 8}, {buffer.get(), 0, 12, 8}));
  EXPECT_EQ(commands->command_count(), 0u);
  EXPECT_OK(commands->fill({buffer.get(), 0, 8, 8}, 0, 4));
  EXPECT_OK(commands->update({buffer.get(), 0, 8, 0}, bytes));
  EXPECT_EQ(commands->command_count(), 2u);
}

TEST_F(CommandBufferTest, BuffersMustAllowTheUse) {
  const Ref<Executable> executable = load_fake(device_, "f 1 0\n");
  const Ref<Buffer> source = make_zeros(8, HALYARD_USAGE_TRANSFER_SOURCE | HALYARD_USAGE_MAPPING_SCOPED);
  const Ref<Buffer> target = make_zeros(8, HALYARD_USAGE_TRANSFER_TARGET | HALYARD_USAGE_MAPPING_SCOPED);
  const Ref<CommandBuffer> commands = record(device_, kUnvalidated);
  const uint8_t bytes[4] = {};
  EXPECT_FAILS(PERMISSION_DENIED, "TRANSFER_TARGET", commands->fill({source.get(), 0, 0, 8}, 0, 4));
  EXPECT_FAILS(PERMISSION_DENIED, "TRANSFER_TARGET", commands->update({source.get()}, bytes));
  EXPECT_FAILS(PERMISSION_DENIED, "TRANSFER_TARGET",
               commands->copy({source.get(), 0, 0, 4}, {source.get(), 0, 4, 4}));
  EXPECT_FAILS(PERMISSION_DENIED, "TRANSFER_SOURCE",
               commands->copy({target.get(), 0, 0, 4}, {target.get(), 0, 4, 4}));
  EXPECT_OK(commands->copy({source.get(), 0, 0, 4}, {target.get(), 0, 4, 4}));

  const BufferRange binding[] = {{source.get(), 0, 0, 8}};
  EXPECT_FAILS(PERMISSION_DENIED, "binding[0]",
               commands->dispatch({executable.get(), 0, {1, 1, 1}, {}, binding, nullptr}));
  const Ref<Buffer> plain = make_zeros(16, HALYARD_USAGE_DEFAULT | HALYARD_USAGE_MAPPING_SCOPED);
  const BufferRange counts = {plain.get(), 0, 0, 0};
  EXPECT_FAILS(PERMISSION_DENIED, "INDIRECT_PARAMETERS",
               commands->dispatch({load_fake(device_, "f 0 0\n").get(), 0, {}, {}, {}, &counts}));

  // Access: a buffer that may only be read can be bound and copied from.
  const Ref<Buffer> read_only = make_zeros(8);
  read_only->allocation().access = kRead;
  EXPECT_FAILS(PERMISSION_DENIED, "", commands->fill({read_only.get(), 0, 0, 8}, 0, 4));
  EXPECT_OK(commands->copy({read_only.get(), 0, 0, 4}, {target.get(), 0, 0, 4}));
  const BufferRange constant[] = {{read_only.get(), 0, 0, 8}};
  EXPECT_OK(commands->dispatch({executable.get(), 0, {1, 1, 1}, {}, constant, nullptr}));

  const Ref<Buffer> host_only = make_zeros(8);
  host_only->allocation().memory_type = HALYARD_MEMORY_HOST_LOCAL;
  EXPECT_FAILS(PERMISSION_DENIED, "DEVICE_VISIBLE", commands->fill({host_only.get(), 0, 0, 8}, 0, 4));
}

TEST_F(CommandBufferTest, SlotsStayWithinTheCapacity) {
  const Ref<CommandBuffer> none = record(device_);
  EXPECT_FAILS(OUT_OF_RANGE,
               "slot 0 of the binding table, but the command buffer has a binding capacity of 0",
               none->fill({nullptr, 0, 0, 4}, 0, 4));
  const Ref<CommandBuffer> commands = record(device_, 0, 2);
  EXPECT_FAILS(OUT_OF_RANGE, "slot 2 of the binding table", commands->fill({nullptr, 2, 0, 4}, 0, 4));
  EXPECT_FAILS(INVALID_ARGUMENT, "length -1", commands->fill({nullptr, 1, 0, kWholeLength}, 0, 4));
  EXPECT_FAILS(OUT_OF_RANGE, "beyond 64 bits", commands->fill({nullptr, 1, UINT64_MAX - 3, 4}, 0, 4));
  EXPECT_TRUE(commands->slots().empty());
  const Ref<CommandBuffer> wide = record(device_, 0, UINT32_MAX);
  EXPECT_FAILS(OUT_OF_RANGE, "below 65536", wide->fill({nullptr, kMaxSlots, 0, 4}, 0, 4));
  EXPECT_OK(wide->fill({nullptr, kMaxSlots - 1, 0, 4}, 0, 4));
  // The slot number of a direct buffer does not matter.
  const Ref<Buffer> buffer = make_zeros(4);
  EXPECT_OK(commands->fill({buffer.get(), 77, 0, 4}, 0, 4));
}

TEST_F(CommandBufferTest, SlotNeedsAreTheUnionOfItsUses) {
  const Ref<CommandBuffer> commands = record(device_, 0, 4);
  EXPECT_OK(commands->copy({nullptr, 2, 10, 6}, {nullptr, 0, 0, 6}));
  EXPECT_OK(commands->fill({nullptr, 2, 4, 4}, 0, 2));
  EXPECT_OK(commands->fill({nullptr, 2, 4, 4}, 0, 1));
  ASSERT_EQ(commands->slots().size(), 3u);
  EXPECT_FALSE(commands->slots()[1].used);
  const SlotNeeds& slot = commands->slots()[2];
  EXPECT_TRUE(slot.used);
  EXPECT_EQ(slot.extent, 16u);
  EXPECT_EQ(slot.usage, static_cast<uint32_t>(HALYARD_USAGE_TRANSFER));
  EXPECT_EQ(slot.access, static_cast<uint32_t>(kRead | kWrite));
  EXPECT_EQ(slot.alignment, 2u);
  EXPECT_EQ(commands->slots()[0].access, static_cast<uint32_t>(kWrite));
}

TEST_F(CommandBufferTest, CopiesMustNotOverlap) {
  const Ref<Buffer> buffer = make_zeros(32);
  const Ref<Buffer> tail = buffer->subspan(16, 16).value();
  const Ref<CommandBuffer> commands = record(device_);
  const char* text = "do not overlap";
  EXPECT_FAILS(INVALID_ARGUMENT, text, commands->copy({buffer.get(), 0, 0, 8}, {buffer.get(), 0, 4, 8}));
  EXPECT_FAILS(INVALID_ARGUMENT, text, commands->copy({buffer.get(), 0, 4, 8}, {buffer.get(), 0, 0, 8}));
  EXPECT_FAILS(INVALID_ARGUMENT, text, commands->copy({buffer.get(), 0, 4, 8}, {buffer.get(), 0, 4, 8}));
  EXPECT_FAILS(INVALID_ARGUMENT, text, commands->copy({buffer.get(), 0, 12, 8}, {tail.get(), 0, 0, 8}));
  EXPECT_OK(commands->copy({buffer.get(), 0, 0, 8}, {buffer.get(), 0, 8, 8}));
  EXPECT_OK(commands->copy({buffer.get(), 0, 0, 16}, {tail.get(), 0, 0, kWholeLength}));
  EXPECT_FAILS(INVALID_ARGUMENT, "copy of 16 bytes to a range of 8 bytes",
               commands->copy({buffer.get(), 0, 0, 16}, {tail.get(), 0, 8, kWholeLength}));
}

TEST_F(CommandBufferTest, EmptyCommandsAreNotRecorded) {
  const Ref<Executable> executable = load_fake(device_, "f 0 0\n");
  const Ref<Buffer> buffer = make_zeros(8);
  const Ref<CommandBuffer> commands = record(device_);
  EXPECT_OK(commands->fill({nullptr, 9, 1, 0}, 0, 3));
  EXPECT_OK(commands->copy({nullptr, 9, 1, 0}, {nullptr, 9, 1, 0}));
  EXPECT_OK(commands->update({buffer.get(), 0, 8, 0}, {}));
  EXPECT_OK(commands->fill({buffer.get(), 0, 8, kWholeLength}, 0, 4));
  EXPECT_OK(commands->dispatch({executable.get(), 99, {1, 0, 1}, {}, {}, nullptr}));
  EXPECT_OK(commands->advise({nullptr, 9}));
  EXPECT_EQ(commands->command_count(), 0u);
}

TEST_F(CommandBufferTest, DispatchMatchesItsFunction) {
  const Ref<Executable> executable = load_fake(device_, "f 2 1\n");
  const Ref<Buffer> buffer = make_zeros(16);
  const Ref<CommandBuffer> commands = record(device_);
  const BufferRange ranges[] = {{buffer.get(), 0, 0, 4}, {buffer.get(), 0, 4, 4}};
  const uint32_t constants[] = {1, 2};
  const auto one = std::span(constants).first(1);
  const auto dispatch = [&](uint64_t function, std::span<const uint32_t> given,
                            std::span<const BufferRange> bindings) {
    return commands->dispatch({executable.get(), function, {1, 1, 1}, given, bindings, nullptr});
  };
  EXPECT_FAILS(OUT_OF_RANGE, "function number below 1, found 1", dispatch(1, one, ranges));
  EXPECT_FAILS(OUT_OF_RANGE, "function number below 1, found 18446744073709551615",
               dispatch(UINT64_MAX, one, ranges));
  EXPECT_FAILS(INVALID_ARGUMENT, "takes 1 constants, but 2 were given", dispatch(0, constants, ranges));
  EXPECT_FAILS(INVALID_ARGUMENT, "takes 2 bindings, but 1 were given",
               dispatch(0, one, std::span(ranges).first(1)));
  const std::vector<BufferRange> many(33, ranges[0]);
  EXPECT_FAILS(OUT_OF_RANGE, "at most 32 bindings, found 33", dispatch(0, one, many));
  const BufferRange beyond[] = {ranges[0], {buffer.get(), 0, 12, 8}};
  EXPECT_FAILS(OUT_OF_RANGE, "binding[1]", dispatch(0, one, beyond));
  const BufferRange slot[] = {ranges[0], {nullptr, 0, 0, 8}};
  EXPECT_FAILS(OUT_OF_RANGE, "binding[1]", dispatch(0, one, slot));
  EXPECT_EQ(commands->command_count(), 0u);
  EXPECT_OK(dispatch(0, one, ranges));
}

TEST_F(CommandBufferTest, FunctionsMayHaveUndeclaredCounts) {
  const Ref<Executable> executable = load_fake(device_, "f 4294967295 4294967295\n");
  ASSERT_EQ(executable->functions()[0].binding_count, HALYARD_COUNT_UNDECLARED);
  const Ref<Buffer> buffer = make_zeros(16);
  const BufferRange ranges[] = {{buffer.get(), 0, 0, 4}, {buffer.get(), 0, 4, 4}};
  const uint32_t constants[] = {1, 2};
  const Ref<CommandBuffer> commands = record(device_);
  for (size_t i = 0; i <= 2; ++i)
    EXPECT_OK(commands->dispatch({executable.get(),
                                  0,
                                  {1, 1, 1},
                                  std::span(constants).first(2 - i),
                                  std::span(ranges).first(i),
                                  nullptr}));
  const std::vector<BufferRange> many(33, ranges[0]);
  EXPECT_FAILS(OUT_OF_RANGE, "at most 32 bindings, found 33",
               commands->dispatch({executable.get(), 0, {1, 1, 1}, {}, many, nullptr}));
  EXPECT_OK(commands->finalize());
}

TEST_F(CommandBufferTest, IndirectCountsAreTwelveAlignedBytes) {
  const Ref<Executable> executable = load_fake(device_, "f 0 0\n");
  const Ref<Buffer> buffer = make_zeros(16);
  const Ref<CommandBuffer> commands = record(device_, 0, 1);
  const auto dispatch = [&](const BufferRange& counts) {
    return commands->dispatch({executable.get(), 0, {}, {}, {}, &counts});
  };
  EXPECT_FAILS(INVALID_ARGUMENT, "multiples of 4 bytes, found offset 2", dispatch({buffer.get(), 0, 2, 12}));
  EXPECT_FAILS(OUT_OF_RANGE, "workgroup counts", dispatch({buffer.get(), 0, 8, 0}));
  EXPECT_FAILS(OUT_OF_RANGE, "slot 1 of the binding table", dispatch({nullptr, 1, 0, 0}));
  EXPECT_OK(dispatch({buffer.get(), 0, 4, 0}));
  EXPECT_OK(dispatch({nullptr, 0, 4, 0}));
  EXPECT_EQ(commands->slots()[0].extent, 16u);
  EXPECT_EQ(commands->slots()[0].alignment, 4u);
  EXPECT_EQ(commands->slots()[0].usage, static_cast<uint32_t>(HALYARD_USAGE_INDIRECT_PARAMETERS));
}

TEST_F(CommandBufferTest, NothingOfAnotherDriver) {
  const Ref<Device> other = open_fake_device(open_fake_library(), "queued");
  const Ref<Buffer> buffer = make_zeros(*other, 8);
  const Ref<Executable> executable = load_fake(other, "f 0 0\n");
  const Ref<CommandBuffer> commands = record(device_);
  EXPECT_FAILS(INVALID_ARGUMENT, "buffer belongs to device 'fake://queued'",
               commands->fill({buffer.get(), 0, 0, 8}, 0, 4));
  EXPECT_FAILS(INVALID_ARGUMENT, "executable was created for device 'fake://queued'",
               commands->dispatch({executable.get(), 0, {1, 1, 1}, {}, {}, nullptr}));
}

TEST_F(CommandBufferTest, OtherDevicesOfTheDriverShareMemoryButNoExecutables) {
  const Ref<Device> other = open_fake_device("queued");
  const Ref<Buffer> buffer = make_zeros(*other, 8);
  const Ref<Executable> executable = load_fake(other, "f 0 0\n");
  const Ref<CommandBuffer> commands = record(device_);
  EXPECT_OK(commands->fill({buffer.get(), 0, 0, 8}, 0, 4));
  EXPECT_FAILS(INVALID_ARGUMENT, "executable was created for device 'fake://queued'",
               commands->dispatch({executable.get(), 0, {1, 1, 1}, {}, {}, nullptr}));
}

TEST_F(CommandBufferTest, DebugGroupsBalance) {
  const Ref<CommandBuffer> open = record(device_);
  EXPECT_OK(open->begin_debug_group("x"));
  EXPECT_FAILS(FAILED_PRECONDITION, "found depth 1", open->finalize());
  EXPECT_EQ(open->state(), CommandBuffer::State::recording);
  const Ref<CommandBuffer> closed = record(device_);
  EXPECT_OK(closed->end_debug_group());
  EXPECT_FAILS(FAILED_PRECONDITION, "found depth -1", closed->finalize());
  EXPECT_OK(closed->begin_debug_group("too late"));
  EXPECT_FAILS(FAILED_PRECONDITION, "found depth -1", closed->finalize());
  const Ref<CommandBuffer> nested = record(device_);
  EXPECT_OK(nested->begin_debug_group(""));
  EXPECT_OK(nested->begin_debug_group("inner"));
  EXPECT_OK(nested->end_debug_group());
  EXPECT_OK(nested->end_debug_group());
  EXPECT_OK(nested->finalize());
}

TEST_F(CommandBufferTest, RetainsItsObjects) {
  const int64_t memory = fake().live(FAKE_MEMORY);
  const int64_t executables = fake().live(FAKE_EXECUTABLE);
  Ref<CommandBuffer> commands = record(device_, kUnretained);
  {
    const Ref<Buffer> buffer = make_zeros(8);
    const Ref<Executable> executable = load_fake(device_, "f 1 0\n");
    const BufferRange ranges[] = {{buffer.get(), 0, 0, 8}};
    for (int i = 0; i < 3; ++i)
      EXPECT_OK(commands->dispatch({executable.get(), 0, {1, 1, 1}, {}, ranges, nullptr}));
  }
  EXPECT_OK(commands->finalize());
  EXPECT_EQ(fake().live(FAKE_MEMORY), memory + 1);
  EXPECT_EQ(fake().live(FAKE_EXECUTABLE), executables + 1);
  EXPECT_EQ(fake().live(FAKE_LIST), 1);
  EXPECT_OK(queue_execute({*device_}, *commands, {}));
  commands = nullptr;
  EXPECT_EQ(fake().live(FAKE_MEMORY), memory);
  EXPECT_EQ(fake().live(FAKE_EXECUTABLE), executables);
  EXPECT_EQ(fake().live(FAKE_LIST), 0);
}

TEST_F(CommandBufferTest, UpdateCapturesItsBytes) {
  const Ref<Buffer> buffer = make_zeros(100000);
  const Ref<CommandBuffer> commands = record(device_);
  std::vector<uint8_t> bytes(100000, 7);
  EXPECT_OK(commands->update({buffer.get()}, bytes));
  std::fill(bytes.begin(), bytes.end(), 8);
  EXPECT_OK(commands->finalize());
  EXPECT_OK(queue_execute({*device_}, *commands, {}));
  EXPECT_EQ(bytes_of(*buffer), std::vector<uint8_t>(100000, 7));
}

TEST_F(CommandBufferTest, PrintsItsCommands) {
  const Ref<Executable> executable = load_fake(device_, "mul 2 2\n");
  const Ref<Buffer> first = make_zeros(64);
  const Ref<Buffer> second = make_zeros(16)->subspan(4, 12).value();
  const Ref<CommandBuffer> commands = record(device_, 0, 2);
  const uint8_t bytes[3] = {};
  const uint32_t constants[] = {5, 6};
  const BufferRange ranges[] = {{first.get(), 0, 0, 16}, {nullptr, 1, 8, 4}};
  const BufferRange counts = {first.get(), 0, 4, 0};
  EXPECT_OK(commands->begin_debug_group("part"));
  EXPECT_OK(commands->fill({second.get(), 0, 4, 4}, 0x123456789A, 2));
  EXPECT_OK(commands->update({first.get(), 0, 1, 0}, bytes));
  EXPECT_OK(commands->copy({first.get(), 0, 0, 8}, {nullptr, 0, 16, 8}));
  EXPECT_OK(commands->barrier(28, 13));
  EXPECT_OK(commands->dispatch({executable.get(), 0, {2, 3, 4}, constants, ranges, nullptr}));
  EXPECT_OK(commands->dispatch({executable.get(), 0, {}, constants, ranges, &counts}));
  EXPECT_OK(commands->end_debug_group());
  EXPECT_OK(commands->finalize());
  EXPECT_EQ(commands->command_count(), 8u);
  EXPECT_EQ(commands->text(),
            "begin 'part'\n"
            "fill buffer0[8, +4) with 0x789a\n"
            "update buffer1[1, +3)\n"
            "copy buffer1[0, +8) to slot0[16, +8)\n"
            "barrier 0x1c -> 0xd\n"
            "dispatch executable0.0 'mul' workgroups 2x3x4 constants (5, 6) bindings (buffer1[0, +16), "
            "slot1[8, +4))\n"
            "dispatch executable0.0 'mul' workgroups from buffer1[4, +12) constants (5, 6) bindings "
            "(buffer1[0, +16), "
            "slot1[8, +4))\n"
            "end\n");
  EXPECT_EQ(record(device_)->text(), "");
}

}  // namespace
}  // namespace halyard::hal
