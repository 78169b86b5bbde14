#include "vm/text/vmasm_lexer.h"

#include <algorithm>
#include <utility>

#include "vm/text/vmasm_text.h"

namespace halyard::vm {
namespace {

// The encoding allows more, but a function with more cannot be loaded: verifier-and-execution.md, rule 3.1.3.
constexpr uint32_t kMaxValueOrdinal = 0x3FFF;
constexpr uint32_t kMaxRefOrdinal = 0x1FFF;

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

int digit_value(char c) {
  const int digit = hex_digit(c);
  return digit < 0 ? 16 : digit;
}

// Finds the end of the string whose opening quote is at `open`: its closing quote, or the end of the line.
size_t end_of_string(std::string_view line, size_t open, bool escapes) {
  for (size_t i = open + 1; i < line.size(); ++i) {
    if (line[i] == '"') return i;
    if (escapes && line[i] == '\\') ++i;
  }
  return line.size();
}

bool begins_with_escapes(std::string_view line, size_t quote) {
  return quote > 0 && line[quote - 1] == 'e' && (quote < 2 || !is_symbol_char(line[quote - 2]));
}

std::string_view without_comment(std::string_view line) {
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '"') i = end_of_string(line, i, begins_with_escapes(line, i));
    if (i < line.size() && (line[i] == '#' || line.substr(i, 2) == "//")) return line.substr(0, i);
  }
  return line;
}

}  // namespace

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

std::string quoted(std::string_view text) {
  constexpr size_t kShown = 60;
  if (text.empty()) return "the end of the line";
  std::string shown = "'";
  for (char c : text.substr(0, kShown)) shown += static_cast<unsigned char>(c) < 0x20 || c == 0x7F ? '?' : c;
  shown += text.size() > kShown ? "...'" : "'";
  return shown;
}

std::optional<SourceLine> LineReader::next() {
  while (!rest_.empty()) {
    const size_t end = rest_.find('\n');
    std::string_view line = rest_.substr(0, end);
    rest_.remove_prefix(end == std::string_view::npos ? rest_.size() : end + 1);
    ++number_;
    line = trimmed(without_comment(line));
    if (line.starts_with('[')) {
      if (const size_t bracket = line.find(']'); bracket != std::string_view::npos)
        line = trimmed(line.substr(bracket + 1));
    }
    if (line.empty()) continue;
    said_anything_ = true;
    return SourceLine{number_, line};
  }
  return std::nullopt;
}

CInteger parse_c_integer(std::string_view text) {
  CInteger result;
  size_t at = 0;
  if (at < text.size() && (text[at] == '-' || text[at] == '+')) result.negative = text[at++] == '-';
  int base = 10;
  if (text.substr(at, 1) == "0") {
    base = 8;
    if (at + 2 < text.size() && (text[at + 1] | 0x20) == 'x' && digit_value(text[at + 2]) < 16) {
      base = 16;
      at += 2;
    }
  }
  const size_t first_digit = at;
  for (; at < text.size() && digit_value(text[at]) < base; ++at) {
    const uint64_t digit = static_cast<uint64_t>(digit_value(text[at]));
    if (result.magnitude > (UINT64_MAX - digit) / static_cast<uint64_t>(base)) result.overflow = true;
    result.magnitude = result.magnitude * static_cast<uint64_t>(base) + digit;
  }
  if (at > first_digit) result.length = at;
  return result;
}

size_t Cursor::skip_blanks() {
  const size_t before = position_;
  while (position_ < line_.text.size() && is_blank(line_.text[position_])) ++position_;
  return position_ - before;
}

bool Cursor::at_end() {
  skip_blanks();
  return position_ == line_.text.size();
}

bool Cursor::at(std::string_view text) {
  skip_blanks();
  return rest().starts_with(text);
}

bool Cursor::accept(std::string_view text) {
  if (!at(text)) return false;
  position_ += text.size();
  return true;
}

bool Cursor::accept_word(std::string_view word) {
  if (!at(word)) return false;
  const std::string_view after = rest().substr(word.size());
  if (!after.empty() && is_symbol_char(after.front())) return false;
  position_ += word.size();
  return true;
}

std::string_view Cursor::word() {
  skip_blanks();
  const size_t first = position_;
  while (position_ < line_.text.size() && is_symbol_char(line_.text[position_])) ++position_;
  return line_.text.substr(first, position_ - first);
}

