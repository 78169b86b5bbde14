// Inference requests as messages of protocol buffers: what becomes of them, the memory that they may take,
// and the written answers. tests/test_serve_grpc.py tries the rest with clients that protoc makes.
#include "infer_message.h"

#include <gtest/gtest.h>

#include <cstring>

#include "halyard/element_type.h"
#include "tensor_contents.h"

namespace halyard::tools::serve {
namespace {

ModelSpec one_input(uint32_t element_type) {
  const TensorSpec x{
      .name = "x", .type = datatype_of(element_type), .element_type = element_type, .shape = {kAnySize}};
  return {.name = "m", .version = "1", .inputs = {x}, .outputs = {x}};
}

struct Message {
  std::string text;
  std::vector<WireReader::Piece> pieces;
  explicit Message(std::string given)
      : text(std::move(given)), pieces({std::as_bytes(std::span(std::as_const(text)))}) {}
  WireReader reader() const { return WireReader(pieces); }
};

std::string field(uint32_t number, std::string_view content) {
  std::string text;
  append_text(text, number, content);
  return text;
}

std::string shape(std::initializer_list<int64_t> sizes) {
  std::string text;
  for (const int64_t size : sizes) append_varint(text, static_cast<uint64_t>(size));
  return field(3, text);
}

// A request with one input.
std::string request(std::string_view type, std::initializer_list<int64_t> sizes, std::string_view rest,
                    std::string_view behind = "") {
  return field(1, "m") + field(5, field(1, "x") + field(2, type) + shape(sizes) + std::string(rest)) +
         std::string(behind);
}

std::string why_refused(std::string text, const ModelSpec& model, const Reserve& reserve = {}) {
  const Message message(std::move(text));
  const auto parsed = parse_infer_message(message.reader(), model, reserve);
  return parsed ? "accepted" : parsed.error().text;
}

TEST(InferMessage, NoMemoryBeforeTheElements) {
  const ModelSpec model = one_input(HALYARD_ELEMENT_F32);
  uint64_t reserved = 0;
  const Reserve reserve = [&](uint64_t bytes) { return reserved += bytes, true; };
  EXPECT_NE(why_refused(request("FP32", {int64_t{1} << 40}, field(5, field(6, "1234"))), model, reserve),
            "accepted");
  EXPECT_NE(why_refused(request("FP32", {int64_t{1} << 40}, "", field(7, "1234")), model, reserve),
            "accepted");
  EXPECT_EQ(reserved, 0u);
  EXPECT_EQ(why_refused(request("FP32", {1}, field(5, field(6, "1234"))), model, reserve), "accepted");
  EXPECT_EQ(reserved, 4u);
  const Reserve full = [](uint64_t) { return false; };
  const Message message(request("FP32", {1}, "", field(7, "1234")));
  const auto refused = parse_infer_message(message.reader(), model, full);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, HALYARD_UNAVAILABLE);
}

TEST(InferMessage, MalformedContents) {
  const ModelSpec floats = one_input(HALYARD_ELEMENT_F32), integers = one_input(HALYARD_ELEMENT_I32);
  for (const std::string& contents : {field(6, "123"), std::string("\x30\x01"), std::string("\x0a")})
    EXPECT_NE(why_refused(request("FP32", {1}, field(5, contents)), floats).find("not a message"),
              std::string::npos);
  EXPECT_NE(why_refused(request("INT32", {1}, field(5, field(2, "\xff"))), integers).find("not a message"),
            std::string::npos);
  EXPECT_NE(why_refused("\x2a", floats), "accepted");
  EXPECT_NE(why_refused(field(5, "\x0a"), floats), "accepted");
  EXPECT_NE(why_refused(field(6, "\x0a"), floats), "accepted");
}

TEST(InferMessage, CutOffAtTheEndOfItsParts) {
  const ModelSpec floats = one_input(HALYARD_ELEMENT_F32);
  const std::string_view cut = "\x0a";
  EXPECT_NE(why_refused(request("FP32", {1}, cut, field(7, "1234")), floats).find("not a message"),
            std::string::npos);
  EXPECT_NE(why_refused(request("FP32", {1}, "", field(7, "1234")) + std::string(cut), floats)
                .find("not a message"),
            std::string::npos);
  EXPECT_NE(
      why_refused(request("FP32", {1}, field(3, "\xff"), field(7, "1234")), floats).find("not a message"),
      std::string::npos);
}

TEST(InferMessage, ContentsOfOneTypeInOneField) {
  const ModelSpec floats = one_input(HALYARD_ELEMENT_F32), integers = one_input(HALYARD_ELEMENT_I32);
  // Not packed: one field for each element.
  EXPECT_EQ(
      why_refused(request("FP32", {2}, field(5, std::string("\x35\0\0\x80\x3f\x35\0\0\0\x40", 10))), floats),
      "accepted");
  EXPECT_EQ(why_refused(request("INT32", {2}, field(5, std::string("\x10\x01\x10\x02", 4))), integers),
            "accepted");
  EXPECT_NE(why_refused(request("FP32", {1}, field(5, std::string("\x31\0\0\x80\x3f\0\0\0\0", 9))), floats)
                .find("not a message"),
            std::string::npos);
  EXPECT_NE(why_refused(request("INT32", {1}, field(5, std::string("\x15\0\0\x80\x3f", 5))), integers)
                .find("not a message"),
            std::string::npos);
  const ModelSpec wide = one_input(HALYARD_ELEMENT_UI64);
  EXPECT_EQ(why_refused(request("UINT64", {2}, field(5, field(5, "\x01\x02"))), wide), "accepted");
  EXPECT_EQ(write_contents(*datatype_of(HALYARD_ELEMENT_UI64), {}).text, "");
  EXPECT_EQ(write_contents(*datatype_of(HALYARD_ELEMENT_F32), {}).text, "");
  // Another field: only if it is empty.
  EXPECT_EQ(why_refused(request("FP32", {1}, field(5, field(2, "") + field(6, "1234"))), floats), "accepted");
  EXPECT_EQ(why_refused(request("FP32", {1}, field(5, field(2, "\x01") + field(6, "1234"))), floats),
            "input 'x' is FP32, but has 'int_contents'; expected 'fp32_contents'");
  EXPECT_EQ(why_refused(request("INT32", {1}, field(5, field(1, "\x01"))), integers),
            "input 'x' is INT32, but has 'bool_contents'; expected 'int_contents'");
  EXPECT_EQ(why_refused(request("INT32", {1}, field(5, field(8, "\x01"))), integers),
            "input 'x' is INT32, but has 'bytes_contents'; expected 'int_contents'");
  EXPECT_EQ(why_refused(request("INT32", {1}, field(5, field(2, "\x01") + field(9, "\x01"))), integers),
            "accepted");
}

TEST(InferMessage, ShapesAndOutputs) {
  const ModelSpec floats = one_input(HALYARD_ELEMENT_F32);
  EXPECT_EQ(why_refused(request("FP32", {-1}, "", field(7, "")), floats),
            "'shape' of input 'x' has the dimension -1; expected numbers from 0 on");
  const Message message(request("FP32", {0}, "", field(7, "")));
  const auto parsed = parse_infer_message(message.reader(), floats, {});
  ASSERT_TRUE(parsed) << parsed.error().text;
  ASSERT_EQ(parsed->outputs.size(), 1u);
  EXPECT_EQ(parsed->outputs[0].index, 0u);
}

TEST(InferMessage, TextsHaveALimit) {
  const Message message(field(1, std::string((1 << 20) + 1, 'm')));
  const auto head = read_infer_head(message.reader());
  ASSERT_FALSE(head);
  EXPECT_NE(head.error().text.find("1048576"), std::string::npos);
  const Message longest(field(1, std::string(1 << 20, 'm')));
  EXPECT_TRUE(read_infer_head(longest.reader()));
}

// Writes each type and reads it again, and compares sizes with their bounds.
TEST(InferMessage, AnswersOfEveryType) {
  for (const DataType& type : datatypes()) {
    const ModelSpec model = one_input(type.element_type);
    std::vector<std::byte> bytes(16 * type.size);
    for (size_t i = 0; i < bytes.size(); ++i)
      bytes[i] = static_cast<std::byte>(type.kind == NumberKind::boolean ? i % 2 : 37 * i + 129);
    const std::vector<OutputTensor> outputs = {
        {.spec = model.outputs.data(), .shape = {16}, .bytes = bytes, .is_binary = false}};
    for (const bool is_raw : {true, false}) {
      const InferAnswer answer = infer_answer(model, "id", outputs, is_raw);
      std::string text;
      uint64_t texts = 0;
      for (const auto& part : answer.parts) {
        text += part.text + std::string(reinterpret_cast<const char*>(part.bytes.data()), part.bytes.size());
        texts += part.text.size();
      }
      EXPECT_EQ(text.size(), answer.size());
      EXPECT_LE(texts, infer_answer_bound(model, "id", outputs)) << type.name;
      const Message message(text);
      std::string raw;
      WireReader output;
      for (WireReader reader = message.reader(); reader.next();) {
        if (reader.field() == 5) output = reader.content();
        if (reader.field() == 6) {
          raw.resize(reader.content().size());
          reader.content().read(raw.data(), raw.size());
        }
      }
      if (is_raw || !has_contents(type)) {
        ASSERT_EQ(raw.size(), bytes.size());
        EXPECT_EQ(std::memcmp(raw.data(), bytes.data(), bytes.size()), 0) << type.name;
        continue;
      }
      const auto count = count_contents(output, type, "x");
      ASSERT_TRUE(count);
      ASSERT_EQ(*count, 16u);
      std::vector<std::byte> read(bytes.size());
      ASSERT_TRUE(read_contents(output, type, "x", read.data()));
      EXPECT_EQ(read, bytes) << type.name;
    }
  }
}

}  // namespace
}  // namespace halyard::tools::serve
