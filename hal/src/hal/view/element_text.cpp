// Conversion between values and text, by the form of the type (Form).
#include "hal/view/element_text.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <clocale>
#include <cstdlib>
#include <cstring>
#include <new>
#include <stdexcept>
#include <utility>

#include "hal/view/element_value.h"

namespace halyard::hal {

namespace {

// The text form of a type's values.
enum class Form { unwritable, integer, real, boolean, complex, bytes };

Form form_of(ElementType type) {
  const uint32_t bits = bit_count(type);
  if (bits == 0 || bits % 8 != 0) return Form::unwritable;
  if (is_integer(type)) return Form::integer;
  if (is_float(type)) return Form::real;
  if (type == element_type(kBoolean, 8)) return Form::boolean;
  return type == element_type(kFloatComplex, 64) || type == element_type(kFloatComplex, 128) ? Form::complex
                                                                                             : Form::bytes;
}

bool is_separator(char c) { return c == ',' || c == '[' || c == ']' || c == ' ' || (c >= '\t' && c <= '\r'); }

int hex_digit(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::unexpected<Status> bad_element(std::string_view text, ElementType type, std::string_view expected) {
  return fail(Code::INVALID_ARGUMENT, "cannot read {} as an element of type {}; expected {}", quoted(text),
              element_type_text(type), expected);
}

// An integer as C writes it: sign, then decimal, 0x or leading 0.
struct Integer {
  bool valid = false;  // the whole text is an integer
  bool negative = false;
  bool overflow = false;  // the magnitude does not fit 64 bits
  uint64_t magnitude = 0;
};
Integer read_integer(std::string_view text) {
  Integer result;
  size_t at = 0;
  if (at < text.size() && (text[at] == '+' || text[at] == '-')) result.negative = text[at++] == '-';
  uint64_t base = 10;
  if (at < text.size() && text[at] == '0') {
    const bool hex =
        text.size() - at >= 3 && (text[at + 1] == 'x' || text[at + 1] == 'X') && hex_digit(text[at + 2]) >= 0;
    base = hex ? 16 : 8;
    if (hex) at += 2;
  }
  result.valid = at < text.size();
  for (; at < text.size(); ++at) {
    const int digit = hex_digit(text[at]);
    if (digit < 0 || static_cast<uint64_t>(digit) >= base) return {};
    result.overflow |= __builtin_mul_overflow(result.magnitude, base, &result.magnitude);
    result.overflow |=
        __builtin_add_overflow(result.magnitude, static_cast<uint64_t>(digit), &result.magnitude);
  }
  return result;
}

template <typename T>
void append(std::vector<uint8_t>& out, T value) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(&value);
  out.insert(out.end(), bytes, bytes + sizeof(T));
}

void append_low_bytes(std::vector<uint8_t>& out, uint64_t value, size_t count) {
  for (size_t i = 0; i < count; ++i) out.push_back(static_cast<uint8_t>(value >> (8 * i)));
}

// The values of an integer type. Signless types accept signed and unsigned values, but i64 only signed ones;
// ui64 also accepts those of i64.
struct Range {
  __int128 least;
  __int128 most;
};
Range range_of(ElementType type) {
  const uint32_t bits = bit_count(type);
  const __int128 half = __int128{1} << (bits - 1);
  const bool is_wide = bits == 64;
  switch (numerical_type(type)) {
    case kIntegerSigned:
      return {-half, half - 1};
    case kIntegerUnsigned:
      return {is_wide ? -half : 0, 2 * half - 1};
    default:
      return {-half, (is_wide ? half : 2 * half) - 1};
  }
}

Result<> parse_integer(std::string_view text, ElementType type, std::vector<uint8_t>& out) {
  const Integer number = read_integer(text);
  if (!number.valid) return bad_element(text, type, "a decimal, 0x or octal integer");
  const auto [least, most] = range_of(type);
  const __int128 value = number.negative ? -__int128{number.magnitude} : __int128{number.magnitude};
  if (number.overflow || value < least || value > most)
    return bad_element(text, type, fmt::format("an integer from {} to {}", least, most));
  append_low_bytes(out, static_cast<uint64_t>(value), bit_count(type) / 8);
  return {};
}

// Numbers are parsed as in C, independently of the process's locale.
locale_t c_locale() {
  static const locale_t locale = ::newlocale(LC_ALL_MASK, "C", nullptr);
  return locale;
}

Result<> parse_real(std::string_view text, ElementType type, std::vector<uint8_t>& out) {
  const std::string terminated(text);
  const char* begin = terminated.c_str();
  char* end = nullptr;
  double value = 0;
  float single = 0;
  const bool is_single = type == element_type(kFloatIeee, 32);
  errno = 0;
  if (is_single) {
    single = ::strtof_l(begin, &end, c_locale());
  } else {
    value = ::strtod_l(begin, &end, c_locale());
  }
  const bool out_of_range = errno == ERANGE;
  if (text.empty() || is_separator(text.front()) || end != begin + terminated.size())
    return bad_element(text, type, "a number, 'inf' or 'nan'");
  if (const SmallFloat* format = small_float(type)) {
    append_low_bytes(out, format->narrow(value), bit_count(type) / 8);
    return {};
  }
  if (out_of_range && (is_single ? single == 0 : value == 0))
    return bad_element(text, type, "0 or a number that does not vanish when it is rounded");
  if (is_single) {
    append(out, single);
  } else {
    append(out, value);
  }
  return {};
}

// Hexadecimal digits for all bytes of an element, as they are printed.
bool is_bytes(std::string_view text, ElementType type) {
  return text.size() == bit_count(type) / 4 &&
         std::all_of(text.begin(), text.end(), [](char c) { return hex_digit(c) >= 0; });
}

Result<> parse_bytes(std::string_view text, ElementType type, std::vector<uint8_t>& out) {
  if (!is_bytes(text, type))
    return bad_element(text, type,
                       fmt::format("{} hexadecimal digits: its bytes in memory order", bit_count(type) / 4));
  for (size_t i = 0; i < text.size(); i += 2)
    out.push_back(static_cast<uint8_t>(hex_digit(text[i]) << 4 | hex_digit(text[i + 1])));
  return {};
}

Result<> parse_boolean(std::string_view text, ElementType type, std::vector<uint8_t>& out) {
  constexpr std::pair<std::string_view, uint8_t> kWords[] = {{"0", 0},    {"1", 1},     {"false", 0},
                                                             {"true", 1}, {"False", 0}, {"True", 1}};
  for (const auto& [word, value] : kWords) {
    if (text != word) continue;
    out.push_back(value);
    return {};
  }
  if (is_bytes(text, type)) return parse_bytes(text, type, out);
  return bad_element(text, type, "0, 1, true or false, or 2 hexadecimal digits: its byte");
}

// The number of leading characters that C reads as a number.
size_t number_length(std::string_view text) {
  const std::string terminated(text);
  char* end = nullptr;
  ::strtod_l(terminated.c_str(), &end, c_locale());
  return static_cast<size_t>(end - terminated.c_str());
}

// "1+2j", "3", "2j", also in parentheses, like Python's complex numbers; or printed bytes.
Result<> parse_complex(std::string_view text, ElementType type, std::vector<uint8_t>& out) {
  if (is_bytes(text, type)) return parse_bytes(text, type, out);
  std::string_view number = text;
  if (number.starts_with('(') && number.ends_with(')')) number = number.substr(1, number.size() - 2);
  std::string_view real = number.substr(0, number_length(number));
  std::string_view imaginary = number.substr(real.size());
  if (imaginary == "j") std::swap(real, imaginary);
  const bool has_sign = imaginary.starts_with('+') || imaginary.starts_with('-');
  if (imaginary.ends_with('j') && has_sign) {
    imaginary.remove_suffix(1);
  } else if (real == "j") {
    real = "0";
  } else if (imaginary.empty()) {
    imaginary = "0";
  } else {
    real = {};  // neither a number nor a sum
  }
  const ElementType part = element_type(kFloatIeee, bit_count(type) / 2);
  const size_t size = out.size();
  if (parse_real(real, part, out) && parse_real(imaginary, part, out)) return {};
  out.resize(size);
  return bad_element(text, type,
                     fmt::format("a number such as 1+2j, 2j or 3, or {} hexadecimal digits: its bytes in "
                                 "memory order",
                                 bit_count(type) / 4));
}

void format_integer(const uint8_t* element, ElementType type, std::string& out) {
  fmt::format_to(std::back_inserter(out), "{}", integer_value(element, type));
}

void format_real(const uint8_t* element, ElementType type, std::string& out) {
  fmt::format_to(std::back_inserter(out), "{:.6G}", float_value(element, type));
}

void format_bytes(const uint8_t* element, ElementType type, std::string& out) {
  for (size_t i = 0; i < bit_count(type) / 8; ++i)
    fmt::format_to(std::back_inserter(out), "{:02X}", element[i]);
}

// Writes the contents level by level, and counts down the elements that may still be written.
class ContentsWriter {
 public:
  ContentsWriter(ElementType type, const uint8_t* bytes, uint64_t left, std::string& out)
      : type_(type), next_(bytes), left_(left), out_(out) {}

