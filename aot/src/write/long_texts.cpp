#include "write/long_texts.h"

#include <fmt/core.h>

#include <string_view>

namespace halyard::aot {

namespace {

constexpr size_t kMostCharacters = 4095;

// The end of the comment or of the literal that begins at `at`, or `at` if none does.
size_t end_of_token(std::string_view code, size_t at) {
  if (code.substr(at).starts_with("/*")) {
    const size_t end = code.find("*/", at + 2);
    return end == std::string_view::npos ? code.size() : end + 2;
  }
  if (code[at] != '"' && code[at] != '\'') return at;
  size_t end = at + 1;
  while (end < code.size() && code[end] != code[at]) end += code[end] == '\\' ? 2 : 1;
  return end + 1;
}

// The characters between the quotes of a string literal, each as a literal of its own, and a final 0. Empty
// if they are not too many.
std::string characters(std::string_view text) {
  std::string all;
  size_t count = 0;
  for (size_t at = 0; at < text.size(); ++count) {
    size_t end = at + 1;
    if (text[at] == '\\') {
      ++end;
      while (end < text.size() && end < at + 4 && text[at + 1] >= '0' && text[at + 1] <= '7' &&
             text[end] >= '0' && text[end] <= '7')
        ++end;
    }
    all += fmt::format("{}'{}{}', ", count % 20 == 0 ? "\n  " : "", text[at] == '\'' ? "\\" : "",
                       text.substr(at, end - at));
    at = end;
  }
  return count > kMostCharacters ? all + "0" : "";
}

}  // namespace

std::string without_long_texts(std::string code) {
  std::string arrays;
  std::string rest;
  size_t copied = 0;
  size_t found = 0;
  const std::string_view all = code;
  for (size_t at = 0; at < all.size();) {
    const size_t end = end_of_token(all, at);
    const bool may_be_long = all[at] == '"' && end - at > kMostCharacters;
    const std::string text = may_be_long ? characters(all.substr(at + 1, end - at - 2)) : "";
    if (!text.empty()) {
      arrays += fmt::format("static const char vm_text_{}[] = {{{}}};\n", found, text);
      rest += all.substr(copied, at - copied);
      rest += fmt::format("vm_text_{}", found++);
      copied = end;
    }
    at = end == at ? at + 1 : end;
  }
  if (found == 0) return code;
  rest += all.substr(copied);
  const size_t begin = rest.starts_with("/*") ? end_of_token(rest, 0) + 1 : 0;
  return rest.insert(begin, arrays);
}

}  // namespace halyard::aot
