// The rows: what each measures stands in docs/benchmarking.md.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "bench.h"
#include "samples.h"

namespace halyard::tools {

// One name, one way to measure.
class Row {
 public:
  explicit Row(std::string name) : name_(std::move(name)) {}
  Row(const Row&) = delete;
  virtual ~Row() = default;

  const std::string& name() const { return name_; }
  // Runs it a few times: so that it is warm, and to see how long it takes. What fails is said when it is
  // measured. False: there is nothing to measure.
  virtual bool prepare() = 0;
  // Hands it to Google Benchmark. The row must live until that has run.
  virtual void enlist() = 0;

 private:
  const std::string name_;
};

// All that apply to the program, in the order in which a program goes through them. The Bench must live as
// long.
std::vector<std::unique_ptr<Row>> make_rows(Bench& bench);

// The row of warm calls of one function, as other runners have it.
std::unique_ptr<Row> make_call_row(Bench& bench, const Measured& function);
std::string call_row_name(const Target& target);  // "BM_mul"

// Counters that every row has.
void add_summary(benchmark::State& state, const Summary& summary);

}  // namespace halyard::tools
