// Fields of messages, in every division into pieces, and malformed bytes.
#include "wire.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <vector>

namespace halyard::tools::serve {
namespace {

using Pieces = std::vector<WireReader::Piece>;

WireReader::Piece piece(std::string_view text) { return std::as_bytes(std::span(text)); }

std::string text_of(WireReader content) {
  std::string text(content.size(), '?');
  EXPECT_TRUE(content.read(text.data(), text.size()));
  return text;
}

std::string message() {
  std::string inner;
  append_number(inner, 1, 300);
  std::string message;
  append_number(message, 1, std::numeric_limits<uint64_t>::max());
  append_text(message, 2, "text");
  append_text(message, 2000, inner);
  message += std::string("\x1d\x01\x02\x03\x04", 5);                  // fixed32, field 3
  message += std::string("\x21\x01\x02\x03\x04\x05\x06\x07\x08", 9);  // fixed64, field 4
  append_text(message, 5, "");
  return message;
}

void expect_message(WireReader reader) {
  ASSERT_TRUE(reader.next());
  EXPECT_TRUE(reader.is(1, WireType::varint));
  EXPECT_EQ(reader.number(), std::numeric_limits<uint64_t>::max());
  ASSERT_TRUE(reader.next());
  EXPECT_TRUE(reader.is(2, WireType::bytes));
  EXPECT_EQ(text_of(reader.content()), "text");
  ASSERT_TRUE(reader.next());
  EXPECT_EQ(reader.field(), 2000u);
  WireReader inner = reader.content();
  ASSERT_TRUE(inner.next());
  EXPECT_EQ(inner.number(), 300u);
  EXPECT_FALSE(inner.next());
  EXPECT_FALSE(inner.is_malformed());
  ASSERT_TRUE(reader.next());
  EXPECT_TRUE(reader.is(3, WireType::fixed32));
  EXPECT_EQ(reader.number(), 0x04030201u);
  ASSERT_TRUE(reader.next());
  EXPECT_TRUE(reader.is(4, WireType::fixed64));
  EXPECT_EQ(reader.number(), 0x0807060504030201u);
  ASSERT_TRUE(reader.next());
  EXPECT_EQ(reader.content().size(), 0u);
  EXPECT_FALSE(reader.next());
  EXPECT_FALSE(reader.is_malformed());
}

TEST(Wire, EveryDivisionIntoPieces) {
  const std::string text = message();
  const std::string_view view = text;
  for (size_t one = 0; one <= text.size(); ++one)
    for (size_t two = one; two <= text.size(); ++two) {
      const Pieces pieces = {
          piece(view.substr(0, one)), piece(view.substr(one, two - one)), {}, piece(view.substr(two))};
      expect_message(WireReader(pieces));
    }
  Pieces bytes;
  for (size_t i = 0; i < text.size(); ++i) bytes.push_back(piece(view.substr(i, 1)));
  expect_message(WireReader(bytes));
}

// The number of fields, or -1 if the message is malformed.
int fields_of(std::string_view text) {
  const Pieces pieces = {piece(text)};
  WireReader reader(pieces);
  int count = 0;
  while (reader.next()) ++count;
  return reader.is_malformed() ? -1 : count;
}

TEST(Wire, EndsOfMessages) {
  EXPECT_EQ(fields_of(""), 0);
  const std::string text = message();
  std::vector<size_t> ends;
  for (size_t end = 1; end <= text.size(); ++end)
    if (fields_of(std::string_view(text).substr(0, end)) >= 0) ends.push_back(end);
  EXPECT_EQ(ends.size(), 6u);  // only the ends of fields
}

TEST(Wire, MalformedFields) {
  for (const std::string_view text :
       {std::string_view("\0", 1),                                             // field number 0
        std::string_view("\x0b"), std::string_view("\x0c"),                    // groups
        std::string_view("\x0e\x00", 2), std::string_view("\x0f\x00", 2),      // wire types 6 and 7
        std::string_view("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"),      // a size of 64 bits
        std::string_view("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"),  // a varint of 11 bytes
        std::string_view("\x88\x80\x80\x80\x80\x01\x01")})                     // a field number of 33 bits
    EXPECT_EQ(fields_of(text), -1);
}

TEST(Wire, NoNumbersAreNoField) {
  std::string text;
  append_numbers(text, 3, {});
  EXPECT_EQ(text, "");
  const int64_t numbers[] = {1, 300, -1};
  append_numbers(text, 3, numbers);
  EXPECT_EQ(text, std::string("\x1a\x0d\x01\xac\x02") + std::string(9, '\xff') + "\x01");
}

TEST(Wire, SizesOfVarints) {
  for (const uint64_t value : {uint64_t{0}, uint64_t{1}, uint64_t{127}, uint64_t{128}, uint64_t{16383},
                               uint64_t{16384}, std::numeric_limits<uint64_t>::max()}) {
    std::string text;
    append_varint(text, value);
    EXPECT_EQ(text.size(), varint_size(value));
    const Pieces pieces = {piece(text)};
    uint64_t read = 0;
    EXPECT_TRUE(WireReader(pieces).read_varint(&read));
    EXPECT_EQ(read, value);
  }
}

}  // namespace
}  // namespace halyard::tools::serve
