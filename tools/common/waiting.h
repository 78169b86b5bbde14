// What a tool waits for, and since when: shown on a terminal once it has taken a second, and gone when it is
// over.
#pragma once

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "common/progress.h"

namespace halyard::tools {

class Waiting {
 public:
  // Null where standard error is no terminal, or there can be no thread.
  static std::unique_ptr<Waiting> on_terminal();
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;
  ~Waiting();

  void begin(std::string_view what);
  void end();
  // Takes the line away, before something else is printed on the terminal; it comes back.
  void clear();

 private:
  Waiting() : progress_("waiting:") {}
  void work();

  std::mutex mutex_;  // of all that follows, but the thread
  std::condition_variable changed_;
  Progress progress_;
  std::string what_;  // empty: nothing
  std::chrono::steady_clock::time_point since_;
  bool over_ = false;
  std::thread thread_;
};

}  // namespace halyard::tools
