// Finds quotations in a message.
#include "common/brief.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <cstddef>

namespace halyard::tools {

namespace {

struct Limit {
  size_t longest;  // longer texts keep only their head and tail
  size_t head;
  size_t tail;
};
constexpr Limit kQuoted = {256, 128, 64};
constexpr Limit kMessage = {4000, 3000, 500};

// The position of the first byte of the UTF-8 character at `at`.
size_t character_start(std::string_view text, size_t at) {
  const size_t least = at - std::min<size_t>(at, 3);
  size_t start = at;
  while (start > least && (static_cast<unsigned char>(text[start]) & 0xC0) == 0x80) --start;
  return start;
}

std::string shortened(std::string_view text, const Limit& limit) {
  if (text.size() <= limit.longest) return std::string(text);
  const size_t head = character_start(text, limit.head);
  const size_t tail = character_start(text, text.size() - limit.tail);
  return fmt::format("{}...({} bytes left out)...{}", text.substr(0, head), tail - head, text.substr(tail));
}

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

// The end of the quoted text that begins at `at`; npos if the quotation does not end.
size_t quote_end(std::string_view message, size_t at) {
  size_t end = message.find('\'', at);
  while (end != std::string_view::npos && end + 1 < message.size() && is_word(message[end + 1]))
    end = message.find('\'', end + 1);
  return end;
}

// The size of "--name=" at the start of `text`; 0 if `text` does not start with a flag.
size_t flag_size(std::string_view text) {
  if (!text.starts_with("--")) return 0;
  size_t size = 2;
  while (size < text.size() && (is_word(text[size]) || text[size] == '-')) ++size;
  return size > 2 && size < text.size() && text[size] == '=' ? size + 1 : 0;
}

}  // namespace

std::string brief(std::string_view message) {
  std::string text;
  for (size_t at = 0; at < message.size();) {
    const bool at_start = at == 0 || !is_word(message[at - 1]);  // an apostrophe does not start a quotation
    const bool begins_part = at == 0 || message.substr(0, at).ends_with(": ");
    size_t begin = at;
    size_t end = std::string_view::npos;
    if (at_start && message[at] == '\'') {
      begin = at + 1;
      end = quote_end(message, begin);
    } else if (const size_t flag = at_start ? flag_size(message.substr(at)) : 0) {
      begin = at + flag;
      const size_t found = begins_part ? message.find(": ", begin) : message.find_first_of(" \n", begin);
      end = std::min(found, message.size());
    }
    if (end == std::string_view::npos) {
      text += message[at++];
      continue;
    }
    text += message.substr(at, begin - at);
    text += shortened(message.substr(begin, end - begin), kQuoted);
    at = end;
    if (at < message.size()) text += message[at++];  // the closing quote
  }
  return shortened(text, kMessage);
}

}  // namespace halyard::tools
