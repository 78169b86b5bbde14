// Lines of Prometheus' exposition format, version 0.0.4.
#pragma once

#include <fmt/format.h>

#include <iterator>
#include <string>
#include <string_view>

namespace halyard::tools::serve {

inline void begin_metric(std::string& text, std::string_view name, std::string_view type,
                         std::string_view help) {
  fmt::format_to(std::back_inserter(text), "# HELP {0} {1}\n# TYPE {0} {2}\n", name, help, type);
}

// `labels`: `model="a"`, or "".
template <typename T>
void append_value(std::string& text, std::string_view name, std::string_view labels, T value) {
  if (labels.empty()) {
    fmt::format_to(std::back_inserter(text), "{} {}\n", name, value);
  } else {
    fmt::format_to(std::back_inserter(text), "{}{{{}}} {}\n", name, labels, value);
  }
}

// A metric with one value.
template <typename T>
void append_metric(std::string& text, std::string_view name, std::string_view type, std::string_view help,
                   T value) {
  begin_metric(text, name, type, help);
  append_value(text, name, "", value);
}

// The value of a label, with escapes.
inline std::string label(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '\\' || c == '"') escaped += '\\';
    if (c == '\n') {
      escaped += "\\n";
    } else {
      escaped += c;
    }
  }
  return escaped;
}

}  // namespace halyard::tools::serve
