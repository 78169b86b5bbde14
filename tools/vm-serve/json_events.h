// Reads JSON (RFC 8259) from memory and reports what it finds, as it goes: nothing is built, and strings
// share one buffer.
#pragma once

#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

namespace halyard::tools::serve {

// Calls functions of `events`, each of which returns whether to go on:
//
//   bool null(), boolean(bool)
//   bool number_unsigned(uint64_t)      whole numbers without a sign
//   bool number_integer(int64_t)        negative ones
//   bool number_float(double)           all others, -0, and whole numbers that 64 bits cannot hold
//   bool string(std::string&), key(std::string&)     UTF-8; may be moved from
//   bool start_object(), end_object(), start_array(), end_array()
//   bool parse_error(size_t position, std::string_view why)    the text is no JSON there: its result is
//   run()'s
//
// Depth costs a byte each; whoever wants less ends it in start_object() and start_array().
template <typename Events>
class JsonReader {
 public:
  JsonReader(std::string_view text, Events& events)
      : begin_(text.data()), at_(begin_), end_(begin_ + text.size()), events_(events) {}

  // Reads one value, with nothing but blanks around it.
  bool run() {
    constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
    if (std::string_view(at_, size()).starts_with(kByteOrderMark)) at_ += kByteOrderMark.size();
    for (;;) {
      bool is_open = false;  // an object or an array has begun, and its first value comes next
      if (!value(is_open)) return false;
      if (is_open) continue;
      bool has_next = false;
      if (!close_ended(has_next)) return false;
      if (!has_next) return true;
    }
  }

 private:
  size_t size() const { return static_cast<size_t>(end_ - at_); }
  bool wrong(std::string_view why) { return events_.parse_error(static_cast<size_t>(at_ - begin_), why); }
  void skip_blanks() {
    while (at_ != end_ && (*at_ == ' ' || *at_ == '\n' || *at_ == '\r' || *at_ == '\t')) ++at_;
  }
  bool take(char c) {
    if (at_ == end_ || *at_ != c) return false;
    ++at_;
    return true;
  }

  bool value(bool& is_open) {
    skip_blanks();
    if (at_ == end_) return wrong("the text ends where a value is expected");
    switch (*at_) {
      case '{':
        if (!events_.start_object()) return false;
        ++at_;
        skip_blanks();
        if (take('}')) return events_.end_object();
        open_.push_back('{');
        is_open = true;
        return key();
      case '[':
        if (!events_.start_array()) return false;
        ++at_;
        skip_blanks();
        if (take(']')) return events_.end_array();
        open_.push_back('[');
        is_open = true;
        return true;
      case '"':
        return string() && events_.string(text_);
      case 't':
        return literal("true") && events_.boolean(true);
      case 'f':
        return literal("false") && events_.boolean(false);
      case 'n':
        return literal("null") && events_.null();
      default:
        return number();
    }
  }

  // Behind a value: ends what it was the last of. `has_next`: another value follows.
  bool close_ended(bool& has_next) {
    for (;;) {
      skip_blanks();
      if (open_.empty()) return at_ == end_ || wrong("expected the end of the text");
      const bool is_object = open_.back() == '{';
      if (take(',')) {
        has_next = true;
        if (!is_object) return true;
        skip_blanks();
        return key();
      }
      if (!take(is_object ? '}' : ']'))
        return wrong(is_object ? "expected ',' or '}'" : "expected ',' or ']'");
      open_.pop_back();
      if (!(is_object ? events_.end_object() : events_.end_array())) return false;
    }
  }

  bool key() {
    if (at_ == end_ || *at_ != '"') return wrong("expected the name of a member in quotes");
    if (!string()) return false;
    skip_blanks();
    if (!take(':')) return wrong("expected ':'");
    return events_.key(text_);
  }

  bool literal(std::string_view word) {
    if (!std::string_view(at_, size()).starts_with(word)) return wrong("expected a value");
    at_ += word.size();
    return true;
  }

  static bool is_digit(char c) { return c >= '0' && c <= '9'; }
  // At least one.
  bool digits() {
    const char* const first = at_;
    while (at_ != end_ && is_digit(*at_)) ++at_;
    return at_ != first;
  }

