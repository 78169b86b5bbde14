// UTF-8: every code point, and every sequence that is none.
#include "text/utf8.h"

#include <gtest/gtest.h>

#include <string>

namespace halyard {
namespace {

std::string encoded(uint32_t point) {
  const auto tail = [&](int bits) { return static_cast<char>(0x80 | (point >> bits & 0x3F)); };
  if (point < 0x80) return {static_cast<char>(point)};
  if (point < 0x800) return {static_cast<char>(0xC0 | point >> 6), tail(0)};
  if (point < 0x10000) return {static_cast<char>(0xE0 | point >> 12), tail(6), tail(0)};
  return {static_cast<char>(0xF0 | point >> 18), tail(12), tail(6), tail(0)};
}

TEST(Utf8, EveryCodePoint) {
  for (uint32_t point = 0; point < 0x110000; ++point) {
    const std::string text = encoded(point);
    const bool is_surrogate = point >= 0xD800 && point < 0xE000;
    ASSERT_EQ(utf8_size(text + "x"), is_surrogate ? 0 : text.size()) << point;
    if (text.size() == 1) continue;
    ASSERT_EQ(utf8_size(text.substr(0, text.size() - 1)), 0u) << point << " is cut off";
  }
  EXPECT_EQ(utf8_size(""), 0u);
}

TEST(Utf8, WhatIsNoneHasNoSize) {
  for (const std::string_view text :
       {"\x80", "\xBF", "\xC0\x80", "\xC1\xBF", "\xE0\x80\x80", "\xE0\x9F\xBF", "\xF0\x80\x80\x80",
        "\xF0\x8F\xBF\xBF", "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFF", "\xC3x", "\xE2\x82x",
        "\xF0\x9F\x98x", "\xED\xA0\x80"})
    EXPECT_EQ(utf8_size(text), 0u) << text;
}

}  // namespace
}  // namespace halyard
