// The processor features stated in a program: reading and checking them.
#include "modules/target_features.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "testing.h"

namespace halyard::modules {
namespace {

using Names = std::vector<std::string>;

std::string target(std::string_view format, std::string_view features, std::string_view others = "") {
  return fmt::format("#hal.executable.target<\"llvm-cpu\", \"{}\", {{cpu = \"x\", cpu_features = \"{}\"{}}}>",
                     format, features, others);
}
Names needed(std::string_view text, std::string_view format = "elf") {
  TargetFeatures features;
  features.add(text);
  return features.needed(format);
}

TEST(TargetFeaturesTest, Formats) {
  TargetFeatures features;
  EXPECT_EQ(features.formats(), Names());
  features.add("[" + target("elf-b", "+x") + ", " + target("elf-a", "") + ", " + target("elf-b", "") + "]");
  EXPECT_EQ(features.formats(), (Names{"elf-a", "elf-b"}));
}

TEST(TargetFeatures, AreThoseWithAPlus) {
  EXPECT_EQ(needed(target("elf", "+b,-c,+a")), (Names{"a", "b"}));
  EXPECT_EQ(
      needed("HAL device `d` not found: #hal.device.target<\"local\", [" + target("elf", "+avx512f") + "]>"),
      (Names{"avx512f"}));
  EXPECT_EQ(needed(target("elf", "")), Names());
  EXPECT_EQ(needed(target("elf", "-a,,x,+")), Names{""});
  EXPECT_EQ(needed(target("elf", "+a"), "other"), Names());
  EXPECT_EQ(needed(""), Names());
}

TEST(TargetFeatures, AmongOtherAttributes) {
  const std::string around =
      ", a = \"cpu_features = \\\"+no\\\" }\", b = #x.y<{cpu_features = \"+no\"}>, c = {d = 1}";
  EXPECT_EQ(needed(target("elf", "+a", around)), Names{"a"});
  EXPECT_EQ(
      needed("#hal.executable.target<\"l\", \"elf\", {my_cpu_features = \"+no\", cpu_features = \"+a\"}>"),
      Names{"a"});
  EXPECT_EQ(needed("#hal.executable.target<\"l\", \"elf\", {}>"), Names());
  EXPECT_EQ(needed("#hal.executable.target<\"l\", \"elf\">"), Names());
  EXPECT_EQ(needed("#hal.executable.target<\"l\">"), Names());
}

TEST(TargetFeatures, OfSeveralTargetsOnlyWhatAllNeed) {
  EXPECT_EQ(needed(target("elf", "+a,+b,+c") + target("elf", "+c,+b,+d")), (Names{"b", "c"}));
  EXPECT_EQ(needed(target("elf", "+a") + target("elf", "")), Names());
  EXPECT_EQ(needed(target("elf", "+a") + target("other", "+b")), Names{"a"});
  EXPECT_EQ(needed(target("elf", "+a") + target("elf", "+a")), Names{"a"});
}

std::string gpu_target(std::string_view format, std::string_view choices) {
  return fmt::format(
      "#hal.executable.target<\"vulkan-spirv\", \"{}\", {{iree_codegen.target_info = #iree_gpu.target<arch = "
      "\"\", features = \"subgroup_size_choices = [1]\", wgp = <compute =  fp32|int32, mma = [<A>]{}, "
      "dma_sizes = [32]>>}}>",
      format, choices.empty() ? "" : fmt::format(", subgroup_size_choices = {}", choices));
}
std::vector<uint32_t> sizes(std::string_view text, std::string_view format = "spirv") {
  TargetFeatures features;
  features.add(text);
  return features.subgroup_sizes(format);
}

TEST(TargetFeatures, SubgroupSizes) {
  using Sizes = std::vector<uint32_t>;
  EXPECT_EQ(sizes(gpu_target("spirv", "[32]")), Sizes{32});
  EXPECT_EQ(sizes(gpu_target("spirv", "[64, 32]")), (Sizes{64, 32}));
  EXPECT_EQ(sizes(gpu_target("spirv", "")), Sizes());
  EXPECT_EQ(sizes(gpu_target("spirv", "[32]"), "other"), Sizes());
  EXPECT_EQ(sizes(gpu_target("spirv", "[32]") + gpu_target("spirv", "[64, 32]")), (Sizes{32, 64}));
  // Code may be for the target that says nothing.
  EXPECT_EQ(sizes(gpu_target("spirv", "[32]") + gpu_target("spirv", "")), Sizes());
  EXPECT_EQ(sizes(gpu_target("spirv", "") + gpu_target("spirv", "[32]") + gpu_target("spirv", "[32]")),
            Sizes());
  EXPECT_EQ(sizes(gpu_target("spirv", "[32]") + gpu_target("other", "")), Sizes{32});
  for (const char* unreadable :
       {"[]", "[0]", "[-32]", "[32", "[32,64]", "[32, ]", "[0x20]", "[99999999999]", "[32 64]"})
    EXPECT_EQ(sizes(gpu_target("spirv", unreadable)), Sizes()) << unreadable;
}

TEST(TargetFeatures, NothingIsCertainWhereSomethingCannotBeRead) {
  const std::string good = target("elf", "+a");
  for (size_t size = 1; size < good.size(); ++size) {
    if (size < std::string_view("#hal.executable.target<").size()) continue;
    EXPECT_EQ(needed(good + good.substr(0, size)), Names()) << size;
  }
  EXPECT_EQ(needed(good + "#hal.executable.target"), Names{"a"}) << "no target";
  EXPECT_EQ(needed("#hal.executable.target<@alias>" + good), Names());
  EXPECT_EQ(needed("#hal.executable.target<\"l\", \"elf\", {{{{{{{{"), Names());
}

TEST(TargetFeatures, ADeviceIsAsked) {
  const Ref<hal::DriverRegistry> registry = open_registry();
  const auto device = ASSERT_VALUE(registry->open_device("local-sync"));
  // Of the features that the device knows, one that it has and one that it lacks, if there are any.
  std::string present, absent;
  for (const char* name :
       {"sse3", "avx2", "fma4", "xop", "sse4a", "amx-tile", "avx512fp16", "fp-armv8", "sme2p1", "v"}) {
    const hal::Device::Answer answer = device->query_i64("hal.cpu", name);
    if (answer.known) (answer.value ? present : absent) = name;
  }
  const auto check = [&](std::string_view features, std::string_view format = "elf") {
    TargetFeatures targets;
    targets.add(target("elf", features));
    return targets.check(*device, format);
  };
  EXPECT_TRUE(check("+made-up")) << "what the device does not know says nothing";
  EXPECT_TRUE(check("+" + present));
  if (absent.empty()) GTEST_SKIP() << "this processor has everything";
  EXPECT_TRUE(check("-" + absent));
  EXPECT_TRUE(check("+" + absent, "other"));
  EXPECT_FAILS(INCOMPATIBLE, "with " + absent + ",", check("+" + present + ",+" + absent));
}

}  // namespace
}  // namespace halyard::modules