std::string Cursor::located(std::string_view message) const {
  if (line_.number == 0) return fmt::format("{}: {}", source_->file, message);
  return fmt::format("{}:{}: {}", source_->file, line_.number, message);
}

std::unexpected<Status> Cursor::expected(std::string_view what, std::string_view advice) {
  skip_blanks();
  return error(Code::INVALID_ARGUMENT, "expected {}, found {}{}{}", what, quoted(rest()),
               advice.empty() ? "" : "; ", advice);
}

Result<> Cursor::expect(std::string_view text, std::string_view where) {
  if (accept(text)) return {};
  return expected(fmt::format("'{}' {}", text, where));
}

Result<> Cursor::expect_end(std::string_view after) {
  if (at_end()) return {};
  return expected(fmt::format("nothing more after {}", after), "remove it");
}

Result<std::string_view> Cursor::symbol(std::string_view what) {
  if (!accept("@")) return expected(fmt::format("{}: '@' and a name", what));
  if (rest().starts_with('"') || rest().starts_with("e\"")) return string(what);
  const size_t first = position_;
  while (position_ < line_.text.size() && is_symbol_char(line_.text[position_])) ++position_;
  if (position_ == first)
    return expected(fmt::format("{}: letters, digits, '_', '$' or '.' after '@'", what));
  return line_.text.substr(first, position_ - first);
}

Result<std::string_view> Cursor::string(std::string_view what) {
  const bool escapes = at("e\"");
  if (escapes) accept("e");
  if (!accept("\"")) return expected(fmt::format("{}: a string in double quotes", what));
  const size_t end = end_of_string(line_.text, position_ - 1, escapes);
  if (end >= line_.text.size())
    return error(Code::INVALID_ARGUMENT,
                 "{}: the string has no closing '\"'; strings end on the line they begin on", what);
  const std::string_view text = line_.text.substr(position_, end - position_);
  position_ = end + 1;
  return escapes ? unescaped(text, what) : text;
}

Result<std::string_view> Cursor::unescaped(std::string_view text, std::string_view what) {
  constexpr std::pair<char, char> kEscapes[] = {{'\\', '\\'}, {'"', '"'}, {'n', '\n'}, {'t', '\t'}};
  std::string& decoded = source_->decoded.emplace_back();
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\') {
      decoded += text[i];
      continue;
    }
    const std::string_view escape = text.substr(i + 1);
    const auto* found =
        std::ranges::find(kEscapes, escape.empty() ? '\0' : escape[0], &std::pair<char, char>::first);
    if (found != std::end(kEscapes)) {
      decoded += found->second;
      i += 1;
    } else if (escape.size() >= 3 && escape[0] == 'x' && hex_digit(escape[1]) >= 0 &&
               hex_digit(escape[2]) >= 0) {
      decoded += static_cast<char>(hex_digit(escape[1]) << 4 | hex_digit(escape[2]));
      i += 3;
    } else {
      return error(Code::INVALID_ARGUMENT,
                   "{}: expected \\\\, \\\", \\n, \\t or \\x and two hex digits, found {}", what,
                   quoted(text.substr(i, 4)));
    }
  }
  return decoded;
}

Result<std::string_view> Cursor::label() {
  if (!accept("^bb")) return expected("a block label, '^bb' and digits");
  const size_t first = position_;
  while (position_ < line_.text.size() && is_digit(line_.text[position_])) ++position_;
  if (position_ == first) return expected("digits after '^bb'");
  if (position_ < line_.text.size() && is_symbol_char(line_.text[position_]))
    return expected("the end of the block label", "labels are '^bb' and digits");
  return line_.text.substr(first, position_ - first);
}

Result<std::string_view> Cursor::type() {
  skip_blanks();
  const size_t first = position_;
  if (position_ < line_.text.size() && line_.text[position_] == '!') ++position_;
  while (position_ < line_.text.size() && is_symbol_char(line_.text[position_])) ++position_;
  if (position_ < line_.text.size() && line_.text[position_] == '<') {
    size_t depth = 0;
    for (; position_ < line_.text.size(); ++position_) {
      if (line_.text[position_] == '<') ++depth;
      if (line_.text[position_] == '>' && --depth == 0) break;
    }
    if (position_ == line_.text.size())
      return error(Code::INVALID_ARGUMENT, "the type {} has no closing '>'",
                   quoted(line_.text.substr(first)));
    ++position_;
  }
  const std::string_view text = line_.text.substr(first, position_ - first);
  if (text.empty() || text == "!") {
    position_ = first;
    return expected("a type", "i32, i64, f32, f64, i8, i16 or '!' and a name, such as !vm.buffer");
  }
  return text;
}

