// Reads and writes npy headers and their types.
#include "common/npy.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstring>
#include <optional>

namespace halyard::tools {

namespace {

constexpr char kMagic[] = "\x93NUMPY";
constexpr size_t kMagicSize = sizeof kMagic - 1;
constexpr uint32_t kMaximumHeader = 1 << 20;  // bytes; numpy's own are below 64 KiB

struct Header {
  std::string descr;
  std::optional<bool> fortran_order;
  std::optional<std::vector<int64_t>> shape;
};

// The Python dictionary of the header: {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }
class HeaderParser {
 public:
  explicit HeaderParser(std::string_view text) : text_(text) {}

  std::optional<Header> parse() {
    Header header;
    if (!take('{')) return std::nullopt;
    while (!take('}')) {
      const std::optional<std::string> key = quoted();
      if (!key || !take(':')) return std::nullopt;
      bool known = false;
      if (*key == "descr") {
        const std::optional<std::string> descr = quoted();
        known = descr.has_value();
        header.descr = descr.value_or("");
      } else if (*key == "fortran_order") {
        if (word("True")) header.fortran_order = true;
        if (word("False")) header.fortran_order = false;
        known = header.fortran_order.has_value();
      } else if (*key == "shape") {
        header.shape = tuple();
        known = header.shape.has_value();
      }
      if (!known) return std::nullopt;
      if (!take(',') && peek() != '}') return std::nullopt;
    }
    if (header.descr.empty() || !header.fortran_order || !header.shape) return std::nullopt;
    return header;
  }

 private:
  char peek() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool take(char expected) {
    if (peek() != expected) return false;
    ++at_;
    return true;
  }
  bool word(std::string_view expected) {
    peek();
    if (!text_.substr(at_).starts_with(expected)) return false;
    at_ += expected.size();
    return true;
  }
  std::optional<std::string> quoted() {
    const char quote = peek();
    if (quote != '\'' && quote != '"') return std::nullopt;
    const size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) return std::nullopt;
    std::string text(text_.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
    return text;
  }
  std::optional<std::vector<int64_t>> tuple() {
    std::vector<int64_t> values;
    if (!take('(')) return std::nullopt;
    while (!take(')')) {
      peek();
      int64_t value = 0;
      const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
      if (error != std::errc() || value < 0) return std::nullopt;
      at_ = static_cast<size_t>(end - text_.data());
      values.push_back(value);
      if (!take(',') && peek() != ')') return std::nullopt;
    }
    return values;
  }

