// The outcome of each case, formatted as text, JUnit's XML or JSON.
#pragma once

#include <cstdio>
#include <span>
#include <string>
#include <vector>

#include "cases.h"
#include "common/progress.h"
#include "process.h"

namespace halyard::cts {

enum class Verdict { passed, failed, skipped };

struct Finding {
  std::string device;  // its URI; empty for cases of the driver itself
  const Case* about = nullptr;
  Verdict verdict = Verdict::passed;
  std::vector<Problem> problems;  // of a failure, including an expected one
  std::string reason;             // why it was skipped
  std::string remark;             // a note about a passed case: "712 of 2,118 tried"
  double seconds = 0;
};

const char* verdict_name(Verdict verdict);
std::string to_line(const Problem& problem);  // "[R82] what: expected this, found that"

struct Counts {
  size_t passed = 0, failed = 0, skipped = 0;
};
Counts count(std::span<const Finding> findings);

// Prints cases as they run: one line each, followed by its problems; on a terminal in colour, and with the
// running case.
class Printer {
 public:
  explicit Printer(std::FILE* to) : to_(to), progress_("case") {}
  void header(const std::string& line);
  void begin(size_t number, size_t total, const std::string& device, const Case& about);
  void end(const Finding& finding);
  void last_line(const Counts& counts);

 private:
  std::FILE* const to_;
  tools::Progress progress_;
};

std::string to_junit(const std::string& driver, std::span<const Finding> findings);
// `not_run`: the number of cases that were left out, because the run was interrupted or stopped.
std::string to_json(const std::string& driver, std::span<const Finding> findings, bool interrupted,
                    size_t not_run);
std::string to_json(std::span<const Case* const> cases);

}  // namespace halyard::cts
