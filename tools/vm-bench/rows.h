// The rows. docs/benchmarking.md describes what each row measures.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "bench.h"
#include "samples.h"

namespace halyard::tools {

// A row: one name and one way of measuring.
class Row {
 public:
  explicit Row(std::string name) : name_(std::move(name)) {}
  Row(const Row&) = delete;
  virtual ~Row() = default;

  const std::string& name() const { return name_; }
  // Runs a few times, to warm up and to estimate the time. Failures are reported later, during the
  // measurement. False: there is nothing to measure.
  virtual bool prepare() = 0;
  // Registers the row with Google Benchmark. The row must outlive the run.
  virtual void enlist() = 0;

 private:
  const std::string name_;
};

// All rows that apply to the program, in the order of the steps of a run. The Bench must outlive them.
std::vector<std::unique_ptr<Row>> make_rows(Bench& bench);

// The row of warm calls of one function, which other runners have too.
std::unique_ptr<Row> make_call_row(Bench& bench, const Measured& function);
std::string call_row_name(const Target& target);  // "BM_mul"

// Adds the counters that every row has.
void add_summary(benchmark::State& state, const Summary& summary);

}  // namespace halyard::tools
