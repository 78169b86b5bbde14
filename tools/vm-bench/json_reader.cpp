// A recursive descent of bounded depth.
#include "json_reader.h"

#include <charconv>
#include <cstdint>

namespace halyard::tools {

namespace {

constexpr int kDeepest = 64;

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  Result<Json> value(int depth) {
    skip_blanks();
    if (depth > kDeepest) return wrong("values nested less deeply");
    if (at_end()) return wrong("a value");
    switch (text_[at_]) {
      case '{':
        return object(depth);
      case '[':
        return array(depth);
      case '"':
        return Json{TOOL_TRY(string())};
      default:
        return literal();
    }
  }

 private:
  bool at_end() const { return at_ >= text_.size(); }
  void skip_blanks() {
    while (!at_end() && std::string_view(" \t\r\n").contains(text_[at_])) ++at_;
  }
  bool take(char wanted) {
    skip_blanks();
    if (at_end() || text_[at_] != wanted) return false;
    ++at_;
    return true;
  }
  std::unexpected<Failure> wrong(std::string_view expected) const {
    return fail(HALYARD_INVALID_ARGUMENT, "no JSON at byte {} of {}: expected {}", at_, text_.size(),
                expected);
  }

  Result<Json> object(int depth) {
    Json::Members members;
    ++at_;
    if (take('}')) return Json{std::move(members)};
    do {
      skip_blanks();
      if (at_end() || text_[at_] != '"') return wrong("a name in quotes");
      std::string name = TOOL_TRY(string());
      if (!take(':')) return wrong("':'");
      members.emplace_back(std::move(name), TOOL_TRY(value(depth + 1)));
    } while (take(','));
    if (!take('}')) return wrong("',' or '}'");
    return Json{std::move(members)};
  }

  Result<Json> array(int depth) {
    std::vector<Json> elements;
    ++at_;
    if (take(']')) return Json{std::move(elements)};
    do elements.push_back(TOOL_TRY(value(depth + 1)));
    while (take(','));
    if (!take(']')) return wrong("',' or ']'");
    return Json{std::move(elements)};
  }

  Result<std::string> string() {
    std::string result;
    for (++at_; !at_end(); ++at_) {
      const char character = text_[at_];
      if (character == '"') {
        ++at_;
        return result;
      }
      if (character != '\\') {
        result += character;
        continue;
      }
      if (++at_ >= text_.size()) break;
      constexpr std::string_view kNames = "\"\\/bfnrt";
      constexpr std::string_view kMeanings = "\"\\/\b\f\n\r\t";
      if (const size_t which = kNames.find(text_[at_]); which != std::string_view::npos) {
        result += kMeanings[which];
      } else if (text_[at_] == 'u' && at_ + 4 < text_.size()) {
        uint16_t unit = 0;
        const char* const digits = text_.data() + at_ + 1;
        const auto [end, error] = std::from_chars(digits, digits + 4, unit, 16);
        if (error != std::errc() || end != digits + 4) return wrong("four hexadecimal digits");
        result += unit < 0x80 ? static_cast<char>(unit) : '?';  // names and units are ASCII
        at_ += 4;
      } else {
        return wrong("an escaped character");
      }
    }
    return wrong("the end of a string");
  }

  Result<Json> literal() {
    for (const auto& [word, json] :
         {std::pair<std::string_view, Json>{"true", Json{true}}, {"false", Json{false}}, {"null", Json{}}}) {
      if (!text_.substr(at_).starts_with(word)) continue;
      at_ += word.size();
      return json;
    }
    double number = 0;
    const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), number);
    if (error != std::errc()) return wrong("a value");
    at_ = static_cast<size_t>(end - text_.data());
    return Json{number};
  }

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

const Json* Json::find(std::string_view name) const {
  const auto* members = std::get_if<Members>(&value);
  if (!members) return nullptr;
  for (const auto& [key, member] : *members)
    if (key == name) return &member;
  return nullptr;
}

Result<Json> parse_json(std::string_view text) { return Reader(text).value(0); }

}  // namespace halyard::tools
