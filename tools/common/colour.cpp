// What the terminal is, asked once.
#include "common/colour.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>

namespace halyard::tools {

std::string coloured(Colour colour, std::string_view text) {
  static const bool wanted = [] {
    const char* const no_colour = std::getenv("NO_COLOR");
    return ::isatty(STDOUT_FILENO) == 1 && !(no_colour && *no_colour);
  }();
  constexpr std::string_view kCodes[] = {"", "\x1b[1m", "\x1b[2m", "\x1b[31m", "\x1b[32m"};
  if (!wanted || colour == Colour::none) return std::string(text);
  return std::string(kCodes[static_cast<size_t>(colour)]) + std::string(text) + "\x1b[0m";
}

size_t terminal_width() {
  constexpr size_t kDefault = 100;
  constexpr size_t kLeast = 40;
  static const size_t width = [] {
    if (const char* const columns = std::getenv("COLUMNS")) {
      size_t number = 0;
      const std::string_view text = columns;
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
      if (error == std::errc() && end == text.data() + text.size() && number > 0) return number;
    }
    winsize size = {};
    return ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size_t{size.ws_col} : kDefault;
  }();
  return std::max(width, kLeast);
}

}  // namespace halyard::tools
