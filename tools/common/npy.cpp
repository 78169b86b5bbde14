// Reads and writes npy headers, converts their types, and converts elements to the order that Halyard uses.
#include "common/npy.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstring>
#include <optional>

namespace halyard::tools {

namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr uint32_t kMaxHeader = 1 << 20;  // bytes; headers written by numpy are below 64 KiB

struct Header {
  std::string descr;
  std::optional<bool> fortran_order;
  std::optional<std::vector<int64_t>> shape;
};

// Parses the Python dictionary of the header, which must be complete: {'descr': '<f4', 'fortran_order':
// False, 'shape': (2, 3), }. Python 2 wrote (2L, 3L).
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
      if (*key == "descr" && header.descr.empty()) {
        header.descr = peek() == '[' ? bracketed() : quoted().value_or("");
        known = !header.descr.empty();
      } else if (*key == "fortran_order" && !header.fortran_order) {
        if (word("True"))
          header.fortran_order = true;
        else if (word("False"))
          header.fortran_order = false;
        known = header.fortran_order.has_value();
      } else if (*key == "shape" && !header.shape) {
        header.shape = tuple();
        known = header.shape.has_value();
      }
      if (!known) return std::nullopt;
      if (!take(',') && peek() != '}') return std::nullopt;
    }
    if (header.descr.empty() || !header.fortran_order || !header.shape) return std::nullopt;
    peek();
    if (at_ != text_.size()) return std::nullopt;
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
  // The fields of a structured type, for messages: [('x', '<f4'), ('y', '<f4')].
  std::string bracketed() {
    const size_t begin = at_;
    for (size_t depth = 0; at_ < text_.size(); ++at_) {
      if (text_[at_] == '[') ++depth;
      if (text_[at_] == ']' && --depth == 0) return std::string(text_.substr(begin, ++at_ - begin));
    }
    return "";
  }
  std::optional<std::string> quoted() {
    char quote = peek();
    if (quote == 'u' || quote == 'b') {
      ++at_;
      quote = at_ < text_.size() ? text_[at_] : '\0';
    }
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
      if (at_ < text_.size() && text_[at_] == 'L') ++at_;
      values.push_back(value);
      if (!take(',') && peek() != ')') return std::nullopt;
    }
    return values;
  }

  std::string_view text_;
  size_t at_ = 0;
};

// Names of an element type: npy's code without the byte order, Halyard's, and numpy's, which some writers
// use. Types without a code in npy: numpy supports them with the package ml_dtypes, whose code is V and the
// number of bytes.
struct Entry {
  std::string_view code;
  std::string_view name;
  std::string_view long_name;

  bool is_extension() const { return code.starts_with('V'); }
};
constexpr Entry kEntries[] = {
#define HALYARD_ELEMENT_TYPE(symbol, numerical, bits, text, declared, numpy, buffer, npy, ...) \
  {npy, text, numpy},
#include "halyard/element_types.inc"
};

// The number after the letter of a name such as V2 or *16.
std::optional<uint32_t> width(std::string_view name, char letter) {
  if (!name.starts_with(letter)) return std::nullopt;
  uint32_t value = 0;
  const auto [end, error] = std::from_chars(name.data() + 1, name.data() + name.size(), value);
  if (error != std::errc() || end != name.data() + name.size()) return std::nullopt;
  return value;
}

struct Dtype {
  std::string name;     // Halyard's name; empty: no equivalent element type
  size_t reversed = 0;  // size of the numbers whose bytes are in reverse order; 0: none
};

// Converts "<f4" to "f32".
Dtype dtype_of(std::string_view descr) {
  constexpr std::string_view kOrders = "<>=|";
  const char order = descr.empty() || !kOrders.contains(descr.front()) ? '|' : descr.front();
  for (const Entry& entry : kEntries)
    if (entry.is_extension() && descr == entry.long_name) return {std::string(entry.name), 0};
  const std::string_view code =
      kOrders.contains(descr.empty() ? ' ' : descr.front()) ? descr.substr(1) : descr;
  constexpr uint32_t kMaxBytes = 31;  // largest opaque element
  if (const std::optional<uint32_t> bytes = width(code, 'V'); bytes && *bytes >= 1 && *bytes <= kMaxBytes)
    return {fmt::format("*{}", 8 * *bytes), 0};
  for (const Entry& entry : kEntries) {
    if (entry.code.empty() || entry.is_extension()) continue;
    if (entry.code != code && entry.long_name != code && (code != "?" || entry.code != "b1")) continue;
    const bool is_complex = entry.code.front() == 'c';
    const size_t size = width(entry.code, entry.code.front()).value() / (is_complex ? 2 : 1);
    return {std::string(entry.name), order == '>' && size > 1 ? size : 0};
  }
  return {};
}

