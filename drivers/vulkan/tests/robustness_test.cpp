// Kernels that access memory outside of their bindings.
#include <algorithm>

#include "harness.h"
#include "one_function.h"

namespace halyard::vulkan_tests {
namespace {

class RobustnessTest : public VulkanTest {
 public:
  struct Reached {
    std::vector<uint32_t> copied;  // eight words from a binding of 10 bytes
    std::vector<uint32_t> filled;  // the memory of a binding of 10 bytes, where eight words were written
  };
  Reached reach() {
    Executable loaded = executable("vulkan-spirv-fb", one_function("reach", 3, 0));
    Memory given = allocate(std::vector<uint32_t>{11, 22, 33, 44, 55, 66, 77, 88});
    Memory copied = allocate(std::vector<uint32_t>(8, 99));
    Memory filled = allocate(std::vector<uint32_t>(8, 7));
    EXPECT_OK(run_kernel(loaded, 0, {range(given, 0, 10), range(copied, 0, 32), range(filled, 0, 10)}));
    return {words(copied, 8), words(filled, 8)};
  }
};

constexpr uint32_t kAll = 0xFFFFFFFF;
using Words = std::vector<uint32_t>;
Words first_three(const Words& words) { return {words.begin(), words.begin() + 3}; }
Words rest(const Words& words) { return {words.begin() + 3, words.end()}; }

// The word with the last bytes is accessible: compilers for devices without 16-bit storage rely on that.
TEST_F(RobustnessTest, AccessesBeyondABindingAreBounded) {
  const vulkan::Features features = device_->features();
  if (!features.core.robustBufferAccess) GTEST_SKIP() << "the device has no robustBufferAccess";
  for (const char* validate : {"0", "1"}) {
    halyard_driver_device_t validating = nullptr;
    const Outcome opened = try_open("", {{"cache", ""}, {"validate", validate}}, &validating);
    if (opened.code() == Code::UNAVAILABLE) continue;  // there is no validation layer
    EXPECT_OK(opened);
    table_.device_close(validating);
    reopen({{"cache", ""}, {"validate", validate}});
    const Reached reached = reach();
    EXPECT_EQ(first_three(reached.copied), (Words{11, 22, 33}));
    EXPECT_EQ(first_three(reached.filled), (Words{kAll, kAll, kAll}));
    if (!features.robustness2.robustBufferAccess2) continue;  // bounded by the buffer, not by the binding
    EXPECT_EQ(rest(reached.copied), (Words{0, 0, 0, 0, 0}));
    EXPECT_EQ(rest(reached.filled), (Words{7, 7, 7, 7, 7}));
  }
}

TEST_F(RobustnessTest, IsAnOption) {
  reopen({{"cache", ""}, {"robust", "0"}});
  const auto& features = device_->features();
  EXPECT_FALSE(features.core.robustBufferAccess);
  EXPECT_FALSE(features.robustness2.robustBufferAccess2);
  EXPECT_EQ(std::ranges::count(features.extensions, std::string_view(VK_EXT_ROBUSTNESS_2_EXTENSION_NAME)), 0);
  const Reached reached = reach();  // within the memory of each binding, so it is safe on every device
  EXPECT_EQ(first_three(reached.copied), (Words{11, 22, 33}));
  halyard_driver_device_t device = nullptr;
  EXPECT_FAILS(INVALID_ARGUMENT, "'robust'", try_open("", {{"robust", "2"}}, &device));
}

}  // namespace
}  // namespace halyard::vulkan_tests
