// The outputs for rows: standard output and, with --benchmark_out, a file, each in a format of Google
// Benchmark.
#pragma once

#include <benchmark/benchmark.h>

#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "benchmark_flags.h"
#include "common/failure.h"

namespace halyard::tools {

struct Bench;

// Whether the values of this counter are seconds.
bool is_time(const std::string& counter);

class Report final : public benchmark::BenchmarkReporter {
 public:
  // `name_width` is the width of the longest name. Clears the bench's progress line before printing. With
  // several ranks, the first rank prints the rows of the slowest rank. UNAVAILABLE: the file cannot be
  // written.
  static Result<std::unique_ptr<Report>> make(Bench& bench, size_t name_width);

  // Sets the number of the next row that Google Benchmark runs, because the library counts from 0 in each
  // run.
  void set_family(int64_t family) { family_ = family; }

  bool ReportContext(const Context& context) override;
  void ReportRuns(const std::vector<Run>& runs) override;
  // Completes the outputs. Google Benchmark may run several times before. UNAVAILABLE: the file could not be
  // written.
  Result<> finish();

 private:
  struct Output {
    benchmark::BenchmarkReporter* reporter;
    Format format;
    bool aggregates_only;
    std::vector<Run> kept;  // for CSV, because the first line needs all counters
    // For JSON with profiles, which are a member of the whole document. Null: written at once.
    std::unique_ptr<std::ostringstream> text = {};
    std::ostream* target = nullptr;  // of `text`
  };
  Report(Bench& bench, size_t name_width);
  void keep_json();
  // Replaces the rows by those of the slowest rank.
  Result<> take_slowest(std::vector<Run>& rows);
  void pass_on(Output& output, const std::vector<Run>& runs);

  Bench& bench_;
  const size_t name_width_;
  std::string out_path_;
  std::ofstream file_;
  std::ostream nowhere_{nullptr};
  std::unique_ptr<benchmark::BenchmarkReporter> file_reporter_;
  std::vector<Output> outputs_;
  bool has_context_ = false;
  int64_t family_ = 0;
};

}  // namespace halyard::tools
