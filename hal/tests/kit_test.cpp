// The kit's device in host memory (halyard/driver/host_device.hpp): what hal-cts cannot see from outside.
#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "halyard/driver.hpp"

namespace {

namespace kit = halyard::kit;

const kit::Services kServices = {};

kit::Stop stop_of(const uint32_t& word) {
  halyard_submission_t submission = {};
  submission.struct_size = sizeof submission;
  submission.stop = &word;
  return kit::Stop(submission);
}

// Its only kernel sets the stop word, as the host does meanwhile.
class Stopping final : public kit::HostExecutable {
 public:
  Stopping(uint32_t& word, bool is_long)
      : HostExecutable(kServices, {{.name = "stopping"}}), word_(word), is_long_(is_long) {}
  kit::Result<> run(const kit::Dispatch& dispatch, const kit::Workgroup&) const override {
    ++runs;
    word_ = HALYARD_CANCELLED;
    while (is_long_) HALYARD_KIT_TRY(dispatch.stop.check());
    return {};
  }
  mutable int runs = 0;

 private:
  uint32_t& word_;
  const bool is_long_;
};

halyard_command_dispatch_t dispatch_of(kit::Executable& executable) {
  halyard_command_dispatch_t command = {};
  command.executable = reinterpret_cast<halyard_driver_executable_t>(&executable);
  command.workgroups[0] = command.workgroups[1] = command.workgroups[2] = 3;
  return command;
}

TEST(Kit, AKernelThatRunsSeesThatItsWorkIsStopped) {
  for (const bool is_long : {true, false}) {
    uint32_t word = 0;
    Stopping executable(word, is_long);
    const kit::Result<> done = kit::run_dispatch(dispatch_of(executable), kit::Table({}, stop_of(word)));
    ASSERT_FALSE(done);
    EXPECT_EQ(done.failure().code, HALYARD_CANCELLED);
    EXPECT_EQ(executable.runs, 1);  // of 27 workgroups
  }
}

TEST(Kit, AStopWordThatTheHostDoesNotHaveNeverStops) {
  const uint32_t word = HALYARD_CANCELLED;
  halyard_submission_t older = {};
  older.struct_size = offsetof(halyard_submission_t, stop);
  older.stop = &word;
  EXPECT_FALSE(kit::Stop(older).requested());
  EXPECT_FALSE(kit::Stop().requested());
  EXPECT_TRUE(stop_of(word).requested());
}

halyard_memory_request_t request_of(uint64_t size) {
  halyard_memory_request_t request = {};
  request.struct_size = sizeof request;
  request.size = size;
  return request;
}

TEST(Kit, ImportsAreWrittenInPlaceOnlyIfTheirAccessAllowsIt) {
  struct Case {
    uint32_t access;
    bool in_place;
  };
  for (const auto& [access, in_place] : {Case{HALYARD_MAP_READ, false},
                                         {HALYARD_MAP_READ | HALYARD_MAP_WRITE, true},
                                         {HALYARD_MAP_READ | HALYARD_MAP_PRIVATE, true}}) {
    kit::MemoryTally tally;
    std::array<uint8_t, 8> bytes = {1, 2, 3, 4, 5, 6, 7, 8};
    {
      kit::HostBlock block(tally, request_of(bytes.size()), bytes.data(), access);
      EXPECT_EQ(*block.bytes(), bytes.data());
      uint8_t* const written = *block.bytes_to_write();
      EXPECT_EQ(written == bytes.data(), in_place);
      EXPECT_EQ(written[7], 8);
      written[0] = 9;
      EXPECT_EQ(*block.bytes(), written);  // later readers see it
      EXPECT_EQ(*block.bytes_to_write(), written);
      EXPECT_EQ(tally.now().host_bytes_live, in_place ? 0u : bytes.size());
    }
    EXPECT_EQ(bytes[0], in_place ? 9 : 1);
    EXPECT_EQ(tally.now().host_bytes_live, 0u);
  }
}

TEST(Kit, BytesExistBetweenAllocaAndDealloca) {
  kit::MemoryTally tally;
  kit::HostBlock block(tally, request_of(0));
  EXPECT_FALSE(block.bytes());
  EXPECT_FALSE(block.bytes_to_write());
  ASSERT_TRUE(block.commit());
  EXPECT_NE(*block.bytes(), nullptr);  // memory of 0 bytes has an address
  ASSERT_TRUE(block.decommit());
  ASSERT_FALSE(block.bytes());
  EXPECT_EQ(block.bytes().failure().code, HALYARD_FAILED_PRECONDITION);
}

TEST(Kit, MappedBytesOutliveTheDealloca) {
  kit::MemoryTally tally;
  kit::HostBlock block(tally, request_of(8));
  EXPECT_FALSE(block.map(HALYARD_MAP_WRITE, 0, 8));
  ASSERT_TRUE(block.commit());
  uint8_t* const whole = *block.map(HALYARD_MAP_WRITE, 0, 8);
  uint8_t* const part = *block.map(HALYARD_MAP_WRITE, 2, 4);
  EXPECT_EQ(part, whole + 2);
  ASSERT_TRUE(block.decommit());
  EXPECT_FALSE(block.bytes());
  EXPECT_FALSE(block.map(HALYARD_MAP_READ, 0, 8));
  block.unmap();
  EXPECT_EQ(tally.now().host_bytes_live, 8u);
  part[5] = 1;
  block.unmap();
  EXPECT_EQ(tally.now().host_bytes_live, 0u);
}

TEST(Kit, OnlyTheDeviceWithoutThreadsRunsInItsCaller) {
  EXPECT_TRUE(kit::InlineHostDevice(kServices).properties().capabilities & HALYARD_DEVICE_RUNS_IN_CALLER);
  EXPECT_FALSE(kit::HostDevice(kServices).properties().capabilities & HALYARD_DEVICE_RUNS_IN_CALLER);
}

// Two bindings of one constant: the kernel that writes to one of them reads the written bytes through the
// other.
TEST(Kit, BindingsOfOneConstantAreTheSameBytes) {
  struct Both final : kit::HostExecutable {
    Both() : HostExecutable(kServices, {{.name = "both", .bindings = 2, .read_only = 0b01}}) {}
    kit::Result<> run(const kit::Dispatch& dispatch, const kit::Workgroup&) const override {
      EXPECT_EQ(dispatch.bindings[0].data(), dispatch.bindings[1].data());
      dispatch.bindings[1][0] = 7;
      return {};
    }
  } both;
  kit::MemoryTally tally;
  std::array<uint8_t, 4> bytes = {};
  kit::HostBlock block(tally, request_of(bytes.size()), bytes.data(), HALYARD_MAP_READ);
  const auto memory = reinterpret_cast<halyard_driver_memory_t>(static_cast<kit::Memory*>(&block));
  const std::array<halyard_range_t, 2> ranges = {halyard_range_t{memory, 0, 0, 0, 4}, {memory, 0, 0, 0, 4}};
  halyard_command_dispatch_t command = dispatch_of(both);
  command.bindings = ranges.data();
  command.binding_count = ranges.size();
  EXPECT_TRUE(kit::run_dispatch(command, kit::Table({})));
  EXPECT_EQ((*block.bytes())[0], 7);
  EXPECT_EQ(bytes[0], 0);
}

}  // namespace
