// Tags, varints and sizes. Numbers are little-endian.
#include "wire.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

namespace halyard::tools::serve {

static_assert(std::endian::native == std::endian::little);

WireReader::WireReader(std::span<const Piece> pieces) {
  place_.piece = pieces.data();
  for (const Piece& piece : pieces) place_.left += piece.size();
}

bool WireReader::read(void* target, uint64_t size) {
  if (size > place_.left) return false;
  place_.left -= size;
  auto* to = static_cast<std::byte*>(target);
  while (size > 0) {
    const Piece rest = place_.piece->subspan(place_.offset);
    const auto part = static_cast<size_t>(std::min<uint64_t>(rest.size(), size));
    if (to && part > 0) {
      std::memcpy(to, rest.data(), part);
      to += part;
    }
    size -= part;
    place_.offset += part;
    if (place_.offset == place_.piece->size() && (size > 0 || place_.left > 0)) {
      ++place_.piece;
      place_.offset = 0;
    }
  }
  return true;
}

bool WireReader::skip(uint64_t size) { return read(nullptr, size); }

bool WireReader::read_varint(uint64_t* value) {
  constexpr unsigned kBits = 7, kMaxBits = 64;
  uint64_t number = 0;
  for (unsigned shift = 0; shift < kMaxBits; shift += kBits) {
    uint8_t byte = 0;
    if (!read(&byte, 1)) return false;
    number |= uint64_t{byte & 0x7Fu} << shift;
    if (byte < 0x80) {
      *value = number;
      return true;
    }
  }
  return false;
}

bool WireReader::next() {
  if (is_malformed_ || place_.left == 0) return false;
  uint64_t tag = 0;
  if (!read_varint(&tag) || tag > std::numeric_limits<uint32_t>::max() || tag >> 3 == 0) return malformed();
  field_ = static_cast<uint32_t>(tag >> 3);
  type_ = static_cast<WireType>(tag & 7);
  number_ = 0;
  switch (type_) {
    case WireType::varint:
      return read_varint(&number_) || malformed();
    case WireType::fixed64:
      return read(&number_, sizeof(uint64_t)) || malformed();
    case WireType::fixed32:
      return read(&number_, sizeof(uint32_t)) || malformed();
    case WireType::bytes: {
      uint64_t size = 0;
      if (!read_varint(&size) || size > place_.left) return malformed();
      content_ = place_;
      content_.left = size;
      return skip(size);
    }
  }
  return malformed();
}

WireReader WireReader::content() const {
  WireReader reader;
  if (type_ == WireType::bytes) reader.place_ = content_;
  return reader;
}

uint64_t varint_size(uint64_t value) { return value == 0 ? 1 : (std::bit_width(value) + 6u) / 7u; }

void append_varint(std::string& message, uint64_t value) {
  for (; value >= 0x80; value >>= 7) message += static_cast<char>(value | 0x80);
  message += static_cast<char>(value);
}

void append_number(std::string& message, uint32_t field, uint64_t value) {
  append_varint(message, uint64_t{field} << 3 | static_cast<uint64_t>(WireType::varint));
  append_varint(message, value);
}

void append_head(std::string& message, uint32_t field, uint64_t size) {
  append_varint(message, uint64_t{field} << 3 | static_cast<uint64_t>(WireType::bytes));
  append_varint(message, size);
}

void append_numbers(std::string& message, uint32_t field, std::span<const int64_t> values) {
  uint64_t size = 0;
  for (const int64_t value : values) size += varint_size(static_cast<uint64_t>(value));
  if (size == 0) return;
  append_head(message, field, size);
  for (const int64_t value : values) append_varint(message, static_cast<uint64_t>(value));
}

void append_text(std::string& message, uint32_t field, std::string_view text) {
  append_head(message, field, text.size());
  message += text;
}

}  // namespace halyard::tools::serve