  Result<> write(std::span<const int64_t> shape) {
    if (shape.size() > 1) {
      for (int64_t i = 0; i < shape.front(); ++i) {
        out_ += '[';
        HALYARD_TRY(write(shape.subspan(1)));
        out_ += ']';
      }
      return {};
    }
    const uint64_t length = shape.empty() ? 1 : static_cast<uint64_t>(shape.front());
    const uint64_t count = std::min(length, left_);
    for (uint64_t i = 0; i < count; ++i) {
      if (i != 0) out_ += ' ';
      HALYARD_TRY(format_element(next_, type_, out_));
      next_ += bit_count(type_) / 8;
    }
    if (count < length) out_ += "...";
    left_ -= count;
    return {};
  }

 private:
  ElementType type_;
  const uint8_t* next_;
  uint64_t left_;
  std::string& out_;
};

// A shape with elements has about as many lists as elements, which are in memory. A shape without elements
// may describe any number of lists.
bool has_too_many_empty_lists(std::span<const int64_t> shape) {
  constexpr uint64_t kMaxLists = uint64_t{1} << 20;
  uint64_t lists = 1;
  uint64_t sum = 0;
  for (size_t i = 0; i + 1 < shape.size(); ++i) {
    if (__builtin_mul_overflow(lists, static_cast<uint64_t>(shape[i]), &lists)) return true;
    if (__builtin_add_overflow(sum, lists, &sum) || sum > kMaxLists) return true;
  }
  return false;
}

}  // namespace

Result<> parse_element(std::string_view text, ElementType type, std::vector<uint8_t>& out) {
  switch (form_of(type)) {
    case Form::integer:
      return parse_integer(text, type, out);
    case Form::real:
      return parse_real(text, type, out);
    case Form::boolean:
      return parse_boolean(text, type, out);
    case Form::complex:
      return parse_complex(text, type, out);
    case Form::bytes:
      return parse_bytes(text, type, out);
    case Form::unwritable:
      break;
  }
  return fail(Code::INVALID_ARGUMENT,
              "elements of type {} cannot be written as text; expected a type of whole bytes",
              element_type_text(type));
}

Result<> format_element(const uint8_t* element, ElementType type, std::string& out) {
  switch (form_of(type)) {
    case Form::integer:
      format_integer(element, type, out);
      return {};
    case Form::real:
      format_real(element, type, out);
      return {};
    case Form::boolean:
    case Form::complex:
    case Form::bytes:
      format_bytes(element, type, out);
      return {};
    case Form::unwritable:
      break;
  }
  return fail(Code::OUT_OF_RANGE, "elements of type {} cannot be printed; expected a type of whole bytes",
              element_type_text(type));
}

Result<std::string> format_contents(std::span<const int64_t> shape, ElementType type,
                                    std::span<const uint8_t> bytes, uint64_t max_elements) {
  const uint64_t size = HALYARD_TRY(dense_byte_count(shape, type));
  if (bytes.size() < size)
    return fail(Code::OUT_OF_RANGE, "a view of {}{}{} needs {} bytes, but there are {}", shape_text(shape),
                shape.empty() ? "" : "x", element_type_text(type), size, bytes.size());
  return format_leading(shape, type, bytes, max_elements);
}

Result<std::string> format_leading(std::span<const int64_t> shape, ElementType type,
                                   std::span<const uint8_t> bytes, uint64_t max_elements) {
  if (shape.size() > kMaxRank)
    return fail(Code::OUT_OF_RANGE, "cannot print {} dimensions; expected at most {}", shape.size(),
                kMaxRank);
  if (form_of(type) == Form::unwritable)
    return fail(Code::OUT_OF_RANGE, "elements of type {} cannot be printed; expected a type of whole bytes",
                element_type_text(type));
  const uint64_t count = HALYARD_TRY(element_count(shape));
  if (count == 0 && has_too_many_empty_lists(shape))
    return fail(Code::RESOURCE_EXHAUSTED, "shape {} has no elements, but too many empty lists to print",
                shape_text(shape));
  const uint64_t printed = std::min(count, max_elements);
  if (printed > bytes.size() / (bit_count(type) / 8))
    return fail(Code::OUT_OF_RANGE, "cannot print {} elements of type {} from {} bytes", printed,
                element_type_text(type), bytes.size());
  std::string text = shape_text(shape);
  if (!shape.empty()) text += 'x';
  text += element_type_text(type);
  text += '=';
  HALYARD_TRY(ContentsWriter(type, bytes.data(), max_elements, text).write(shape));
  return text;
}

namespace {

// The next run of characters between separators; empty at the end.
std::string_view next_token(std::string_view& rest) {
  while (!rest.empty() && is_separator(rest.front())) rest.remove_prefix(1);
  size_t size = 0;
  while (size < rest.size() && !is_separator(rest[size])) ++size;
  const std::string_view token = rest.substr(0, size);
  rest.remove_prefix(size);
  return token;
}

uint64_t count_tokens(std::string_view rest) {
  uint64_t count = 0;
  while (!next_token(rest).empty()) ++count;
  return count;
}

uint64_t memory_of_this_machine() {
  return static_cast<uint64_t>(::sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
}

Result<> parse_elements(std::string_view elements, uint64_t byte_count, TensorText& tensor) {
  const uint64_t given = count_tokens(elements);
  if (given == 0) {
    tensor.bytes.resize(byte_count);
    return {};
  }
  const uint64_t expected = byte_count / (bit_count(tensor.type) / 8);
  if (given != 1 && given != expected)
    return fail(Code::OUT_OF_RANGE,
                "{} elements were given for shape {}; expected {}, or one that fills it, or none", given,
                tensor.shape.empty() ? "of a scalar" : shape_text(tensor.shape), expected);
  tensor.bytes.reserve(byte_count);
  std::string_view rest = elements;
  for (uint64_t i = 0; i < given; ++i)
    HALYARD_TRY(parse_element(next_token(rest), tensor.type, tensor.bytes));
  if (given == expected) return {};
  const std::vector<uint8_t> element = std::exchange(tensor.bytes, {});
  tensor.bytes.resize(byte_count);
  if (byte_count == 0) return {};
  std::memcpy(tensor.bytes.data(), element.data(), element.size());
  for (uint64_t filled = element.size(); filled < byte_count;
       filled *= 2)  // double the filled part by copying it
    std::memcpy(tensor.bytes.data() + filled, tensor.bytes.data(), std::min(filled, byte_count - filled));
  return {};
}

}  // namespace

Result<TensorText> parse_tensor(std::string_view text) {
  const size_t equals = text.find('=');
  if (equals == std::string_view::npos && text.find('x') == std::string_view::npos)
    return fail(Code::INVALID_ARGUMENT,
                "{} is not a tensor; expected 'shape x type = elements', as in 2x2xf32=1,2,3,4",
                quoted(text));
  auto [shape, type] = HALYARD_TRY(parse_tensor_type(text.substr(0, equals)));
  if (form_of(type) == Form::unwritable)
    return fail(Code::INVALID_ARGUMENT,
                "elements of type {} cannot be written as text; expected a type of whole bytes",
                element_type_text(type));
  const uint64_t byte_count = HALYARD_TRY(dense_byte_count(shape, type));
  if (byte_count > memory_of_this_machine())
    return fail(Code::RESOURCE_EXHAUSTED, "a tensor of {} of {} needs {} bytes, more than this machine has",
                shape_text(shape), element_type_text(type), byte_count);
  TensorText tensor{std::move(shape), type, {}};
  const std::string_view elements =
      equals == std::string_view::npos ? std::string_view() : text.substr(equals + 1);
  try {
    HALYARD_TRY(parse_elements(elements, byte_count, tensor));
  } catch (const std::bad_alloc&) {
    return fail(Code::RESOURCE_EXHAUSTED, "no memory for a tensor of {} bytes", byte_count);
  }
  return tensor;
}

}  // namespace halyard::hal
