// Executables and dispatches, in every form of their signatures, with a kernel assembled here.
#include <gtest/gtest.h>

#include "kernels.h"
#include "modules/hal_functions.h"
#include "testing.h"

namespace halyard::modules {
namespace {

constexpr int kWithCounts = 0xD03;  // and DISPATCH_INDIRECT_PARAMETERS

class HalDispatch : public HalTest {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(HalTest::SetUp());
    kernels = assembled_kernels();
    executable = hal->object<hal::Executable>("executable.create", "0rIrrr_r",
                                              {device, kAny, text_of("vmvx-bytecode-fb"), kernels, nullptr});
    ASSERT_NE(executable, nullptr);
  }

  Ref<hal::Buffer> words(const std::vector<int32_t>& values, uint32_t usage) {
    return buffer_of(*device, values, usage, 0x30);
  }
  std::vector<int32_t> contents(const Ref<hal::Buffer>& buffer) { return contents_of<int32_t>(*buffer); }
  Ref<hal::CommandBuffer> begin() {
    return hal->object<hal::CommandBuffer>("command_buffer.create", "0riiIi_r", {device, 0, 3, kAny, 0});
  }
  Status execute(const Ref<hal::CommandBuffer>& commands) {
    const Status status = hal->status("command_buffer.finalize", "0r_v", {commands});
    EXPECT_TRUE(status.ok()) << status.text();
    return hal->status("device.queue.execute", "0rIrrrI_v", {device, kAny, nullptr, nullptr, commands, 0});
  }
  Status dispatch(const Ref<hal::CommandBuffer>& commands, std::vector<int> counts, int64_t flags,
                  const Entries& constants, const Entries& bindings) {
    return hal->status(
        "command_buffer.dispatch", "0rrIiiiICiDCiirIID_v",
        {commands, executable, 1, counts[0], counts[1], counts[2], flags, constants, bindings});
  }

