// Draws the progress line.
#include "common/progress.h"

#include <unistd.h>

#include "common/colour.h"
#include "common/failure.h"
#include "common/printable.h"
#include "common/standard_streams.h"

namespace halyard::tools {

Progress::Progress(std::string_view title) : title_(title), terminal_(::isatty(STDERR_FILENO) == 1) {}

void Progress::show(uint64_t done, uint64_t total, std::string_view what) {
  constexpr std::chrono::milliseconds kPause(100);
  constexpr std::string_view kDots = "...";
  if (!terminal_) return;
  const auto now = std::chrono::steady_clock::now();
  if (now < next_) return;
  next_ = now + kPause;
  std::string line = title_;
  if (total > 0) line += fmt::format(" {}/{}", done, total);
  if (!what.empty()) line += fmt::format(" {}", what);
  line = printable(line);
  const size_t width = terminal_width(STDERR_FILENO) - 1;  // some terminals wrap after the last column
  if (line.size() > width) line = line.substr(0, width - kDots.size()) + std::string(kDots);
  print_error("\r\x1b[K{}", line);
  visible_ = true;
}

void Progress::clear() {
  if (!visible_) return;
  write_error("\r\x1b[K");
  visible_ = false;
  next_ = {};
}

}  // namespace halyard::tools
