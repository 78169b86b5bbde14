// One case in a process of its own: a driver that dies or never answers costs this case and no other.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "check.h"

namespace halyard::cts {

// What a case has to say, told in order: from the process it runs in, or directly.
struct Report {
  std::vector<Problem> problems;
  bool skipped = false;
  std::string reason;              // why it was skipped
  std::vector<std::string> notes;  // anything else, for who started it

  bool failed() const { return !problems.empty(); }
};

// How a case tells. Thread-safe.
class Teller {
 public:
  virtual ~Teller() = default;
  virtual void problem(const Problem& problem) = 0;
  virtual void skipped(const std::string& reason) = 0;
  virtual void note(const std::string& text) = 0;
};

// Runs `body`, in a child where `timeout_ns` is not 0. A child that died, hung or ended with an exit code of
// its own is a problem of the report. Must not be called while other threads run.
Report run_apart(const std::function<void(Teller&)>& body, int64_t timeout_ns);

}  // namespace halyard::cts
