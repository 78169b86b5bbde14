// The table of fields, and conversions. Floats have the same bytes in a packed field as in a tensor.
#include "tensor_contents.h"

#include <algorithm>
#include <cstring>

#include "grpc_fields.h"

namespace halyard::tools::serve {

namespace {

struct ContentsField {
  std::string_view name;
  WireType element;
};

// By field number, from 1 on.
constexpr ContentsField kFields[] = {
    {"bool_contents", WireType::varint},   {"int_contents", WireType::varint},
    {"int64_contents", WireType::varint},  {"uint_contents", WireType::varint},
    {"uint64_contents", WireType::varint}, {"fp32_contents", WireType::fixed32},
    {"fp64_contents", WireType::fixed64},  {"bytes_contents", WireType::bytes}};
enum : uint32_t { kNone, kBool, kInt, kInt64, kUint, kUint64, kFp32, kFp64 };

uint32_t field_of(const DataType& type) {
  constexpr uint32_t kWide = 8;
  switch (type.kind) {
    case NumberKind::boolean:
      return kBool;
    case NumberKind::signed_integer:
      return type.size == kWide ? kInt64 : kInt;
    case NumberKind::unsigned_integer:
      return type.size == kWide ? kUint64 : kUint;
    case NumberKind::real:
      return type.size == kWide ? kFp64 : type.size == sizeof(float) ? kFp32 : kNone;
  }
  return kNone;
}

std::string_view name_of(uint32_t field) {
  return field >= 1 && field <= std::size(kFields) ? kFields[field - 1].name : "";
}

bool is_fixed(uint32_t field) { return kFields[field - 1].element != WireType::varint; }

std::unexpected<Failure> malformed(std::string_view name) {
  return fail(HALYARD_INVALID_ARGUMENT, "'contents' of input '{}' are not a message of protocol buffers",
              name);
}

// Calls visit(WireReader& field) for each field in each `contents` of an input: a message that occurs several
// times is one message.
template <typename Visit>
Result<> each_field(WireReader input, std::string_view name, Visit&& visit) {
  while (input.next()) {
    if (!input.is(tensor_fields::kContents, WireType::bytes)) continue;
    WireReader contents = input.content();
    while (contents.next()) TOOL_TRY(visit(contents));
    if (contents.is_malformed()) return malformed(name);
  }
  return {};
}

// False: the number is not of the type.
template <typename Wide, typename T>
bool store(uint64_t number, std::byte* target) {
  const auto wide = static_cast<Wide>(number);
  const auto value = static_cast<T>(wide);
  std::memcpy(target, &value, sizeof value);
  return std::in_range<T>(wide);
}

bool store(const DataType& type, uint64_t number, std::byte* target) {
  const bool is_signed = type.kind == NumberKind::signed_integer;
  if (type.kind == NumberKind::boolean) number = number != 0 ? 1 : 0;
  switch (type.size) {
    case 1:
      return is_signed ? store<int32_t, int8_t>(number, target) : store<uint32_t, uint8_t>(number, target);
    case 2:
      return is_signed ? store<int32_t, int16_t>(number, target) : store<uint32_t, uint16_t>(number, target);
    case 4:
      return store<uint32_t, uint32_t>(number, target);
    default:
      return store<uint64_t, uint64_t>(number, target);
  }
}

// The number of varints in a packed field; nothing if the last one has no end.
std::optional<uint64_t> count_varints(WireReader packed) {
  uint64_t count = 0;
  while (packed.size() > 0) {
    uint64_t ignored = 0;
    if (!packed.read_varint(&ignored)) return std::nullopt;
    ++count;
  }
  return count;
}

template <typename T>
T load(const std::byte* source) {
  T value;
  std::memcpy(&value, source, sizeof value);
  return value;
}

// Negative numbers have the varint of their 64 bits.
uint64_t number_of(const DataType& type, const std::byte* source) {
  if (type.kind == NumberKind::boolean) return load<uint8_t>(source) != 0 ? 1 : 0;
  const bool is_signed = type.kind == NumberKind::signed_integer;
  switch (type.size) {
    case 1:
      return is_signed ? static_cast<uint64_t>(int64_t{load<int8_t>(source)}) : load<uint8_t>(source);
    case 2:
      return is_signed ? static_cast<uint64_t>(int64_t{load<int16_t>(source)}) : load<uint16_t>(source);
    case 4:
      return is_signed ? static_cast<uint64_t>(int64_t{load<int32_t>(source)}) : load<uint32_t>(source);
    default:
      return load<uint64_t>(source);
  }
}

}  // namespace

bool has_contents(const DataType& type) { return field_of(type) != kNone; }

Result<uint64_t> count_contents(const WireReader& input, const DataType& type, std::string_view name) {
  const uint32_t expected = field_of(type);
  if (expected == kNone)
    return fail(HALYARD_INVALID_ARGUMENT,
                "input '{}' is {}, which 'contents' cannot have; use 'raw_input_contents'", name, type.name);
  uint64_t count = 0;
  TOOL_TRY(each_field(input, name, [&](const WireReader& field) -> Result<> {
    if (name_of(field.field()).empty()) return {};
    const bool is_packed = field.type() == WireType::bytes;
    if (field.field() != expected) {
      if (is_packed && field.content().size() == 0) return {};
      return fail(HALYARD_INVALID_ARGUMENT, "input '{}' is {}, but has '{}'; expected '{}'", name, type.name,
                  name_of(field.field()), name_of(expected));
    }
    if (!is_packed && field.type() != kFields[expected - 1].element) return malformed(name);
    if (!is_packed) return ++count, Result<>();
    const uint64_t size = field.content().size();
    const std::optional<uint64_t> packed = !is_fixed(expected)     ? count_varints(field.content())
                                           : size % type.size == 0 ? std::optional(size / type.size)
                                                                   : std::nullopt;
    if (!packed) return malformed(name);
    count += *packed;
    return {};
  }));
  return count;
}

Result<> read_contents(const WireReader& input, const DataType& type, std::string_view name,
                       std::byte* target) {
  const uint32_t expected = field_of(type);
  uint64_t index = 0;
  const auto take = [&](uint64_t number) -> Result<> {
    if (!store(type, number, target))
      return fail(HALYARD_INVALID_ARGUMENT, "element {} of input '{}' is not of type {}", index, name,
                  type.name);
    target += type.size;
    ++index;
    return {};
  };
  return each_field(input, name, [&](const WireReader& field) -> Result<> {
    if (field.field() != expected) return {};
    if (field.type() != WireType::bytes) return take(field.number());
    WireReader packed = field.content();
    if (is_fixed(expected)) {
      const uint64_t size = packed.size();
      packed.read(target, size);
      target += size;
      index += size / type.size;
      return {};
    }
    for (uint64_t number = 0; packed.size() > 0 && packed.read_varint(&number);) TOOL_TRY(take(number));
    return {};
  });
}

uint64_t contents_bound(const DataType& type, uint64_t bytes) {
  constexpr uint64_t kFrame = 16, kMaxVarint = 10;
  const uint32_t field = field_of(type);
  if (field == kNone || is_fixed(field)) return kFrame;
  const uint64_t longest =
      type.kind == NumberKind::signed_integer ? kMaxVarint : type.size + type.size / 4 + 1;
  return kFrame + bytes / type.size * longest;
}

WrittenContents write_contents(const DataType& type, std::span<const std::byte> bytes) {
  WrittenContents written;
  const uint32_t field = field_of(type);
  if (bytes.empty()) return written;
  if (is_fixed(field)) {
    append_head(written.text, field, bytes.size());
    written.has_bytes = true;
    return written;
  }
  const auto each_number = [&](auto&& visit) {
    for (size_t i = 0; i + type.size <= bytes.size(); i += type.size)
      visit(number_of(type, bytes.data() + i));
  };
  uint64_t size = 0;
  each_number([&](uint64_t number) { size += varint_size(number); });
  written.text.reserve(size_of_field(size));
  append_head(written.text, field, size);
  each_number([&](uint64_t number) { append_varint(written.text, number); });
  return written;
}

}  // namespace halyard::tools::serve