  Ref<vm::Buffer> kernels;
  Ref<hal::Executable> executable;
};

TEST_F(HalDispatch, ExecutablesAreNewObjectsInBothForms) {
  const auto other = hal->object<hal::Executable>("executable.create", "0rrrr_r",
                                                  {device, text_of("vmvx-bytecode-fb"), kernels, device});
  ASSERT_NE(other, nullptr) << "constants of another type count as null";
  EXPECT_NE(other, executable);
  EXPECT_FAILS(INVALID_ARGUMENT, "no constants",
               hal->status("executable.create", "0rrrr_r",
                           {device, text_of("vmvx-bytecode-fb"), kernels, bytes_of({1, 0, 0, 0})}));
}

TEST_F(HalDispatch, FunctionsAreFoundByName) {
  EXPECT_EQ(hal->number("executable.lookup.function", "0rr_I", {executable, text_of("nothing")}), 0);
  EXPECT_EQ(hal->number("executable.lookup.function", "0rr_I", {executable, text_of("scale")}), 1);
  EXPECT_FAILS(NOT_FOUND, "scala",
               hal->status("executable.lookup.function", "0rr_I", {executable, text_of("scala")}));
  EXPECT_FAILS(INVALID_ARGUMENT, "null",
               hal->status("executable.lookup.function", "0rr_I", {executable, nullptr}));
}

TEST_F(HalDispatch, DirectCountsInBothForms) {
  for (const char* convention : {"0rriiiiICiDCiirIID_v", "0rrIiiiICiDCiirIID_v"}) {
    const auto target = words({-1, -1, -1, -1, -1}, kDefaultUsage);
    const auto commands = begin();
    const Status status =
        hal->status("command_buffer.dispatch", convention,
                    {commands, executable, 1, 3, 1, 1, 0, Entries{10, 7}, Entries{0, 99, target, 4, 12}});
    ASSERT_TRUE(status.ok()) << status.text();
    ASSERT_TRUE(execute(commands).ok());
    EXPECT_EQ(contents(target), (std::vector<int32_t>{-1, 7, 17, 27, -1}));
  }
}

TEST_F(HalDispatch, CountsFromABufferInBothForms) {
  for (const char* convention : {"0rriirIICiDCiirIID_v", "0rrIirIICiDCiirIID_v"}) {
    for (const int flags : {0, 1, 2}) {
      const auto target = words({-1, -1, -1}, kDefaultUsage);
      const auto counts = words({0, 2, 1, 1}, kWithCounts);
      const auto commands = begin();
      const Status status = hal->status(
          "command_buffer.dispatch.indirect", convention,
          {commands, executable, 1, 99, counts, 4, flags, Entries{10, 7}, Entries{0, 0, target, 0, 12}});
      ASSERT_TRUE(status.ok()) << status.text();
      ASSERT_TRUE(execute(commands).ok());
      EXPECT_EQ(contents(target), (std::vector<int32_t>{7, 17, -1}));
    }
  }
}

TEST_F(HalDispatch, ErrorsOfCountsFromABuffer) {
  const auto target = words({-1, -1, -1}, kDefaultUsage);
  const auto indirect = [&](const Ref<hal::Buffer>& counts, int64_t offset) {
    return hal->status(
        "command_buffer.dispatch.indirect", "0rrIirIICiDCiirIID_v",
        {begin(), executable, 1, 0, counts, offset, 0, Entries{10, 7}, Entries{0, 0, target, 0, 12}});
  };
  EXPECT_FAILS(INVALID_ARGUMENT, "multiples of 4 bytes, found offset 2",
               indirect(words({1, 1, 1, 1}, kWithCounts), 2));
  EXPECT_FAILS(OUT_OF_RANGE, "workgroup counts", indirect(words({1, 1, 1, 1}, kWithCounts), 8));
  EXPECT_FAILS(PERMISSION_DENIED, "DISPATCH_INDIRECT_PARAMETERS",
               indirect(words({1, 1, 1, 1}, kDefaultUsage), 0));
}

TEST_F(HalDispatch, ACountOfZeroRunsNothing) {
  const auto target = words({-1}, kDefaultUsage);
  const auto commands = begin();
  EXPECT_TRUE(dispatch(commands, {0, 1, 1}, 0, {10, 7}, {0, 0, target, 0, 4}).ok());
  EXPECT_TRUE(dispatch(commands, {1, 1, 0}, 0, {10, 7}, {0, 0, target, 0, 4}).ok());
  ASSERT_TRUE(execute(commands).ok());
  EXPECT_EQ(contents(target), (std::vector<int32_t>{-1}));
}

TEST_F(HalDispatch, Errors) {
  const auto target = words({-1}, kDefaultUsage);
  const Entries binding{0, 0, target, 0, 4};
  EXPECT_FAILS(INVALID_ARGUMENT, "takes 2 constants, but 1 were given",
               dispatch(begin(), {1, 1, 1}, 0, {10}, binding));
  EXPECT_FAILS(INVALID_ARGUMENT, "takes 1 bindings, but 0 were given",
               dispatch(begin(), {1, 1, 1}, 0, {10, 7}, {}));
  EXPECT_FAILS(OUT_OF_RANGE, "binding[0]", dispatch(begin(), {1, 1, 1}, 0, {10, 7}, {0, 0, target, 0, 5}));
  EXPECT_FAILS(OUT_OF_RANGE, "binding capacity",
               dispatch(begin(), {1, 1, 1}, 0, {10, 7}, {0, 0, nullptr, 0, 4}));
  Entries many{};
  for (int i = 0; i < 33; ++i)
    many.values.insert(many.values.end(), binding.values.begin(), binding.values.end());
  EXPECT_FAILS(OUT_OF_RANGE, "at most 32 bindings, found 33", dispatch(begin(), {1, 1, 1}, 0, {10, 7}, many));
  EXPECT_FAILS(OUT_OF_RANGE, "below 2, found 4294967295",
               hal->status("command_buffer.dispatch", "0rriiiiICiDCiirIID_v",
                           {begin(), executable, -1, 1, 1, 1, 0, Entries{10, 7}, binding}));
  EXPECT_FAILS(OUT_OF_RANGE, "below 2, found 18446744073709551615",
               hal->status("command_buffer.dispatch", "0rrIiiiICiDCiirIID_v",
                           {begin(), executable, -1, 1, 1, 1, 0, Entries{10, 7}, binding}));
  EXPECT_FAILS(INVALID_ARGUMENT, "null",
               hal->status("command_buffer.dispatch", "0rrIiiiICiDCiirIID_v",
                           {begin(), nullptr, 1, 1, 1, 1, 0, Entries{10, 7}, binding}));
}

TEST_F(HalDispatch, HintsAreIgnoredAndOtherArgumentsAreRefused) {
  const auto target = words({-1}, kDefaultUsage);
  const auto commands = begin();
  EXPECT_TRUE(dispatch(commands, {1, 1, 1}, 0x20 | 0x40, {10, 7}, {0, 0, target, 0, 4}).ok());
  for (const int flag : {0x4, 0x8, 0x10})
    EXPECT_FAILS(UNIMPLEMENTED, "custom arguments",
                 dispatch(commands, {1, 1, 1}, flag, {10, 7}, {0, 0, target, 0, 4}));
}

}  // namespace
}  // namespace halyard::modules