Result<RegisterName> Cursor::reg(std::string_view what) {
  skip_blanks();
  const std::string_view text = rest();
  const char kind = text.size() > 1 && text[0] == '%' ? text[1] : '\0';
  if (kind != 'i' && kind != 'r' && kind != 'R' && kind != 'm')
    return expected(fmt::format("{}: a register", what), "%iN, %iN:N+1 for 64 bits, %rN, or %RN to move");
  const CInteger number = parse_c_integer(text.substr(2));
  if (number.length == 0) return expected(fmt::format("{}: a register number after '%{}'", what, kind));
  const bool is_ref = kind != 'i';
  const uint32_t max = is_ref ? kMaxRefOrdinal : kMaxValueOrdinal;
  const std::string_view name = text.substr(0, 2 + number.length);
  if (number.overflow || (number.negative && number.magnitude != 0) || number.magnitude > max)
    return error(Code::OUT_OF_RANGE,
                 "{}: register {} is out of range; a function that can be loaded has %{}0 to %{}{}", what,
                 quoted(name), is_ref ? 'r' : 'i', is_ref ? 'r' : 'i', max);
  // The whole name must be the number: %i1abc is not %i1.
  const auto has_more = [&] {
    return position_ < line_.text.size() && is_symbol_char(line_.text[position_]);
  };
  position_ += name.size();
  if (has_more()) {
    position_ -= name.size();
    return expected(fmt::format("{}: nothing but a number after '%{}'", what, kind));
  }

  RegisterName result;
  const uint32_t ordinal = static_cast<uint32_t>(number.magnitude);
  result.last = ordinal;
  if (is_ref) {
    result.bank = Bank::ref;
    result.idle = kind == 'm';
    result.field = static_cast<uint16_t>(kRefBit | ordinal | (kind == 'r' ? 0 : kMoveBit));
    return result;
  }
  result.bank = Bank::i32;
  result.field = static_cast<uint16_t>(ordinal);
  const std::string_view after = rest();
  if (after.size() < 2 || after[0] != ':' || !is_digit(after[1])) return result;
  const CInteger high = parse_c_integer(after.substr(1));
  if (high.overflow || high.magnitude != ordinal + 1)
    return error(Code::INVALID_ARGUMENT,
                 "{}: {}{} is not a 64-bit register; its halves are adjacent: %i{}:{}", what, name,
                 after.substr(0, 1 + high.length), ordinal, ordinal + 1);
  if (high.magnitude > max)
    return error(Code::OUT_OF_RANGE,
                 "{}: register %i{}:{} is out of range; a function that can be loaded has %i0 to %i{}", what,
                 ordinal, ordinal + 1, max);
  position_ += 1 + high.length;
  if (has_more()) {
    position_ -= 1 + high.length + name.size();
    return expected(fmt::format("{}: nothing but a number after '{}:'", what, name));
  }
  result.bank = Bank::i64;
  result.last = ordinal + 1;
  return result;
}

Result<uint32_t> Cursor::number(std::string_view what, uint32_t max) {
  skip_blanks();
  const CInteger integer = parse_c_integer(rest());
  if (integer.length == 0) return expected(fmt::format("{}: a number", what));
  const std::string_view after = rest().substr(integer.length);
  if (!after.empty() && is_symbol_char(after.front())) return expected(fmt::format("{}: a number", what));
  if (integer.overflow || (integer.negative && integer.magnitude != 0) || integer.magnitude > max)
    return error(Code::INVALID_ARGUMENT, "{}: {} is out of range; it may be 0 to {}", what,
                 quoted(rest().substr(0, integer.length)), max);
  position_ += integer.length;
  return static_cast<uint32_t>(integer.magnitude);
}

Result<uint32_t> Cursor::ordinal(std::string_view what) {
  if (!rest().starts_with('[')) return expected(fmt::format("'[' directly before {}", what));
  accept("[");
  const uint32_t value = HALYARD_TRY(number(what));
  HALYARD_TRY(expect("]", fmt::format("after {}", what)));
  return value;
}

std::string_view Cursor::operand() {
  const size_t first = position_;
  const size_t end = std::min(line_.text.find(',', first), line_.text.size());
  position_ = end;
  return trimmed(line_.text.substr(first, end - first));
}

}  // namespace halyard::vm