// Describes a dtype that has no equivalent element type, and what to do.
std::string_view reason(std::string_view descr) {
  const size_t letter = descr.find_first_not_of("<>=|");
  switch (letter == std::string_view::npos ? ' ' : descr[letter]) {
    case '[':
      return "a structure of several fields; save each field as a separate array";
    case 'U':
    case 'S':
    case 'a':
      return "text; tensors contain numbers";
    case 'O':
      return "Python objects; convert it with .astype of a number type and save it again";
    case 'M':
    case 'm':
      return "times; save it with .astype('<i8')";
    case 'f':
    case 'c':
      return "floats of a width that tensors do not have; save it with .astype('<f8')";
    default:
      return "which has no equivalent element type; save it with .astype of a number type, such as '<f4'";
  }
}

// Converts "f32" to "<f4"; empty if there is no such type. Signless integers count as signed.
std::string descr_of(const std::string& name) {
  if (const std::optional<uint32_t> bits = width(name, '*'); bits && *bits > 0 && *bits % 8 == 0)
    return fmt::format("|V{}", *bits / 8);
  const std::string signed_name = name.starts_with('i') && name != "i1" ? "s" + name : name;
  for (const Entry& entry : kEntries) {
    if (entry.name != signed_name || entry.code.empty()) continue;
    const bool has_order = width(entry.code, entry.code.front()) != 1;
    return (has_order ? "<" : "|") + std::string(entry.code);
  }
  return "";
}

// Reorders elements so that the last dimension is contiguous instead of the first.
std::vector<uint8_t> in_c_order(const std::vector<uint8_t>& bytes, const std::vector<int64_t>& shape,
                                size_t element_size) {
  std::vector<size_t> strides;
  size_t stride = element_size;
  for (const int64_t dimension : shape) {
    strides.push_back(stride);
    stride *= static_cast<size_t>(dimension);
  }
  std::vector<uint8_t> ordered(bytes.size());
  std::vector<int64_t> index(shape.size());
  size_t from = 0;
  for (size_t to = 0; to < bytes.size(); to += element_size) {
    std::memcpy(ordered.data() + to, bytes.data() + from, element_size);
    for (size_t d = shape.size(); d-- > 0;) {
      from += strides[d];
      if (++index[d] < shape[d]) break;
      from -= strides[d] * static_cast<size_t>(shape[d]);
      index[d] = 0;
    }
  }
  return ordered;
}

uint32_t little_endian(const uint8_t* bytes, size_t count) {
  uint32_t value = 0;
  for (size_t i = 0; i < count; ++i) value |= static_cast<uint32_t>(bytes[i]) << (8 * i);
  return value;
}

}  // namespace

std::string Array::type_text() const {
  std::string text;
  for (const int64_t dimension : shape) text += std::to_string(dimension) + "x";
  return text + type_name;
}

bool npy_holds(std::string_view type_name, std::string_view declared) {
  if (type_name == declared) return true;
  if (declared.starts_with('i') && declared != "i1")
    return type_name.size() == declared.size() + 1 && type_name.ends_with(declared) &&
           (type_name.front() == 's' || type_name.front() == 'u');
  const auto* const known = std::ranges::find(kEntries, declared, &Entry::name);
  return known != std::end(kEntries) && known->is_extension() && type_name == dtype_of(known->code).name;
}

Result<NpyFile> NpyFile::open(const std::string& path) { return NpyFile(TOOL_TRY(ByteStream::open(path))); }

bool NpyFile::is_next(ByteStream& stream) { return stream.begins_with(kMagic); }

Result<std::vector<uint8_t>> NpyFile::read(uint64_t size, std::string_view within) {
  std::vector<uint8_t> bytes = TOOL_TRY(stream_.read(size));
  if (bytes.size() == size) return bytes;
  return fail(HALYARD_OUT_OF_RANGE, "'{}' ends within {}: it was cut off; write it again", path(), within);
}

