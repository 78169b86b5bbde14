// Patterns for names and for ids of devices.
#include "halyard/wildcards.hpp"

#include <gtest/gtest.h>

#include <string>

namespace halyard {
namespace {

TEST(Wildcards, MatchTheWholeText) {
  for (const auto& [pattern, text] : {std::pair{"", ""},
                                      {"abc", "abc"},
                                      {"*", ""},
                                      {"*", "abc"},
                                      {"a?c", "abc"},
                                      {"a*", "a"},
                                      {"a**", "abc"},
                                      {"*c", "abcc"},
                                      {"*b*", "abc"},
                                      {"a*b?d", "abxbcd"},
                                      {"*a*a*", "aa"},
                                      {"?", "*"}})
    EXPECT_TRUE(matches_wildcards(pattern, text)) << pattern << ' ' << text;
  for (const auto& [pattern, text] : {std::pair{"", "a"},
                                      {"a", ""},
                                      {"?", ""},
                                      {"abc", "abd"},
                                      {"abc", "ab"},
                                      {"ab", "abc"},
                                      {"*b", "abc"},
                                      {"a?", "a"},
                                      {"*a*a*", "a"},
                                      {"a*b?d", "abxbc"}})
    EXPECT_FALSE(matches_wildcards(pattern, text)) << pattern << ' ' << text;
}

TEST(Wildcards, ManyStarsTakeNoLongerThanTheProductOfTheLengths) {
  std::string pattern;
  for (int i = 0; i < 1000; ++i) pattern += "a*";
  EXPECT_FALSE(matches_wildcards(pattern + "b", std::string(10'000, 'a')));
}

TEST(Wildcards, ADeviceIdHasAtMostSixteen) {
  EXPECT_TRUE(matches_device_id(std::string(16, '*'), "vulkan:0"));
  EXPECT_FALSE(matches_device_id(std::string(17, '*'), "vulkan:0"));
  EXPECT_TRUE(matches_device_id(std::string(8, '?'), "vulkan:0"));
  EXPECT_FALSE(matches_device_id("vulkan:?", "vulkan:10"));
  EXPECT_FALSE(matches_device_id(std::string(17, '?'), std::string(17, 'a')));
}

}  // namespace
}  // namespace halyard
