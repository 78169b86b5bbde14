// Warnings of running programs, each text once.
#pragma once

#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <string_view>

#include "halyard/halyard.h"

namespace halyard::tools {

class Warnings {
 public:
  Warnings();

  // A halyard_warning_fn whose user is a Warnings. Any thread.
  static void take(void* warnings, const halyard_warning_t* warning);

  // Gets each text, maybe on several threads at once. By default "vm-run: warning: ..." on standard error. To
  // be set before there are contexts.
  std::function<void(std::string_view)> tell;

 private:
  std::mutex mutex_;
  std::set<std::string, std::less<>> told_;
};

}  // namespace halyard::tools
