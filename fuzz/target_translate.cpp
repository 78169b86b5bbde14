// Translates any module to C, in each form: the same C twice, or the same refusal. In the C all comments and
// literals end, brackets match, and there is no byte that C does not know: no name of a module reaches the C
// as anything but a name.
#include <algorithm>
#include <string>
#include <vector>

#include "aot/program.h"
#include "aot/translate.h"
#include "fuzzing.h"
#include "module_mutator.h"

using namespace halyard;

namespace {

bool is_plain(char c) { return c == '\n' || (c >= ' ' && c <= '~'); }

// The end of a comment, or of a literal with its quotes, that begins at `at`. `at`: none begins there.
size_t end_of_token(const std::string& text, size_t at) {
  const auto found = [&](size_t end, size_t size) {
    if (end == std::string::npos) fuzz::finding("a comment does not end:\n" + text.substr(at, 200));
    return end + size;
  };
  if (text.compare(at, 2, "/*") == 0) return found(text.find("*/", at + 2), 2);
  if (text.compare(at, 2, "//") == 0) return found(text.find('\n', at), 0);
  if (text[at] != '"' && text[at] != '\'') return at;
  for (size_t i = at + 1; i < text.size() && text[i] != '\n'; ++i) {
    if (text[i] == '\\')
      ++i;
    else if (text[i] == text[at])
      return i + 1;
  }
  fuzz::finding("a literal does not end:\n" + text.substr(at, 200));
}

void check_text(const std::string& text) {
  std::vector<char> open;
  for (size_t i = 0; i < text.size();) {
    if (const size_t end = end_of_token(text, i); end != i) {
      i = end;
      continue;
    }
    const char c = text[i++];
    if (!is_plain(c)) fuzz::finding("a byte that C does not know");
    if (c == '(' || c == '[' || c == '{') open.push_back(c);
    if (c != ')' && c != ']' && c != '}') continue;
    const char expected = c == ')' ? '(' : c == ']' ? '[' : '{';
    if (open.empty() || open.back() != expected) fuzz::finding("brackets do not match");
    open.pop_back();
  }
  if (!open.empty()) fuzz::finding("a bracket stays open");
}

using Outcome = std::expected<std::vector<aot::File>, aot::Refusal>;

bool is_same(const Outcome& a, const Outcome& b) {
  if (!a || !b) return !a && !b && a.error().code == b.error().code && a.error().text == b.error().text;
  return std::ranges::equal(
      *a, *b, [](const aot::File& x, const aot::File& y) { return x.name == y.name && x.text == y.text; });
}

void check(const Outcome& once, const Outcome& again) {
  if (!is_same(once, again)) fuzz::finding("the same module gives other C");
  if (!once) {
    if (once.error().text.empty()) fuzz::finding("a refusal without a reason");
    return;
  }
  for (const aot::File& file : *once)
    if (file.name.ends_with(".c") || file.name.ends_with(".h")) check_text(file.text);
}

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span<const uint8_t> module(data, size);
  for (const bool planned : {true, false}) {
    aot::Options options = {.name = "m", .source = "m.vmfb", .main = true, .planned = planned};
    options.checks = size % 4 != 0;
    options.split = size % 3;
    aot::Report report;
    check(aot::translate(module, options, &report), aot::translate(module, options));
  }
  const aot::Options options = {.name = "m", .source = "m.vmfb"};
  check(aot::translate_program(module, options), aot::translate_program(module, options));
  return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  return fuzz::mutate_module(data, size, max_size, seed);
}
