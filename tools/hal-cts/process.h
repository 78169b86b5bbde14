// Runs a case in a separate process, so that a driver that crashes or hangs affects no other case.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "check.h"

namespace halyard::cts {

// The report of a case: problems and notes in order.
struct Report {
  std::vector<Problem> problems;
  bool skipped = false;
  std::string reason;              // why it was skipped
  std::vector<std::string> notes;  // other texts for the caller

  bool failed() const { return !problems.empty(); }
};

// Sends the report of a case. Thread-safe.
class Teller {
 public:
  virtual ~Teller() = default;
  virtual void problem(const Problem& problem) = 0;
  virtual void skipped(const std::string& reason) = 0;
  virtual void note(const std::string& text) = 0;
};

// Runs `body`, in a child if `timeout_ns` is not 0. If a child crashes, hangs or exits with a code other than
// 0, the report has a problem. Must not be called while other threads run.
Report run_apart(const std::function<void(Teller&)>& body, int64_t timeout_ns);

}  // namespace halyard::cts
