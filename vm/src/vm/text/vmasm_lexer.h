// The lexer of .vmasm text (vmasm.md, section 1): lines without comments and listing prefixes, and a cursor
// that reads the tokens of a line. The assembler interprets them.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "vm/format/opcodes.h"

namespace halyard::vm {

// Data shared by the cursors of one text.
struct Source {
  std::string_view file;            // for messages
  std::deque<std::string> decoded;  // unescaped strings; other names are views of the text
};

struct SourceLine {
  uint32_t number = 0;    // from 1
  std::string_view text;  // without comment, "[...]" prefix and surrounding blanks; not empty
};

class LineReader {
 public:
  explicit LineReader(std::string_view text) : rest_(text) {}
  // The next line that is not blank; nullopt at the end of the text.
  std::optional<SourceLine> next();
  uint32_t line_number() const { return number_; }  // of the last line read
  bool said_anything() const { return said_anything_; }

 private:
  std::string_view rest_;
  uint32_t number_ = 0;
  bool said_anything_ = false;
};

// A register in the text. 64-bit pairs are Bank::i64, single value registers Bank::i32, refs Bank::ref.
struct RegisterName {
  Bank bank = Bank::none;
  uint16_t field = 0;  // as encoded, MOVE bit included
  uint32_t last = 0;   // the highest ordinal of it in its bank (values or refs)
  bool idle = false;   // %mN: a MOVE bit without effect
  bool move() const { return bank == Bank::ref && (field & kMoveBit); }
};

// A number in C syntax (strtol with base 0), and the number of characters read (0: not a number).
struct CInteger {
  bool negative = false;
  bool overflow = false;  // does not fit in 64 bits
  uint64_t magnitude = 0;
  size_t length = 0;
};
CInteger parse_c_integer(std::string_view text);

class Cursor {
 public:
  Cursor(Source& source, SourceLine line) : source_(&source), line_(line) {}

  SourceLine line() const { return line_; }
  std::string_view rest() const { return line_.text.substr(position_); }
  bool at_end();                            // skips blanks
  bool at(std::string_view text);           // skips blanks; does not consume
  size_t skip_blanks();                     // returns their number
  bool accept(std::string_view text);       // skips blanks before it
  bool accept_word(std::string_view word);  // like accept, but only a whole word
  std::string_view word();                  // letters, digits, '_', '.', '$'; may be empty

  // All of these skip blanks first. `what` describes the expected item in messages.
  Result<> expect(std::string_view text, std::string_view where);
  Result<> expect_end(std::string_view after);
  Result<std::string_view> symbol(std::string_view what);  // without '@'
  Result<std::string_view> string(std::string_view what);  // without quotes, unescaped
  Result<std::string_view> label();                        // the digits of ^bbN
  Result<std::string_view> type();                         // the text of a type
  Result<RegisterName> reg(std::string_view what);
  Result<uint32_t> number(std::string_view what,
                          uint32_t max = UINT32_MAX);  // base 0, followed by a delimiter
  Result<uint32_t> ordinal(std::string_view what);     // "[N]", without a blank before '['
  std::string_view operand();  // up to the next ',' or the end, without surrounding blanks

  template <typename... Args>
  std::unexpected<Status> error(Code code, fmt::format_string<Args...> format, Args&&... args) const {
    return std::unexpected(Status(code, located(fmt::format(format, std::forward<Args>(args)...))));
  }
  // "expected WHAT, found 'REST'"
  std::unexpected<Status> expected(std::string_view what, std::string_view advice = {});

 private:
  std::string located(std::string_view message) const;
  Result<std::string_view> unescaped(std::string_view text, std::string_view what);

  Source* source_;
  SourceLine line_;
  size_t position_ = 0;
};

// 'text', shortened, with control characters replaced; or "the end of the line".
std::string quoted(std::string_view text);
std::string_view trimmed(std::string_view text);

}  // namespace halyard::vm
