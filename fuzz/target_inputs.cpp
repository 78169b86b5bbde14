// The text of an argument, or an npy file. Accepted input equals the result of other readers of the C library
// for all of it, is the same after printing or writing, and is refused with any text after it.
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fuzzing.h"
#include "hal/view/element_text.h"
#include "hal/view/element_type.h"
#include "hal/view/element_value.h"

// After the library's own headers, which have names that the C++ binding has, too.
#include "common/npy.h"
#include "common/scalar.h"

using namespace halyard;

namespace {

constexpr std::string_view kSeparators = " ,[]\t\n\v\f\r";
// None of these can continue a number, a word or a type.
constexpr std::string_view kJunk[] = {"?", "_", "z", ";1", "%", "!5"};
constexpr size_t kMaxBytes = 1 << 20;   // in a tensor
constexpr size_t kMaxPlaces = 1 << 12;  // elements times dimensions

std::vector<std::string> tokens_of(std::string_view text) {
  std::vector<std::string> tokens;
  for (size_t at = 0; (at = text.find_first_not_of(kSeparators, at)) != std::string_view::npos;) {
    const size_t end = std::min(text.find_first_of(kSeparators, at), text.size());
    tokens.emplace_back(text.substr(at, end - at));
    at = end;
  }
  return tokens;
}

// The value of a whole number as the C library reads it; no value if it is none.
std::optional<__int128> whole_number(const std::string& text) {
  const bool has_sign = text.starts_with('-') || text.starts_with('+');
  const char* const digits = text.c_str() + has_sign;
  if (*digits < '0' || *digits > '9') return std::nullopt;
  char* end = nullptr;
  errno = 0;
  const uint64_t magnitude = std::strtoull(digits, &end, 0);
  if (errno != 0 || end != text.c_str() + text.size()) return std::nullopt;
  return text.starts_with('-') ? -__int128{magnitude} : __int128{magnitude};
}

bool is_real(const std::string& text) {
  char* end = nullptr;
  std::strtod(text.c_str(), &end);
  return !text.empty() && end == text.c_str() + text.size();
}

void check_whole_number(const std::string& token, uint32_t bits, uint64_t stored) {
  const std::optional<__int128> value = whole_number(token);
  if (!value) fuzz::finding("a whole number that the C library does not read: " + token);
  const __int128 half = __int128{1} << (bits - 1);
  if (*value < -half || *value >= 2 * half) fuzz::finding("a number that its type has not: " + token);
  const uint64_t mask = bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
  if ((static_cast<uint64_t>(*value) & mask) != (stored & mask))
    fuzz::finding("another number than " + token);
}

void check_tensor(std::string_view text) {
  // Texts of large tensors take time and test nothing else.
  const auto type = hal::parse_tensor_type(text.substr(0, text.find('=')));
  if (type) {
    const auto size = hal::dense_byte_count(type->shape, type->type);
    if (!size || *size > kMaxBytes) return;
  }
  const auto tensor = hal::parse_tensor(text);
  if (!tensor) {
    if (tensor.error().text().empty()) fuzz::finding("a failure without a message");
    return;
  }
  const size_t equals = text.find('=');
  const std::vector<std::string> tokens =
      equals == std::string_view::npos ? std::vector<std::string>() : tokens_of(text.substr(equals + 1));
  const bool is_integer = hal::is_integer(tensor->type);
  const bool is_real_type = hal::is_float(tensor->type);
  const size_t size = hal::bit_count(tensor->type) / 8;
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (is_real_type && !is_real(tokens[i]))
      fuzz::finding("a number that the C library does not read: " + tokens[i]);
    if (!is_integer || (i + 1) * size > tensor->bytes.size()) continue;
    uint64_t stored = 0;
    std::memcpy(&stored, tensor->bytes.data() + i * size, size);
    check_whole_number(tokens[i], hal::bit_count(tensor->type), stored);
  }
  for (const std::string_view junk : kJunk)
    if (hal::parse_tensor(std::string(text) + std::string(junk)))
      fuzz::finding("accepted with text after it: " + std::string(text) + std::string(junk));
  const auto printed = hal::format_contents(tensor->shape, tensor->type, tensor->bytes, UINT64_MAX);
  if (!printed) {
    if (printed.error().code() == Code::RESOURCE_EXHAUSTED) return;  // too many empty lists
    fuzz::finding("what was read cannot be printed: " + printed.error().text());
  }
  const auto again = hal::parse_tensor(*printed);
  if (!again) {
    // A large or small float is rounded out of the range of its type.
    if (is_real_type) return;
    fuzz::finding("what is printed is refused: " + *printed);
  }
  if (again->shape != tensor->shape || again->type != tensor->type)
    fuzz::finding("another type the second time");
  if (!is_real_type && again->bytes != tensor->bytes)
    fuzz::finding("other bytes the second time: " + *printed);
}

