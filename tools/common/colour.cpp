// Properties of the terminal.
#include "common/colour.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>

namespace halyard::tools {

std::string coloured(Colour colour, std::string_view text, int descriptor) {
  const char* const no_colour = std::getenv("NO_COLOR");
  if (colour == Colour::none || (no_colour && *no_colour) || ::isatty(descriptor) != 1)
    return std::string(text);
  constexpr std::string_view kCodes[] = {"",         "\x1b[1m",  "\x1b[2m",   "\x1b[31m",
                                         "\x1b[32m", "\x1b[33m", "\x1b[1;31m"};
  return std::string(kCodes[static_cast<size_t>(colour)]) + std::string(text) + "\x1b[0m";
}

size_t terminal_width(int descriptor) {
  constexpr size_t kDefault = 100;
  constexpr size_t kMinColumns = 40;
  size_t width = 0;
  if (const char* const columns = std::getenv("COLUMNS")) {
    const std::string_view text = columns;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), width);
    if (error != std::errc() || end != text.data() + text.size()) width = 0;
  }
  winsize size = {};
  if (width == 0 && ::ioctl(descriptor, TIOCGWINSZ, &size) == 0) width = size.ws_col;
  return width == 0 ? kDefault : std::max(width, kMinColumns);
}

std::string wrapped(std::string_view text, size_t indent, size_t width) {
  std::string lines;
  size_t column = indent;
  while (true) {
    text.remove_prefix(std::min(text.find_first_not_of(" \n"), text.size()));
    if (text.empty()) return lines;
    const std::string_view word = text.substr(0, text.find_first_of(" \n"));
    text.remove_prefix(word.size());
    if (!lines.empty() && column + 1 + word.size() > width) {
      lines += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (!lines.empty()) {
      lines += ' ';
      ++column;
    }
    lines += word;
    column += word.size();
  }
}

}  // namespace halyard::tools
