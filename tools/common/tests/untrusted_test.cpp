// The limits of --untrusted. tests/test_untrusted.py has the rest, as a user types it.
#include "common/untrusted.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <vector>

#include "common/program_flags.h"

namespace halyard::tools {
namespace {

constexpr FlagGroup kGroups[] = {{"", kLoadingFlags}};
constexpr ToolDescription kTool = {"tool", "tool", "A tool.", kGroups, ""};

Flags parsed(std::initializer_list<const char*> words) {
  std::vector<const char*> arguments = {"tool"};
  arguments.insert(arguments.end(), words);
  return Flags::parse(kTool, static_cast<int>(arguments.size()), arguments.data()).value();
}

TEST(Untrusted, DefaultLimits) {
  const Flags usual = parsed({});
  EXPECT_EQ(memory_limit(usual).value(), 0u);
  EXPECT_EQ(time_limit(usual).value(), std::chrono::nanoseconds(0));
  const Flags untrusted = parsed({"--untrusted"});
  EXPECT_EQ(memory_limit(untrusted).value(), uint64_t{1} << 30);
  EXPECT_EQ(time_limit(untrusted).value(), std::chrono::minutes(1));
}

TEST(Untrusted, FlagsReplaceTheDefaults) {
  const Flags flags = parsed({"--untrusted", "--max_memory=2GiB", "--timeout=90s"});
  EXPECT_EQ(memory_limit(flags).value(), uint64_t{2} << 30);
  EXPECT_EQ(time_limit(flags).value(), std::chrono::seconds(90));
}

}  // namespace
}  // namespace halyard::tools
