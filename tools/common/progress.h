// The progress of long work: one line on standard error if that is a terminal. The next line replaces it, and
// it is removed at the end.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace halyard::tools {

class Progress {
 public:
  explicit Progress(std::string_view title);
  Progress(const Progress&) = delete;
  ~Progress() { clear(); }

  // "title 3/40 what", or with `total` 0 "title what". It draws at most ten times a second and costs next to
  // nothing otherwise, so it can be called often.
  void show(uint64_t done, uint64_t total, std::string_view what = "");

  // Removes the line before something else is printed on the terminal.
  void clear();

 private:
  const std::string title_;
  const bool terminal_;
  bool visible_ = false;
  std::chrono::steady_clock::time_point next_ = {};  // not drawn again before
};

}  // namespace halyard::tools