  std::string_view text_;
  size_t at_ = 0;
};

// npy's name of an element type without its byte order, and Halyard's.
struct Entry {
  std::string_view code;
  std::string_view name;
};
constexpr Entry kEntries[] = {{"b1", "i1"},  {"i1", "si8"},  {"i2", "si16"}, {"i4", "si32"},   {"i8", "si64"},
                              {"u1", "ui8"}, {"u2", "ui16"}, {"u4", "ui32"}, {"u8", "ui64"},   {"f2", "f16"},
                              {"f4", "f32"}, {"f8", "f64"},  {"c8", "cf64"}, {"c16", "cf128"}, {"V1", "*8"},
                              {"V2", "*16"}, {"V4", "*32"},  {"V8", "*64"}};

// "<f4" to "f32"; empty if there is no such type.
std::string element_name(std::string_view descr) {
  if (descr.starts_with('<') || descr.starts_with('|')) descr.remove_prefix(1);
  for (const Entry& entry : kEntries)
    if (entry.code == descr) return std::string(entry.name);
  return "";
}

// "f32" to "<f4"; empty if there is no such type. Signless integers count as signed.
std::string descr_of(const std::string& name) {
  const std::string signed_name = name.starts_with('i') && name != "i1" ? "s" + name : name;
  for (const Entry& entry : kEntries) {
    if (entry.name != signed_name) continue;
    const bool has_order =
        entry.code != "b1" && entry.code != "i1" && entry.code != "u1" && entry.code[0] != 'V';
    return (has_order ? "<" : "|") + std::string(entry.code);
  }
  return "";
}

uint32_t little_endian(const uint8_t* bytes, size_t count) {
  uint32_t value = 0;
  for (size_t i = 0; i < count; ++i) value |= static_cast<uint32_t>(bytes[i]) << (8 * i);
  return value;
}

}  // namespace

Result<NpyFile> NpyFile::open(const std::string& path) { return NpyFile(path, TOOL_TRY(open_file(path))); }

bool NpyFile::at_end() {
  const int next = std::fgetc(file_.get());
  if (next != EOF) std::ungetc(next, file_.get());
  return next == EOF;
}

Result<Array> NpyFile::next() {
  if (at_end())
    return fail(HALYARD_OUT_OF_RANGE, "'{}' holds no further array; '@{}' starts with its first again", path_,
                path_);
  const auto read = [&](void* target, size_t size) {
    return std::fread(target, 1, size, file_.get()) == size;
  };
  uint8_t start[kMagicSize + 2] = {};
  if (!read(start, sizeof start) || std::memcmp(start, kMagic, kMagicSize) != 0)
    return fail(HALYARD_INVALID_ARGUMENT,
                "'{}' is not an npy file: it does not start with \\x93NUMPY; expected what numpy.save "
                "writes, or a shape "
                "and a type before raw bytes, as in 4xf32=@FILE",
                path_);
  const uint8_t version = start[kMagicSize];
  if (version < 1 || version > 3)
    return fail(HALYARD_INVALID_ARGUMENT, "'{}' is npy version {}; expected 1, 2 or 3", path_, version);
  const size_t size_bytes = version == 1 ? 2 : 4;
  uint8_t size_field[4] = {};
  if (!read(size_field, size_bytes))
    return fail(HALYARD_OUT_OF_RANGE, "'{}' ends within the npy header: it was cut off; write it again",
                path_);
  const uint32_t header_size = little_endian(size_field, size_bytes);
  if (header_size > kMaximumHeader)
    return fail(HALYARD_INVALID_ARGUMENT, "'{}' has an npy header of {} bytes; at most {} are expected",
                path_, header_size, kMaximumHeader);
  std::string text(header_size, '\0');
  if (!read(text.data(), text.size()))
    return fail(HALYARD_OUT_OF_RANGE, "'{}' ends within the npy header: it was cut off; write it again",
                path_);
  const std::optional<Header> header = HeaderParser(text).parse();
  if (!header)
    return fail(HALYARD_INVALID_ARGUMENT, "'{}' has an npy header that cannot be read: {}", path_, text);
  if (*header->fortran_order)
    return fail(HALYARD_UNIMPLEMENTED, "'{}' is in Fortran order; save it with numpy.ascontiguousarray",
                path_);
  std::string type = element_name(header->descr);
  if (type.empty())
    return fail(HALYARD_INVALID_ARGUMENT,
                "'{}' holds elements of dtype '{}', which no element type corresponds to", path_,
                header->descr);
  for (auto dimension = header->shape->rbegin(); dimension != header->shape->rend(); ++dimension)
    type = std::to_string(*dimension) + "x" + type;
  halyard_tensor_t* parsed = nullptr;
  TOOL_TRY(check(halyard_tensor_type_parse(to_text(type), &parsed)));
  const Block<halyard_tensor_t> tensor(parsed);
  Array array{.element_type = tensor->element_type, .shape = *header->shape, .bytes = {}};
  constexpr size_t kStep = 1 << 24;  // so that a hostile shape costs no more memory than the file has bytes
  for (size_t left = tensor->size; left > 0;) {
    const size_t step = std::min(left, kStep);
    const size_t at = array.bytes.size();
    array.bytes.resize(at + step);
    if (!read(array.bytes.data() + at, step))
      return fail(HALYARD_OUT_OF_RANGE,
                  "'{}' ends within an array of {} ({} bytes): it was cut off; write it again", path_, type,
                  tensor->size);
    left -= step;
  }
  return array;
}

Result<std::vector<uint8_t>> npy_header(const std::string& element_type, const std::vector<int64_t>& shape) {
  const std::string descr = descr_of(element_type);
  if (descr.empty())
    return fail(HALYARD_UNIMPLEMENTED,
                "npy files have no elements of type {}; write the bytes, to a name without .npy",
                element_type);
  std::string dimensions;
  for (const int64_t dimension : shape) dimensions += fmt::format("{}, ", dimension);
  if (shape.size() > 1) dimensions.resize(dimensions.size() - 2);
  if (shape.size() == 1) dimensions.resize(dimensions.size() - 1);  // "(3,)"
  std::string text =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", descr, dimensions);
  constexpr size_t kBefore = kMagicSize + 4;  // the version, and the length of the text
  constexpr size_t kAlignment = 64;           // of the data
  while ((kBefore + text.size() + 1) % kAlignment != 0) text += ' ';
  text += '\n';
  std::vector<uint8_t> header(kMagic, kMagic + kMagicSize);
  header.insert(header.end(),
                {1, 0, static_cast<uint8_t>(text.size() & 0xFF), static_cast<uint8_t>(text.size() >> 8)});
  header.insert(header.end(), text.begin(), text.end());
  return header;
}

}  // namespace halyard::tools
