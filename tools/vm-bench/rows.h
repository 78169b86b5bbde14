// The rows. docs/benchmarking.md says what each of them measures.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "bench.h"
#include "samples.h"

namespace halyard::tools {

// A row: one name, one way to measure.
class Row {
 public:
  explicit Row(std::string name) : name_(std::move(name)) {}
  Row(const Row&) = delete;
  virtual ~Row() = default;

  const std::string& name() const { return name_; }
  // Runs it a few times, to warm it up and to estimate its time. A failure is reported later, when it is
  // measured. False: there is nothing to measure.
  virtual bool prepare() = 0;
  // Registers it with Google Benchmark. The row must exist until Google Benchmark has run.
  virtual void enlist() = 0;

 private:
  const std::string name_;
};

// All rows that apply to the program, in the order of the steps of a run. The Bench must outlive them.
std::vector<std::unique_ptr<Row>> make_rows(Bench& bench);

// The row of warm calls of one function, which other runners have, too.
std::unique_ptr<Row> make_call_row(Bench& bench, const Measured& function);
std::string call_row_name(const Target& target);  // "BM_mul"

// Counters that every row has.
void add_summary(benchmark::State& state, const Summary& summary);

}  // namespace halyard::tools
