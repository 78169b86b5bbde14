// Standard input, output and error of a tool. Some of them may be closed or not writable.
#pragma once

#include <fmt/core.h>

#include <cstdio>
#include <string_view>
#include <utility>

namespace halyard::tools {

// Occupies descriptors 0 to 2 if the process was started without them, so that no file opened later gets one
// of these numbers. Reads and writes fail as on closed descriptors. Call it before opening any file.
void occupy_standard_descriptors();

// Writes to standard error. Ignores failures, because a full disk or a closed pipe there should not change
// the behaviour of a tool. Does not throw.
void write_error(std::string_view text) noexcept;

// Formats to `file`. If the write to standard output fails, throws std::system_error, which run_tool()
// reports.
template <typename... Args>
void print_to(std::FILE* file, fmt::format_string<Args...> format, Args&&... args) {
  if (file == stderr) {
    write_error(fmt::format(format, std::forward<Args>(args)...));
  } else {
    fmt::print(file, format, std::forward<Args>(args)...);
  }
}

template <typename... Args>
void print_error(fmt::format_string<Args...> format, Args&&... args) {
  print_to(stderr, format, std::forward<Args>(args)...);
}

}  // namespace halyard::tools
