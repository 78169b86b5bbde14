// Writes JSON (RFC 8259): adds commas and quotes, and fails beyond a maximum size.
#pragma once

#include <fmt/core.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "json_quote.h"

namespace halyard::c {

class Json {
 public:
  static constexpr size_t kMaxBytes = size_t{256} << 20;

  void begin(char bracket) {
    separate();
    text_ += bracket;
    first_ = true;
  }
  void end(char bracket) {
    text_ += bracket;
    first_ = false;
  }
  void key(std::string_view name) {
    separate();
    quote(name);
    text_ += ": ";
    first_ = true;
  }
  void string(std::string_view value) {
    separate();
    quote(value);
  }
  void number(uint64_t value) {
    separate();
    text_ += fmt::format("{}", value);
  }
  void boolean(bool value) {
    separate();
    text_ += value ? "true" : "false";
  }
  void null() {
    separate();
    text_ += "null";
  }
  void field(std::string_view name, std::string_view value) { key(name), string(value); }
  void field(std::string_view name, const char* value) { key(name), string(value); }
  void field(std::string_view name, uint64_t value) { key(name), number(value); }
  void flag(std::string_view name, bool value) { key(name), boolean(value); }

  // An array of objects; `entry` writes the members of each.
  template <typename Entry>
  void list(std::string_view name, size_t count, Entry entry) {
    key(name);
    begin('[');
    for (size_t i = 0; i < count && !full(); ++i) {
      begin('{');
      entry(i);
      end('}');
    }
    end(']');
  }

  bool full() const { return text_.size() > kMaxBytes; }
  std::string take() { return std::move(text_); }

 private:
  void separate() {
    if (!first_) text_ += ", ";
    first_ = false;
  }
  void quote(std::string_view value) {
    if (!full()) text_ += json_quote(value);
  }

  std::string text_;
  bool first_ = true;
};

}  // namespace halyard::c