Result<Array> NpyFile::next() {
  constexpr std::string_view kHeader = "the npy header";
  if (at_end())
    return fail(HALYARD_OUT_OF_RANGE, "'{}' has no further array; '@{}' starts again with its first array",
                path(), path());
  if (!is_next(stream_))
    return fail(HALYARD_INVALID_ARGUMENT,
                "'{}' is not an npy file, because it does not start with \\x93NUMPY; expected the output of "
                "numpy.save, or a shape and a type before raw bytes, as in 4xf32=@FILE",
                path());
  const std::vector<uint8_t> start = TOOL_TRY(read(kMagic.size() + 2, kHeader));
  const uint8_t version = start[kMagic.size()];
  const uint8_t minor = start[kMagic.size() + 1];
  if (version < 1 || version > 3 || minor != 0)
    return fail(HALYARD_INVALID_ARGUMENT, "'{}' is npy version {}.{}; expected 1.0, 2.0 or 3.0", path(),
                version, minor);
  const size_t size_bytes = version == 1 ? 2 : 4;
  const uint32_t header_size = little_endian(TOOL_TRY(read(size_bytes, kHeader)).data(), size_bytes);
  if (header_size > kMaxHeader)
    return fail(HALYARD_INVALID_ARGUMENT, "'{}' has an npy header of {} bytes; expected at most {}", path(),
                header_size, kMaxHeader);
  const std::vector<uint8_t> bytes = TOOL_TRY(read(header_size, kHeader));
  const std::string text(bytes.begin(), bytes.end());
  const std::optional<Header> header = HeaderParser(text).parse();
  if (!header)
    return fail(HALYARD_INVALID_ARGUMENT,
                "'{}' has an npy header that cannot be read: {}; expected {{'descr': '<f4', 'fortran_order': "
                "False, 'shape': (2, 3), }}",
                path(), text.substr(0, text.find_last_not_of(" \n") + 1));
  const Dtype dtype = dtype_of(header->descr);
  if (dtype.name.empty())
    return fail(HALYARD_INVALID_ARGUMENT, "'{}' has elements of dtype '{}', {}", path(), header->descr,
                reason(header->descr));
  Array array{.type_name = dtype.name, .element_type = 0, .shape = *header->shape, .bytes = {}};
  const std::string type = array.type_text();
  const TensorText tensor = TOOL_TRY(TensorText::parse_type(type));
  array.element_type = tensor->element_type;
  array.bytes = TOOL_TRY(read(tensor->size, fmt::format("an array of {} ({} bytes)", type, tensor->size)));
  if (dtype.reversed != 0)
    for (auto at = array.bytes.begin(); at != array.bytes.end(); at += static_cast<ptrdiff_t>(dtype.reversed))
      std::reverse(at, at + static_cast<ptrdiff_t>(dtype.reversed));
  constexpr uint32_t kBitsMask = 0xFF;  // of an element type
  if (*header->fortran_order && array.shape.size() > 1)
    array.bytes = in_c_order(array.bytes, array.shape, (array.element_type & kBitsMask) / 8);
  return array;
}

Result<std::vector<uint8_t>> npy_header(const std::string& element_type, const std::vector<int64_t>& shape) {
  const std::string descr = descr_of(element_type);
  if (descr.empty())
    return fail(HALYARD_UNIMPLEMENTED,
                "npy files have no elements of type {}; write the bytes, to a name that does not end in .npy",
                element_type);
  std::string dimensions;
  for (const int64_t dimension : shape) dimensions += fmt::format("{}, ", dimension);
  if (shape.size() > 1) dimensions.resize(dimensions.size() - 2);
  if (shape.size() == 1) dimensions.resize(dimensions.size() - 1);  // "(3,)"
  std::string text =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", descr, dimensions);
  constexpr size_t kBefore = kMagic.size() + 4;  // the version, and the length of the text
  constexpr size_t kAlignment = 64;              // of the data
  while ((kBefore + text.size() + 1) % kAlignment != 0) text += ' ';
  text += '\n';
  std::vector<uint8_t> header(kMagic.begin(), kMagic.end());
  header.insert(header.end(),
                {1, 0, static_cast<uint8_t>(text.size() & 0xFF), static_cast<uint8_t>(text.size() >> 8)});
  header.insert(header.end(), text.begin(), text.end());
  return header;
}

}  // namespace halyard::tools
