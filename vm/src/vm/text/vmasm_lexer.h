// The words of .vmasm text, vmasm.md section 1: lines without comments and listing prefixes, and a cursor
// that reads the words of one line. What a word means is the assembler's business.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "vm/format/opcodes.h"

namespace halyard::vm {

// What the cursors of one text share.
struct Source {
  std::string_view file;            // for messages
  std::deque<std::string> decoded;  // strings that had escapes; names are views of these or of the text
};

struct SourceLine {
  uint32_t number = 0;    // from 1
  std::string_view text;  // no comment, no "[...]" prefix, no blanks at either end; never empty
};

class LineReader {
 public:
  explicit LineReader(std::string_view text) : rest_(text) {}
  // The next line that says something; nothing at the end of the text.
  std::optional<SourceLine> next();
  uint32_t line_number() const { return number_; }  // of the line read last
  bool said_anything() const { return said_anything_; }

 private:
  std::string_view rest_;
  uint32_t number_ = 0;
  bool said_anything_ = false;
};

// A register as written. 64-bit pairs are Bank::i64, single value registers Bank::i32, refs Bank::ref.
struct RegisterName {
  Bank bank = Bank::none;
  uint16_t field = 0;  // as encoded, MOVE bit included
  uint32_t last = 0;   // the highest ordinal it covers, within its kind (values or refs)
  bool idle = false;   // %mN: the MOVE bit where it has no effect
  bool move() const { return bank == Bank::ref && (field & kMoveBit); }
};

// C integer syntax (strtol with base 0): what was read, and how many characters it took (0: not a number).
struct CInteger {
  bool negative = false;
  bool overflow = false;  // the magnitude does not fit into 64 bits
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
  size_t skip_blanks();                     // how many
  bool accept(std::string_view text);       // skips blanks before it
  bool accept_word(std::string_view word);  // as accept, but only where the word ends there
  std::string_view word();                  // letters, digits, '_', '.', '$'; maybe empty

  // All skip blanks first. `what` names the thing in messages.
  Result<> expect(std::string_view text, std::string_view where);
  Result<> expect_end(std::string_view after);
  Result<std::string_view> symbol(std::string_view what);  // without '@'
  Result<std::string_view> string(std::string_view what);  // without quotes, escapes decoded
  Result<std::string_view> label();                        // the digits of ^bbN
  Result<std::string_view> type();                         // as written
  Result<RegisterName> reg(std::string_view what);
  Result<uint32_t> number(std::string_view what, uint32_t max = UINT32_MAX);  // base 0, nothing glued to it
  Result<uint32_t> ordinal(std::string_view what);  // "[N]", of which '[' stands here without a blank
  std::string_view operand();  // up to the next ',' or the end, without blanks at either end

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

std::string quoted(
    std::string_view text);  // 'text', shortened, control characters replaced; "the end of the line"
std::string_view trimmed(std::string_view text);

}  // namespace halyard::vm