void check_scalar(std::string_view text, char type) {
  const auto value = tools::parse_scalar(text, type);
  if (!value) return;
  const std::string token(text);
  if (type == 'i') check_whole_number(token, 32, static_cast<uint32_t>(value->raw().i32));
  if (type == 'I') check_whole_number(token, 64, static_cast<uint64_t>(value->raw().i64));
  if ((type == 'f' || type == 'F') && !is_real(token)) fuzz::finding("no number: " + token);
  for (const std::string_view junk : kJunk)
    if (tools::parse_scalar(token + std::string(junk), type))
      fuzz::finding("accepted with text after it: " + token);
}

using FileBytes = std::vector<uint8_t>;

tools::Result<tools::Array> first_array(FileBytes file) {
  tools::OpenFile stream(::fmemopen(file.data(), file.size(), "rb"));
  return tools::NpyFile(tools::ByteStream("f.npy", std::move(stream))).next();
}

// The position in an array in Fortran order of an element in C order.
size_t fortran_place(size_t place, const std::vector<int64_t>& shape) {
  std::vector<size_t> index(shape.size());
  for (size_t d = shape.size(); d-- > 0;) {
    index[d] = place % static_cast<size_t>(shape[d]);
    place /= static_cast<size_t>(shape[d]);
  }
  size_t result = 0;
  for (size_t d = shape.size(); d-- > 0;) result = result * static_cast<size_t>(shape[d]) + index[d];
  return result;
}

void check_npy(const FileBytes& file) {
  const auto array = first_array(file);
  if (!array) {
    if (array.error().text.empty()) fuzz::finding("a failure without a message");
    return;
  }
  const size_t size = (array->element_type & 0xFF) / 8;
  size_t count = 1;
  for (const int64_t dimension : array->shape) count *= static_cast<size_t>(dimension);
  if (array->bytes.size() != count * size) fuzz::finding("an array of another size than its shape");

  const auto header = tools::npy_header(array->type_name, array->shape);
  if (!header) fuzz::finding("what was read cannot be written: " + header.error().text);
  const std::string written(header->begin(), header->end());
  // Reads the array from a file with another header.
  const auto read_with = [&](std::string_view from, std::string_view to) -> std::optional<tools::Array> {
    std::string text = written;
    text.replace(text.find(from), from.size(), to);
    FileBytes changed(text.begin(), text.end());
    changed.insert(changed.end(), array->bytes.begin(), array->bytes.end());
    auto read = first_array(std::move(changed));
    return read ? std::optional(*std::move(read)) : std::nullopt;
  };
  const auto again = read_with("", "");
  if (!again || again->shape != array->shape || again->bytes != array->bytes ||
      !tools::npy_holds(again->type_name, array->type_name))
    fuzz::finding("another array when it is written and read: " + array->type_text());
  if (written.contains("}  ") && read_with("}  ", "} 1"))
    fuzz::finding("accepted with text after its header");
  if (read_with("'shape'", "'shapf'")) fuzz::finding("accepted without a shape");
  if (size == 0 || count * array->shape.size() > kMaxPlaces) return;
  const auto fortran = read_with("'fortran_order': False", "'fortran_order': True ");
  if (!fortran) fuzz::finding("Fortran order is refused");
  for (size_t i = 0; i < count; ++i)
    if (std::memcmp(fortran->bytes.data() + i * size,
                    array->bytes.data() + fortran_place(i, array->shape) * size, size) != 0)
      fuzz::finding("another element in Fortran order");
  if (!written.contains("'descr': '<") || written.contains("'<V")) return;
  const auto other = read_with("'descr': '<", "'descr': '>");
  if (!other) fuzz::finding("the other byte order is refused");
  const size_t part = array->type_name.starts_with('c') ? size / 2 : size;
  for (size_t i = 0; i < array->bytes.size(); ++i)
    if (other->bytes[i] != array->bytes[i / part * part + part - 1 - i % part])
      fuzz::finding("other bytes in the other byte order");
}

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  // The first byte selects the kind. The rest is in separate memory, so that a read beyond it is detected.
  const size_t which = data[0] % 8;
  const auto rest = std::make_unique<char[]>(size);
  std::copy(data + 1, data + size, rest.get());
  const std::string_view text(rest.get(), size - 1);
  if (text.empty()) return 0;
  constexpr std::string_view kScalars = "iIfF";
  if (which < kScalars.size()) {
    check_scalar(text, kScalars[which]);
  } else if (which == kScalars.size()) {
    check_npy(FileBytes(text.begin(), text.end()));
  } else {
    check_tensor(text);
  }
  return 0;
}
