// Captures: contents of the file, results of replay, and invalid files.
#include "hal/capture/capture.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <string>

#include "hal/capture/capture_file.h"
#include "hal/capture/replay.h"
#include "sample_drivers.h"

namespace halyard::hal {
namespace {

using Values = std::vector<uint8_t>;
using Outcome = ReplayResult::Outcome;

class CaptureTest : public FakeDriverTest {
 protected:
  std::string path(const std::string& name = "c.hycap") const { return folder_.path() + "/" + name; }
  Values file() const { return file_bytes(path()); }
  CaptureFile captured() const {
    Result<CaptureFile> read = read_capture(Bytes::own(file()), Incomplete::refuse);
    EXPECT_OK(read);
    return read ? *std::move(read) : CaptureFile();
  }

  static constexpr uint32_t kSubgroupSizes[] = {32, 64};
  static Ref<Executable> load(const Ref<Device>& device, std::string_view text) {
    return Executable::create(device, kAnyQueue, "fake",
                              {reinterpret_cast<const uint8_t*>(text.data()), text.size()}, nullptr, {},
                              {.subgroup_sizes = kSubgroupSizes})
        .value();
  }
  // A command buffer that fills a range with a byte.
  static Ref<CommandBuffer> record_fill(const Ref<Device>& device, const BufferRange& range, uint8_t byte) {
    Ref<CommandBuffer> commands = record(device);
    EXPECT_OK(commands->fill(range, byte, 1));
    EXPECT_OK(commands->finalize());
    return commands;
  }
  static Ref<Capture> open(const std::string& path) { return Capture::create(path).value(); }

  // Captures every kind of command, with buffers and with slots, on this device.
  void capture_everything(const Ref<Device>& device) {
    const Ref<Capture> capture = open(path());
    execute_everything(device, *capture);
  }
  static void execute_everything(const Ref<Device>& device, Capture& capture) {
    const Ref<Executable> executable = load(device, "add 2 1\n");
    const Ref<Buffer> direct = make_buffer(*device, {2, 0, 0, 0, 3, 0, 0, 0, 1, 0, 0, 0, 9, 9, 9, 9});
    const Ref<Buffer> bound = make_buffer(*device, Values(32, 5));
    const Ref<CommandBuffer> commands = record(device, 0, 3);
    const uint32_t constants[] = {7};
    const BufferRange ranges[] = {{direct.get(), 0, 12, 4}, {nullptr, 1, 8, 4}};
    const BufferRange counts = {direct.get(), 0, 0, 0};
    EXPECT_OK(commands->begin_debug_group("part"));
    EXPECT_OK(commands->fill({nullptr, 1, 0, 4}, 0x0201, 2));
    EXPECT_OK(commands->update({nullptr, 1, 5, 0}, Values{8, 7, 6}));
    EXPECT_OK(commands->barrier(28, 13));
    EXPECT_OK(commands->copy({nullptr, 1, 0, 2}, {nullptr, 1, 12, 2}));
    EXPECT_OK(commands->dispatch({executable.get(), 0, {1, 1, 2}, constants, ranges, nullptr}));
    EXPECT_OK(commands->dispatch({executable.get(), 0, {}, constants, ranges, &counts}));
    EXPECT_OK(commands->end_debug_group());
    EXPECT_OK(commands->finalize());
    const Binding table[] = {{}, {bound.get(), 4, 20}};
    EXPECT_OK(capture.execute({*device}, *commands, table));
    // The dispatches add 7 + 2 and 7 + 6 to the word of 5s.
    EXPECT_EQ(bytes_of(*bound), (Values{5, 5, 5, 5, 1, 2, 1, 2, 5, 8, 7, 6, 27, 5, 5, 5,
                                        1, 2, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5,  5, 5, 5}));
  }

  // Writes a capture with one execution of these commands on a buffer of 16 bytes.
  void write(const std::string& device, std::vector<Command> commands) const {
    CapturedExecution execution;
    execution.device = device;
    execution.buffers = {{.device = "fake", .size = 16}};
    execution.commands = std::move(commands);
    EXPECT_OK(CaptureWriter::create(path()).value()->begin(execution, {}));
  }

