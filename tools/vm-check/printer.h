// Prints tests as they run, in GoogleTest's form.
#pragma once

#include <cstdio>
#include <span>
#include <string_view>
#include <vector>

#include "common/colour.h"
#include "runner.h"

namespace halyard::tools {

// The details of a finding without the verdict: lines from the module, not made printable.
std::string reasons(const Finding& finding);

class Printer final : public Listener {
 public:
  explicit Printer(std::FILE* to) : to_(to) {}

  void header(const std::vector<Suite>& suites);
  void begins(const Test& test) override;
  void ended(const Finding& finding) override;
  // `left_out`: the number of tests that were not started.
  void summary(const std::vector<Suite>& suites, std::span<const Finding> findings, size_t left_out,
               double seconds);

 private:
  void print(Colour colour, std::string_view mark, std::string_view text);
  void list(Verdict verdict, std::span<const Finding> findings);

  std::FILE* const to_;
  double suite_seconds_ = 0;
};

// "suite.", followed by the names of its tests.
std::string list_text(const std::vector<Suite>& suites);

}  // namespace halyard::tools
