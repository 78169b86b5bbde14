// Runs tests, each in a separate context, and with --jobs several concurrently.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/expectations.h"
#include "common/program.h"
#include "tests.h"

namespace halyard::tools {

struct Test {
  const Suite* suite;
  std::string name;
};

enum class Verdict {
  passed,
  failed,
  stopped,  // by Ctrl-C
};

// The maximum number of failed expectations that are kept for a test, because a program can have any number.
inline constexpr size_t kMaxExpectations = 100;

// The outcome of a test.
struct Finding {
  const Test* test = nullptr;
  Verdict verdict = Verdict::passed;
  std::vector<FailedExpectation> expectations;  // the first failed expectations
  size_t more_expectations = 0;                 // the number of further failed expectations
  std::optional<Failure> failure;               // of the call
  bool has_run = true;                          // false: the context could not be created; see `failure`
  double seconds = 0;
};

// Receives the progress, in the order of the tests, one call at a time. Must not throw.
class Listener {
 public:
  virtual void begins(const Test& test) = 0;
  virtual void ended(const Finding& finding) = 0;

 protected:
  ~Listener() = default;
};

struct Findings {
  std::vector<Finding> all;  // of the started tests, in order
  bool interrupted = false;
  int exit_code = 0;  // of an interrupted run
};

// The suites' modules may import from `modules`; `jobs` is at least 1. Ctrl-C cancels the running tests, and
// no other test is started.
Findings run_tests(const Program& program, const ContextOptions& options, const std::vector<Module>& modules,
                   std::span<const Test> tests, size_t jobs, Listener& listener);

}  // namespace halyard::tools
