// Runs tests, each in a context of its own, and several at once with --jobs.
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

// The number of failed expectations of a test that are kept; a program can have any number.
inline constexpr size_t kMostExpectations = 100;

// The outcome of a test.
struct Finding {
  const Test* test = nullptr;
  Verdict verdict = Verdict::passed;
  std::vector<FailedExpectation> expectations;  // the first ones that failed
  size_t more_expectations = 0;                 // the number of those after them
  std::optional<Failure> failure;               // of the call
  bool has_run = true;                          // else its context could not be made, and `failure` says why
  double seconds = 0;
};

// Is told about the progress, in the order of the tests, one call at a time. Must not throw.
class Listener {
 public:
  virtual void begins(const Test& test) = 0;
  virtual void ended(const Finding& finding) = 0;

 protected:
  ~Listener() = default;
};

struct Findings {
  std::vector<Finding> all;  // of the tests that were begun, in order
  bool interrupted = false;
  int exit_code = 0;  // of a run that was interrupted
};

// The suites' modules may import from `modules`; `jobs` is at least 1. Ctrl-C cancels the tests that run, and
// no other test is begun.
Findings run_tests(const Program& program, const ContextOptions& options,
                   const std::vector<Handle<halyard_module_t>>& modules, std::span<const Test> tests,
                   size_t jobs, Listener& listener);

}  // namespace halyard::tools
