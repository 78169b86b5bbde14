// Warnings from running programs; each text is reported once.
#pragma once

#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <string_view>

#include "halyard/halyard.hpp"

namespace halyard::tools {

class Warnings {
 public:
  Warnings();

  // Any thread.
  void take(const halyard_warning_t& warning);

  // Called with each text, possibly on several threads concurrently. Default: prints "vm-run: warning: ..."
  // to standard error. Set it before creating contexts.
  std::function<void(std::string_view)> tell;

 private:
  std::mutex mutex_;
  std::set<std::string, std::less<>> reported_;
};

}  // namespace halyard::tools