  bool number() {
    const char* const first = at_;
    const bool is_negative = take('-');
    if (at_ == end_ || !is_digit(*at_)) return wrong(is_negative ? "expected a digit" : "expected a value");
    if (!take('0')) digits();
    bool is_whole = true;
    if (take('.')) {
      is_whole = false;
      if (!digits()) return wrong("expected a digit");
    }
    if (take('e') || take('E')) {
      is_whole = false;
      if (!take('+')) take('-');
      if (!digits()) return wrong("expected a digit");
    }
    if (is_whole && !is_negative) {
      uint64_t number = 0;
      if (std::from_chars(first, at_, number).ec == std::errc()) return events_.number_unsigned(number);
    } else if (is_whole) {
      int64_t number = 0;
      if (std::from_chars(first, at_, number).ec == std::errc() && number != 0)
        return events_.number_integer(number);
    }
    double number = 0;
    if (std::from_chars(first, at_, number).ec != std::errc()) {  // too large, or too small
      number = std::strtod(std::string(first, at_).c_str(), nullptr);
      if (std::isinf(number)) return wrong("the number is too large");
    }
    return events_.number_float(number);
  }

  // The string that begins here, without its quotes and escapes, into text_.
  bool string() {
    ++at_;
    text_.clear();
    for (;;) {
      const char* const first = at_;
      while (at_ != end_ && is_plain(*at_)) ++at_;
      text_.append(first, at_);
      if (at_ == end_) return wrong("the text ends within a string");
      if (take('"')) return true;
      const auto byte = static_cast<unsigned char>(*at_);
      if (byte < 0x20) return wrong("a string has a control character; expected an escape such as \\n");
      if (!(byte == '\\' ? escape() : character())) return false;
    }
  }
  static bool is_plain(char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte >= 0x20 && byte < 0x80 && c != '"' && c != '\\';
  }

  bool escape() {
    ++at_;
    constexpr std::string_view kShort = "\"\\/bfnrt";
    constexpr std::string_view kMeant = "\"\\/\b\f\n\r\t";
    if (take('u')) return code_point();
    const size_t found = at_ == end_ ? std::string_view::npos : kShort.find(*at_);
    if (found == std::string_view::npos) return wrong("a string has an unknown escape");
    ++at_;
    text_ += kMeant[found];
    return true;
  }

  // Four hexadecimal digits.
  std::optional<uint32_t> hexadecimal() {
    constexpr size_t kDigits = 4;
    uint32_t number = 0;
    if (size() < kDigits) return std::nullopt;
    const auto [end, error] = std::from_chars(at_, at_ + kDigits, number, 16);
    if (error != std::errc() || end != at_ + kDigits) return std::nullopt;
    at_ += kDigits;
    return number;
  }

  // Behind "\u"; code points beyond 16 bits are a pair of surrogates.
  bool code_point() {
    const auto first = hexadecimal();
    if (!first) return wrong("expected four hexadecimal digits");
    uint32_t code = *first;
    if (code >= 0xD800 && code < 0xE000) {
      const bool is_pair = code < 0xDC00 && take('\\') && take('u');
      const auto second = is_pair ? hexadecimal() : std::nullopt;
      if (!second || *second < 0xDC00 || *second >= 0xE000)
        return wrong("a string has a surrogate without its other half");
      code = 0x10000 + ((code - 0xD800) << 10) + (*second - 0xDC00);
    }
    const auto add = [&](uint32_t byte) { text_ += static_cast<char>(byte); };
    const auto add_rest = [&](int shift) { add(0x80 | ((code >> shift) & 0x3F)); };
    if (code < 0x80) {
      add(code);
    } else if (code < 0x800) {
      add(0xC0 | code >> 6);
      add_rest(0);
    } else if (code < 0x10000) {
      add(0xE0 | code >> 12);
      add_rest(6);
      add_rest(0);
    } else {
      add(0xF0 | code >> 18);
      add_rest(12);
      add_rest(6);
      add_rest(0);
    }
    return true;
  }

  // A character of several bytes (RFC 3629): no longer than needed, no surrogate, none beyond U+10FFFF.
  bool character() {
    const auto byte = [&](size_t i) { return static_cast<unsigned char>(at_[i]); };
    const unsigned first = byte(0);
    const size_t length = first >= 0xC2 && first <= 0xDF   ? 2
                          : first >= 0xE0 && first <= 0xEF ? 3
                          : first >= 0xF0 && first <= 0xF4 ? 4
                                                           : 0;
    const unsigned least = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;  // of the second byte
    const unsigned most = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
    bool is_good = length != 0 && size() >= length && byte(1) >= least && byte(1) <= most;
    for (size_t i = 2; is_good && i < length; ++i) is_good = byte(i) >= 0x80 && byte(i) <= 0xBF;
    if (!is_good) return wrong("a string has bytes that are no UTF-8");
    text_.append(at_, length);
    at_ += length;
    return true;
  }

  const char* const begin_;
  const char* at_;
  const char* const end_;
  Events& events_;
  std::string open_;  // '{' and '[' of what has begun
  std::string text_;
};

}  // namespace halyard::tools::serve
