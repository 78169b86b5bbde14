// The .safetensors reader. The header is JSON; type and shape determine the number of bytes of a tensor.
// Specified by parameters-and-files.md, section 3.3.
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "modules/file_fields.h"
#include "modules/json_events.h"
#include "modules/parameter_archive.h"

namespace halyard::modules {
namespace {

using Kind = JsonEvent::Kind;

constexpr std::string_view kMetadata = "__metadata__";
constexpr uint64_t kMaxHeader = 100'000'000;  // bytes; the limit of the format's own library
constexpr size_t kMaxDimensions = 64;

struct ElementType {
  std::string_view name;
  uint32_t bits;
};
constexpr ElementType kElementTypes[] = {
    {"F4", 4},
    {"F6_E2M3", 6},
    {"F6_E3M2", 6},
// "" where the format has no such type.
#define HALYARD_ELEMENT_TYPE(symbol, numerical, bits, text, declared, numpy, buffer, npy, safetensors, ...) \
  {safetensors, bits},
#include "halyard/element_types.inc"
};

// The used members of a tensor.
struct Tensor {
  std::optional<std::string> type;
  std::optional<std::vector<uint64_t>> shape;
  std::optional<std::vector<uint64_t>> offsets;
};

// Handles the events of the header.
class Header {
 public:
  Header(const Ref<Bytes>& file, std::span<const uint8_t> data) : file_(file), data_(data) {}

  Result<> take(const JsonEvent& event) {
    switch (event.depth) {
      case 0:
        if (event.kind == Kind::object || event.kind == Kind::end) return {};
        return fail(Code::INVALID_ARGUMENT, "expected an object with a member for each tensor");
      case 1:
        return take_tensor(event);
      case 2:
        return in_metadata_ ? Result<>() : take_member(event);
      case 3:
        return in_metadata_ || !list() ? Result<>() : take_number(event);
      default:
        return {};
    }
  }

  ParameterEntries entries;

 private:
  enum class Member : uint8_t { other, dtype, shape, offsets };

  template <typename... Args>
  std::unexpected<Status> error(fmt::format_string<Args...> format, Args&&... args) const {
    return fail(Code::INVALID_ARGUMENT, "tensor '{}' {}", name_,
                fmt::format(format, std::forward<Args>(args)...));
  }

  Result<> take_tensor(const JsonEvent& event) {
    switch (event.kind) {
      case Kind::key:
        name_ = event.text;
        in_metadata_ = name_ == kMetadata;
        if (in_metadata_ && std::exchange(has_metadata_, true))
          return fail(Code::INVALID_ARGUMENT, "{} occurs twice; write the file again", kMetadata);
        return {};
      case Kind::object:
        tensor_ = {};
        member_ = Member::other;
        return {};
      case Kind::end:
        return in_metadata_ ? Result<>() : add_tensor();
      default:
        if (in_metadata_) return {};
        return error("is not an object; expected an object with dtype, shape and data_offsets");
    }
  }

  // The list to which the next numbers belong; null: the numbers are ignored.
  std::vector<uint64_t>* list() {
    if (member_ == Member::shape && tensor_.shape) return &*tensor_.shape;
    if (member_ == Member::offsets && tensor_.offsets) return &*tensor_.offsets;
    return nullptr;
  }

  Result<> take_member(const JsonEvent& event) {
    if (event.kind == Kind::key) {
      member_ = event.text == "dtype"          ? Member::dtype
                : event.text == "shape"        ? Member::shape
                : event.text == "data_offsets" ? Member::offsets
                                               : Member::other;
      const bool is_there = (member_ == Member::dtype && tensor_.type) || list() != nullptr;
      return is_there ? error("has {} twice; write the file again", event.text) : Result<>();
    }
    if (event.kind == Kind::end || member_ == Member::other) return {};
    if (member_ == Member::dtype) {
      if (event.kind != Kind::string) return error("has a dtype that is not a string");
      tensor_.type = event.text;
      return {};
    }
    const bool is_shape = member_ == Member::shape;
    if (event.kind != Kind::array)
      return error("has a member {} that is not a list of numbers", is_shape ? "shape" : "data_offsets");
    (is_shape ? tensor_.shape : tensor_.offsets).emplace();
    return {};
  }