  const TemporaryFolder folder_;
};

Values joined(const CapturedBytes& pieces) {
  Values all;
  for (const std::span<const uint8_t> piece : pieces) all.insert(all.end(), piece.begin(), piece.end());
  return all;
}

TEST_F(CaptureTest, HoldsCommandsExecutablesAndBytes) {
  capture_everything(open_fake_device());
  const CaptureFile file = captured();
  ASSERT_EQ(file.executions.size(), 1u);
  ASSERT_EQ(file.executables.size(), 1u);
  EXPECT_EQ(file.executables[0].format, "fake");
  EXPECT_EQ(file.executables[0].subgroup_sizes, (std::vector<uint32_t>{32, 64}));
  EXPECT_EQ(joined({file.executables[0].data}), (Values{'a', 'd', 'd', ' ', '2', ' ', '1', '\n'}));
  const CapturedExecution& execution = file.executions[0];
  EXPECT_EQ(execution.device, "fake://");
  EXPECT_EQ(execution.outcome, CapturedExecution::Outcome::done);
  std::string text;
  for (const Command& command : execution.commands) text += command_text(command) + "\n";
  EXPECT_EQ(
      text,
      "begin 'part'\n"
      "fill slot1[0, +4) with 0x0201\n"
      "update slot1[5, +3)\n"
      "barrier 0x1c -> 0xd\n"
      "copy slot1[0, +2) to slot1[12, +2)\n"
      "dispatch executable0.0 'add' workgroups 1x1x2 constants (7) bindings (buffer0[12, +4), slot1[8, "
      "+4))\n"
      "dispatch executable0.0 'add' workgroups from buffer0[0, +12) constants (7) bindings (buffer0[12, "
      "+4), slot1[8, +4))\n"
      "end\n");
  EXPECT_EQ(joined({std::get<UpdateCommand>(execution.commands[2]).bytes}), (Values{8, 7, 6}));
  ASSERT_EQ(execution.entries.size(), 2u);
  EXPECT_EQ(execution.entries[0].buffer, kNoBuffer);
  EXPECT_EQ(execution.entries[1].buffer, 1u);
  EXPECT_EQ(execution.entries[1].offset, 4u);
  EXPECT_EQ(execution.entries[1].length, 20u);

  ASSERT_EQ(execution.buffers.size(), 2u);
  const CapturedBuffer& direct = execution.buffers[0];
  EXPECT_EQ(direct.size, 16u);
  ASSERT_EQ(direct.ranges.size(), 1u);  // the counts and the binding are adjacent
  EXPECT_EQ(joined(direct.ranges[0].before), (Values{2, 0, 0, 0, 3, 0, 0, 0, 1, 0, 0, 0, 9, 9, 9, 9}));
  EXPECT_EQ(joined(direct.ranges[0].after), (Values{2, 0, 0, 0, 3, 0, 0, 0, 1, 0, 0, 0, 31, 9, 9, 9}));
  const CapturedBuffer& bound = execution.buffers[1];
  ASSERT_EQ(bound.ranges.size(), 2u);  // no command touches byte 4 of the entry
  EXPECT_EQ(bound.ranges[0].offset, 4u);
  EXPECT_EQ(joined(bound.ranges[0].after), (Values{1, 2, 1, 2}));
  EXPECT_EQ(bound.ranges[1].offset, 9u);
  EXPECT_EQ(joined(bound.ranges[1].before), Values(9, 5));
  EXPECT_EQ(joined(bound.ranges[1].after), (Values{8, 7, 6, 27, 5, 5, 5, 1, 2}));
}

TEST_F(CaptureTest, ReplaysToTheSameBytesOnEveryDevice) {
  capture_everything(open_fake_device());
  const CaptureFile file = captured();
  for (const char* path : {"", "bare", "opaque"}) {
    Replay replay(file, open_fake_device(path));
    const Result<ReplayResult> result = replay.execute(0);
    ASSERT_TRUE(result) << result.error().text();
    EXPECT_EQ(result->outcome, Outcome::same) << path;
    EXPECT_FAILS(OUT_OF_RANGE, "execution 1", replay.execute(1));
  }
}

TEST_F(CaptureTest, ReadsMemoryThatTheHostCannotMap) {
  const Ref<Device> device = open_fake_device("opaque");
  const Ref<Buffer> buffer =
      Buffer::allocate(*device, kAnyQueue, HALYARD_MEMORY_DEVICE_LOCAL, HALYARD_USAGE_DEFAULT, 4).value();
  ASSERT_FALSE(buffer->is_mappable());
  EXPECT_OK(queue_fill({*device}, *buffer, 0, 4, 3, 1));
  const Ref<CommandBuffer> commands = record_fill(device, {buffer.get(), 0, 1, 2}, 4);
  EXPECT_OK(open(path())->execute({*device}, *commands, {}));
  const CaptureFile file = captured();
  ASSERT_EQ(file.executions.size(), 1u);
  EXPECT_EQ(joined(file.executions[0].buffers[0].ranges[0].before), (Values{3, 3}));
  EXPECT_EQ(joined(file.executions[0].buffers[0].ranges[0].after), (Values{4, 4}));
}

TEST_F(CaptureTest, UnreadableMemoryFailsTheWork) {
  const Ref<Device> device = open_fake_device("opaque");
  const Ref<Buffer> buffer =
      Buffer::allocate(*device, kAnyQueue, 0, HALYARD_USAGE_TRANSFER_TARGET, 4).value();
  const Ref<CommandBuffer> commands = record_fill(device, {buffer.get(), 0, 0, 4}, 4);
  const Ref<Fence> signal = make_fence(device);
  EXPECT_FAILS(PERMISSION_DENIED, "capturing 4 bytes at byte 0 of buffer 0",
               open(path())->execute({*device, kAnyQueue, nullptr, signal.get()}, *commands, {}));
  EXPECT_FAILS(PERMISSION_DENIED, "TRANSFER_SOURCE", signal->query());
  EXPECT_EQ(fake_log(), "");
}

TEST_F(CaptureTest, HoldsNoThreadWhileItWaits) {
  const Ref<Device> device = open_fake_device("queued");
  const Ref<Buffer> buffer = make_buffer(*device, {1, 2});
  const Ref<CommandBuffer> commands = record_fill(device, {buffer.get(), 0, 0, 1}, 9);
  const auto [wait, signal] = make_fences<2>(device);
  Ref<Capture> capture = open(path());
  EXPECT_OK(capture->execute({*device, kAnyQueue, wait.get(), signal.get()}, *commands, {}));
  const uint8_t later = 7;  // the captured contents are those when the wait is reached
  EXPECT_OK(buffer->write(0, &later, 1));
  EXPECT_OK(wait->signal());
  EXPECT_EQ(signal->query().code(), Code::DEFERRED);
  EXPECT_GT(fake().run_ready(), 0u);
  EXPECT_OK(signal->query());
  capture = nullptr;
  const CaptureFile file = captured();
  ASSERT_EQ(file.executions.size(), 1u);
  EXPECT_EQ(joined(file.executions[0].buffers[0].ranges[0].before), (Values{7}));
  EXPECT_EQ(joined(file.executions[0].buffers[0].ranges[0].after), (Values{9}));
}

// A program may end as soon as its fence is reached, so the file must be closed before.
TEST_F(CaptureTest, IsClosedBeforeTheProgramIsNotified) {
  const Ref<Device> device = open_fake_device("queued");
  const Ref<Buffer> buffer = make_buffer(*device, {1, 2});
  const Ref<CommandBuffer> commands = record_fill(device, {buffer.get(), 0, 0, 1}, 9);
  const Ref<Fence> signal = make_fence(device);
  EXPECT_OK(open(path())->execute({*device, kAnyQueue, nullptr, signal.get()}, *commands, {}));
  struct Subscriber {
    std::function<size_t()> count;
    size_t executions = 0;
  } subscriber{[this] { return captured().executions.size(); }};
  const auto count = [](void* user, halyard_status_t failure) {
    EXPECT_EQ(failure, nullptr);
    auto& self = *static_cast<Subscriber*>(user);
    self.executions = self.count();
  };
  const Timepoint& point = signal->timepoints().front();
  ASSERT_EQ(device->table().semaphore_subscribe(point.semaphore->handle(), point.value, count, &subscriber),
            nullptr);
  EXPECT_EQ(subscriber.executions, 0u);
  EXPECT_GT(fake().run_ready(), 0u);
  EXPECT_EQ(subscriber.executions, 1u);
}

TEST_F(CaptureTest, ArgumentErrorsReturnAtOnceAndAreNotCaptured) {
  const Ref<Device> device = open_fake_device();
  const Ref<CommandBuffer> commands = record(device, 0, 1);
  const Ref<Fence> signal = make_fence(device);
  Ref<Capture> capture = open(path());
  EXPECT_FAILS(FAILED_PRECONDITION, "being recorded",
               capture->execute({*device, kAnyQueue, nullptr, signal.get()}, *commands, {}));
  EXPECT_OK(commands->fill({nullptr, 0, 0, 4}, 7, 4));
  EXPECT_OK(commands->finalize());
  EXPECT_FAILS(INVALID_ARGUMENT, "executed without one",
               capture->execute({*device, kAnyQueue, nullptr, signal.get()}, *commands, {}));
  EXPECT_EQ(signal->query().code(), Code::DEFERRED);
  capture = nullptr;
  EXPECT_TRUE(captured().executions.empty());
}

TEST_F(CaptureTest, FailuresAreCapturedAndPassedOn) {
  const Ref<Device> device = open_fake_device();
  const Ref<Buffer> buffer = make_buffer(*device, {1, 2});
  const Ref<CommandBuffer> commands = record_fill(device, {buffer.get(), 0, 0, 1}, 9);
  const Ref<Fence> signal = make_fence(device);
  Ref<Capture> capture = open(path());
  fake().fail_next(HALYARD_DATA_LOSS);
  EXPECT_FAILS(DATA_LOSS, "injected failure",
               capture->execute({*device, kAnyQueue, nullptr, signal.get()}, *commands, {}));
  EXPECT_FAILS(DATA_LOSS, "injected failure", signal->query());
  const Ref<Fence> refused = make_fence(device);
  fake().refuse_next(HALYARD_UNAVAILABLE);
  EXPECT_FAILS(UNAVAILABLE, "injected refusal",
               capture->execute({*device, kAnyQueue, nullptr, refused.get()}, *commands, {}));
  EXPECT_FAILS(UNAVAILABLE, "injected refusal", refused->query());
  // A wait that fails: nothing is executed, so nothing is captured.
  const Ref<Fence> skipped = make_fence(device);
  EXPECT_FAILS(DATA_LOSS, "injected failure",
               capture->execute({*device, kAnyQueue, signal.get(), skipped.get()}, *commands, {}));
  EXPECT_FAILS(DATA_LOSS, "injected failure", skipped->query());
  capture = nullptr;

  const CaptureFile file = captured();
  ASSERT_EQ(file.executions.size(), 2u);
  EXPECT_EQ(file.executions[0].outcome, CapturedExecution::Outcome::failed);
  EXPECT_EQ(file.executions[0].code, Code::DATA_LOSS);
  EXPECT_NE(file.executions[0].message.find("injected failure"), std::string_view::npos);
  EXPECT_EQ(file.executions[1].code, Code::UNAVAILABLE);
  Replay replay(file, device);
  EXPECT_EQ(replay.execute(0).value().outcome, Outcome::not_compared);
  fake().fail_next(HALYARD_DATA_LOSS);
  EXPECT_FAILS(DATA_LOSS, "injected failure", replay.execute(0));
}

TEST_F(CaptureTest, EqualDataIsWrittenOnce) {
  const Ref<Device> device = open_fake_device();
  const Ref<Executable> executable = load(device, "nothing 1 0\n");
  const Ref<Buffer> buffer = make_buffer(*device, Values(100000, 1));
  const Ref<CommandBuffer> commands = record(device);
  const BufferRange ranges[] = {{buffer.get(), 0, 0, 3}};
  const BufferRange rest[] = {{buffer.get(), 0, 4, 99996}};
  // The function writes to more than three bytes.
  EXPECT_OK(commands->dispatch({executable.get(), 0, {1, 1, 1}, {}, ranges, nullptr}));
  EXPECT_OK(commands->copy(rest[0], {make_buffer(*device, Values(99996)).get(), 0, 0, 99996}));
  EXPECT_OK(commands->finalize());
  Ref<Capture> capture = open(path());
  for (int i = 0; i < 10; ++i) EXPECT_OK(capture->execute({*device}, *commands, {}));
  capture = nullptr;
  EXPECT_LT(file().size(), 250000u);
  const CaptureFile file = captured();
  EXPECT_EQ(file.executions.size(), 10u);
  EXPECT_EQ(file.executables.size(), 1u);
}

TEST_F(CaptureTest, FindsTheFirstDifference) {
  const Ref<Device> device = open_fake_device();
  const Ref<Buffer> buffer = make_buffer(*device, Values(64, 1));
  const Ref<CommandBuffer> commands = record(device, 0, 1);
  EXPECT_OK(commands->fill({buffer.get(), 0, 0, 8}, 2, 1));
  EXPECT_OK(commands->update({nullptr, 0, 4, 0}, Values(20, 0xAB)));
  EXPECT_OK(commands->finalize());
  const Binding table[] = {{buffer.get(), 16, 40}};
  EXPECT_OK(open(path())->execute({*device}, *commands, table));

  CaptureFile file = captured();
  CapturedRange& range = file.executions[0].buffers[0].ranges[1];
  ASSERT_EQ(range.offset, 20u);
  Values after = joined(range.after);
  ASSERT_EQ(after, Values(20, 0xAB));
  for (const size_t i : {1, 2, 3, 10}) after[i] = static_cast<uint8_t>(i);
  range.after = {std::span(after).first(2),
                 std::span(after).subspan(2)};  // the division into pieces does not matter
  const ReplayResult result = Replay(file, device).execute(0).value();
  EXPECT_EQ(result.outcome, Outcome::differs);
  EXPECT_EQ(result.difference.buffer, 0u);
  EXPECT_EQ(result.difference.offset, 21u);
  EXPECT_EQ(result.difference.length, 3u);
  EXPECT_EQ(result.difference.total, 4u);
  EXPECT_EQ(result.difference.expected, (Values{1, 2, 3}));
  EXPECT_EQ(result.difference.found, Values(3, 0xAB));
  EXPECT_EQ(result.difference.command, 1u);
}

TEST_F(CaptureTest, ReplayFailsOnUnsuitableDevices) {
  capture_everything(open_fake_device());
  CaptureFile file = captured();
  file.executables[0].format = "other";
  EXPECT_FAILS(NOT_FOUND, "'other'", Replay(file, open_fake_device()).execute(0));
  file.executables[0].format = "fake";
  file.executions[0].buffers[0].size = uint64_t{1} << 40;
  EXPECT_FAILS(RESOURCE_EXHAUSTED, "buffer0 of execution 0", Replay(file, open_fake_device()).execute(0));
}

TEST_F(CaptureTest, FilesThatCannotBeWritten) {
  EXPECT_FAILS(NOT_FOUND, "missing/c.hycap", Capture::create(path("missing/c.hycap")));
  EXPECT_FAILS(UNAVAILABLE, folder_.path(), Capture::create(folder_.path()));
  if (!std::filesystem::exists("/dev/full")) return;
  EXPECT_FAILS(UNAVAILABLE, "'/dev/full'", Capture::create("/dev/full"));
}

TEST_F(CaptureTest, TruncatedAtEveryLength) {
  {
    const Ref<Device> device = open_fake_device();
    const Ref<Capture> capture = open(path());
    execute_everything(device, *capture);
    execute_everything(device, *capture);
  }
  const Values whole = file();
  size_t most = 0;
  for (size_t size = 0; size < whole.size(); ++size) {
    const Ref<Bytes> cut = Bytes::copy(std::span(whole).first(size));
    const Result<CaptureFile> refused = read_capture(cut, Incomplete::refuse);
    ASSERT_FALSE(refused) << size;
    EXPECT_EQ(refused.error().code(), size < 12 ? Code::INVALID_ARGUMENT : Code::DATA_LOSS)
        << size << refused.error().text();
    const Result<CaptureFile> accepted = read_capture(cut, Incomplete::accept);
    if (size < 12) continue;
    ASSERT_TRUE(accepted) << size << accepted.error().text();
    EXPECT_FALSE(accepted->is_complete);
    EXPECT_GE(accepted->executions.size(), most);
    most = accepted->executions.size();
  }
  EXPECT_EQ(most, 2u);
  Values longer = whole;
  longer.resize(whole.size() + 8);
  EXPECT_FAILS(INVALID_ARGUMENT, "8 bytes follow its last record",
               read_capture(Bytes::own(longer), Incomplete::accept));
}

// With any bit flipped, reading gives a status or a capture, and replaying the capture gives a status or a
// result.
TEST_F(CaptureTest, EveryBitFlipped) {
  const Ref<Device> device = open_fake_device();
  capture_everything(device);
  const Values whole = file();
  size_t read_anyway = 0;
  for (size_t bit = 0; bit < whole.size() * 8; ++bit) {
    Values damaged = whole;
    damaged[bit / 8] ^= static_cast<uint8_t>(1 << bit % 8);
    const Result<CaptureFile> file = read_capture(Bytes::own(damaged), Incomplete::accept);
    if (!file) {
      EXPECT_EQ(file.error().code(), Code::INVALID_ARGUMENT) << file.error().text();
      continue;
    }
    ++read_anyway;
    Replay replay(*file, device);
    for (size_t i = 0; i < file->executions.size(); ++i) static_cast<void>(replay.execute(i));
  }
  EXPECT_GT(read_anyway, 0u);
  EXPECT_LT(read_anyway, whole.size() * 8);
}

// An empty binding table at any position in a record.
TEST_F(CaptureTest, EmptyTablesAtAnyPosition) {
  for (const uint32_t pattern_size : {1u, 2u, 4u}) {
    for (size_t length = 0; length < 16; ++length) {
      const std::string label(length, 'x');
      write(label,
            {BeginGroupCommand{label}, FillCommand{{.buffer = 0, .offset = 0, .length = 16}, 0, pattern_size},
             FillCommand{{.buffer = 0, .offset = 0, .length = 16}, 7, pattern_size}});
      EXPECT_TRUE(captured().executions.at(0).entries.empty());
    }
  }
}

// A pattern is printed with all its digits, so its size must be valid.
TEST_F(CaptureTest, InvalidPatternSizes) {
  for (const uint32_t size : {0u, 3u, 8u, 0x40000000u, 0x80000000u, UINT32_MAX}) {
    write("", {FillCommand{{.buffer = 0, .offset = 0, .length = 16}, 7, size}});
    EXPECT_FAILS(INVALID_ARGUMENT, "a pattern of " + std::to_string(size) + " bytes",
                 read_capture(Bytes::own(file()), Incomplete::refuse));
  }
}

TEST_F(CaptureTest, OtherFilesAreRefused) {
  const auto read = [](std::string_view text) {
    return read_capture(Bytes::copy({reinterpret_cast<const uint8_t*>(text.data()), text.size()}),
                        Incomplete::accept);
  };
  EXPECT_FAILS(INVALID_ARGUMENT, "not a capture", read(""));
  EXPECT_FAILS(INVALID_ARGUMENT, "not a capture", read("vm.module @text of a module, long enough"));
}

}  // namespace
}  // namespace halyard::hal
