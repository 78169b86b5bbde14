// How far long work is: one line on standard error, only where that is a terminal, which the next line
// replaces and which is gone at the end.
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

  // "title 3/40 what", or with `total` 0 "title what". Costs next to nothing where nothing is shown, and is
  // drawn at most ten times a second: call it as often as you like.
  void show(uint64_t done, uint64_t total, std::string_view what = "");

  // Takes the line away, before something else is printed on the terminal.
  void clear();

 private:
  const std::string title_;
  const bool terminal_;
  bool visible_ = false;
  std::chrono::steady_clock::time_point next_ = {};  // nothing is drawn before
};

}  // namespace halyard::tools
