// Runs tests, each in a context of its own, several at a time where that is asked for.
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

// Expectations of a test that are kept; a program may fail any number.
inline constexpr size_t kMostExpectations = 100;

// What became of a test.
struct Finding {
  const Test* test = nullptr;
  Verdict verdict = Verdict::passed;
  std::vector<FailedExpectation> expectations;  // the first that failed
  size_t more_expectations = 0;                 // and how many failed after them
  std::optional<Failure> failure;               // of the call
  bool has_run = true;                          // else the failure is that of making its context
  double seconds = 0;
};

// Who wants to know how far it is. In the order of the tests, one call at a time; must not throw.
class Listener {
 public:
  virtual void begins(const Test& test) = 0;
  virtual void ended(const Finding& finding) = 0;

 protected:
  ~Listener() = default;
};

struct Findings {
  std::vector<Finding> all;  // of the tests that were begun, in their order
  bool interrupted = false;
  int exit_code = 0;  // of a run that was interrupted
};

// `modules` are what the suites' modules may import from; `jobs` is at least 1. Ctrl-C cancels what runs, and
// nothing else is begun.
Findings run_tests(const Program& program, const ContextOptions& options,
                   const std::vector<Handle<halyard_module_t>>& modules, std::span<const Test> tests,
                   size_t jobs, Listener& listener);

}  // namespace halyard::tools