  Result<> take_number(const JsonEvent& event) {
    std::vector<uint64_t>& numbers = *list();
    if (event.kind != Kind::whole)
      return error("has a {} with elements other than whole numbers from 0 to 2^64 - 1",
                   member_ == Member::shape ? "shape" : "data_offsets");
    if (numbers.size() == kMaxDimensions) return error("has more than {} dimensions", kMaxDimensions);
    numbers.push_back(event.whole);
    return {};
  }

  Result<> add_tensor() {
    if (!tensor_.offsets) return error("has no data_offsets");
    const std::vector<uint64_t>& offsets = *tensor_.offsets;
    if (offsets.size() != 2)
      return error("has {} data_offsets; expected 2: the begin and the end of its bytes", offsets.size());
    const uint64_t begin = offsets[0], end = offsets[1];
    if (begin > end || end > data_.size())
      return error("is at [{}, {}) of {} bytes of data; the file is damaged or was cut off", begin, end,
                   data_.size());
    Parameter parameter;
    parameter.bytes = data_.subspan(begin, end - begin);
    parameter.length = end - begin;
    parameter.keep = file_;
    if (tensor_.type && tensor_.shape) {
      parameter.type = fmt::format("{} [{}]", *tensor_.type, fmt::join(*tensor_.shape, ", "));
      HALYARD_TRY(check_size(parameter.length, parameter.type));
    }
    entries.emplace_back(std::move(name_), std::move(parameter));
    return {};
  }

  // Unknown types are not checked, because their element size is unknown.
  Result<> check_size(uint64_t size, std::string_view declared) const {
    const auto* type = std::ranges::find(kElementTypes, *tensor_.type, &ElementType::name);
    if (type == std::end(kElementTypes) || type->name.empty()) return {};
    uint64_t bits = type->bits;
    bool is_too_large = false;
    for (const uint64_t dimension : *tensor_.shape)
      is_too_large |= __builtin_mul_overflow(bits, dimension, &bits);
    if (std::ranges::find(*tensor_.shape, 0u) != tensor_.shape->end()) {
      bits = 0;
      is_too_large = false;
    }
    if (is_too_large) return error("is {}, whose size in bits exceeds 64 bits", declared);
    if (bits % 8 != 0) return error("is {}, which is {} bits; expected whole bytes", declared, bits);
    if (bits / 8 != size)
      return error("has {} bytes, but {} needs {}; the file is damaged or was written wrongly", size,
                   declared, bits / 8);
    return {};
  }

  const Ref<Bytes>& file_;
  const std::span<const uint8_t> data_;
  std::string name_;  // of the current tensor
  bool in_metadata_ = false, has_metadata_ = false;
  Tensor tensor_;
  Member member_ = Member::other;
};

}  // namespace

Result<ParameterEntries> read_safetensors(const Ref<Bytes>& file, std::string_view path) {
  FileFields fields(file->span(), path);
  const uint64_t size = HALYARD_TRY(fields.next<uint64_t>("the length of the header"));
  const auto bytes = HALYARD_TRY(fields.take(size, "the header"));
  if (size > kMaxHeader)
    return fields.error(Code::INVALID_ARGUMENT, "the header has {} bytes, expected at most {}", size,
                        kMaxHeader);
  Header header(file, file->span().subspan(fields.position()));
  const Result<> read = read_json({reinterpret_cast<const char*>(bytes.data()), bytes.size()},
                                  [&](const JsonEvent& event) { return header.take(event); });
  if (!read)
    return fail(read.error().code(), "parameter file '{}', header: {}", path, read.error().message());
  HALYARD_TRY(refuse_repeated_names(header.entries, path));
  return std::move(header.entries);
}

}  // namespace halyard::modules
