// The progress of long work: one line on standard error if that is a terminal. Each line replaces the
// previous one; the last one is removed at the end.
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

  // "title 3/40 what" or, if `total` is 0, "title what". Draws at most ten times a second and otherwise costs
  // almost nothing, so it can be called often.
  void show(uint64_t done, uint64_t total, std::string_view what = "");

  // Removes the line, before other output on the terminal.
  void clear();

 private:
  const std::string title_;
  const bool terminal_;
  bool visible_ = false;
  std::chrono::steady_clock::time_point next_ = {};  // time of the next drawing
};

}  // namespace halyard::tools
