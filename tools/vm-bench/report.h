// The outputs of rows: standard output and, with --benchmark_out, a file, each in a format of Google
// Benchmark.
#pragma once

#include <benchmark/benchmark.h>

#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "benchmark_flags.h"
#include "common/failure.h"

namespace halyard::tools {

struct Bench;

// Counters whose values are seconds.
bool is_time(const std::string& counter);

class Report final : public benchmark::BenchmarkReporter {
 public:
  // `name_width` is the width of the longest name. The bench's progress is cleared before anything is
  // printed. Of several ranks, the first prints the rows of the slowest one. UNAVAILABLE: the file cannot be
  // written.
  static Result<std::unique_ptr<Report>> make(Bench& bench, size_t name_width);

  // Sets the number of the next row that Google Benchmark runs, because it counts from 0 in each run.
  void set_family(int64_t family) { family_ = family; }

  bool ReportContext(const Context& context) override;
  void ReportRuns(const std::vector<Run>& runs) override;
  // Google Benchmark may run more than once, so only `finish` ends the outputs. UNAVAILABLE: the file could
  // not be written.
  Result<> finish();

 private:
  struct Output {
    benchmark::BenchmarkReporter* reporter;
    Format format;
    bool aggregates_only;
    std::vector<Run> kept;  // for CSV, whose first line needs all counters
  };
  Report(Bench& bench, size_t name_width);
  // Replaces the rows by those of the rank that was slowest.
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
