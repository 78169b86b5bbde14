// The wire format of protocol buffers. Messages are read in place, field by field, without a copy and without
// memory, because generated classes take up to a hundred times the bytes of a hostile message. Specified by
// protobuf's "Encoding".
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace halyard::tools::serve {

enum class WireType : uint8_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

// Reads the fields of a message whose bytes are in pieces. A copy continues at the same place.
class WireReader {
 public:
  using Piece = std::span<const std::byte>;

  WireReader() = default;
  // The pieces must outlive the reader.
  explicit WireReader(std::span<const Piece> pieces);

  // Reads the next field. False: the end, or malformed bytes.
  bool next();
  bool is_malformed() const { return is_malformed_; }

  // The field that next() has read.
  uint32_t field() const { return field_; }
  WireType type() const { return type_; }
  bool is(uint32_t field, WireType type) const { return field_ == field && type_ == type; }
  uint64_t number() const { return number_; }  // of varint, fixed64 and fixed32
  WireReader content() const;                  // of bytes

  // Reads the bytes of a content that has no fields: text, and packed numbers.
  uint64_t size() const { return place_.left; }  // bytes that are left
  bool read(void* target, uint64_t size);        // false: fewer bytes are left
  bool read_varint(uint64_t* value);

 private:
  struct Place {
    const Piece* piece = nullptr;
    size_t offset = 0;  // in the piece
    uint64_t left = 0;
  };

  bool skip(uint64_t size);
  bool malformed() {
    is_malformed_ = true;
    return false;
  }

  Place place_;
  Place content_;
  uint32_t field_ = 0;
  WireType type_ = WireType::varint;
  bool is_malformed_ = false;
  uint64_t number_ = 0;
};

// Writing: each function appends a part of a field.

uint64_t varint_size(uint64_t value);
void append_varint(std::string& message, uint64_t value);
void append_number(std::string& message, uint32_t field, uint64_t value);
// The tag and the size of a field of bytes, before its content.
void append_head(std::string& message, uint32_t field, uint64_t size);
void append_text(std::string& message, uint32_t field, std::string_view text);
// Packed numbers; nothing for none.
void append_numbers(std::string& message, uint32_t field, std::span<const int64_t> values);
// The size of a field of bytes, for field numbers below 16.
inline uint64_t size_of_field(uint64_t content) { return 1 + varint_size(content) + content; }

}  // namespace halyard::tools::serve
