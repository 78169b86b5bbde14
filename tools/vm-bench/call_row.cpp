// Warm calls: a row that other runners have too, with the same name and meaning.
#include <algorithm>
#include <cmath>

#include "allocations.h"
#include "common/printable.h"
#include "common/program_flags.h"
#include "rows.h"
#include "shares.h"

namespace halyard::tools {

namespace {

// A thread and its calls. Each thread has its own context, because a context runs one call at a time.
struct Worker {
  Context context;
  std::unique_ptr<Caller> caller;
  Samples samples;
};

class CallRow final : public Row {
 public:
  CallRow(Bench& bench, const Measured& function)
      : Row(call_row_name(function.target) + "/process_time/real_time" +
            (bench.threads > 1 ? fmt::format("/threads:{}", bench.threads) : "")),
        bench_(bench),
        function_(function) {}

  bool prepare() override;
  void enlist() override;

 private:
  uint64_t calls_until_the_end(const benchmark::State& state) const;
  Result<> warm_up();
  Result<> get_ready();
  void run(benchmark::State& state);
  void add_counters(benchmark::State& state) const;

  Bench& bench_;
  const Measured& function_;
  std::vector<std::unique_ptr<Worker>> workers_;
  uint64_t calls_per_sample_ = 1;
  uint64_t items_ = 0;  // calls times the batch; 0: limited by time
  double allocations_per_call_ = 0;
  Shares shares_;
  std::string error_;
};

Result<> CallRow::warm_up() {
  constexpr uint64_t kMaxCalls = 100;
  constexpr double kSeconds = 0.1;
  constexpr double kClockShare = 0.0025;  // maximum share of a sample
  for (int i = 0; i < bench_.threads; ++i) {
    auto worker = std::make_unique<Worker>();
    worker->context = TOOL_TRY(bench_.make_context(bench_.program.modules));
    worker->caller = TOOL_TRY(bench_.make_caller(worker->context, function_));
    workers_.push_back(std::move(worker));
  }
  uint64_t calls = 0;
  for (const auto& worker : workers_) {
    calls = 0;
    double seconds = 0;
    const Clock::time_point begin = Clock::now();
    do {
      TOOL_TRY(worker->caller->call_batch(bench_.batch, bench_.in_flight));
      ++calls;
      seconds = TOOL_TRY(bench_.slowest(seconds_between(begin, Clock::now())));
    } while (calls < kMaxCalls && seconds < kSeconds);
  }
  // Runs the same number of calls again, to count allocations and to estimate the time.
  const Clock::time_point begin = Clock::now();
  const AllocationCount allocations;
  for (uint64_t i = 0; i < calls; ++i)
    TOOL_TRY(workers_.back()->caller->call_batch(bench_.batch, bench_.in_flight));
  allocations_per_call_ = static_cast<double>(allocations.so_far()) / static_cast<double>(calls);
  const double seconds =
      TOOL_TRY(bench_.slowest(seconds_between(begin, Clock::now()))) / static_cast<double>(calls);
  const double wanted = std::ceil(bench_.clock_cost / (kClockShare * std::max(seconds, 1e-9)));
  calls_per_sample_ = static_cast<uint64_t>(std::max(wanted, 1.0));
  items_ = bench_.options.iterations;
  // Sets the number here, because Google Benchmark would choose a different number on each rank.
  if (bench_.agreement && items_ == 0)
    items_ = bench_.batch * static_cast<uint64_t>(std::clamp(
                                std::ceil(bench_.options.min_time / std::max(seconds, 1e-9)), 1.0, 1e9));
  return {};
}

Result<> CallRow::get_ready() {
  shares_ =
      TOOL_TRY(measure_shares(bench_, function_));  // its program is destroyed before the next is created
  if (bench_.flags->has(flag::profile))
    bench_.profiles.push_back(TOOL_TRY(measure_profile(bench_, function_)));
  return warm_up();
}

bool CallRow::prepare() {
  const Result<> done = get_ready();
  if (!done) error_ = bench_.note(done.error());
  return true;
}

void CallRow::enlist() {
  const BenchmarkOptions& options = bench_.options;
  auto* row = benchmark::RegisterBenchmark(call_row_name(function_.target).c_str(),
                                           [this](benchmark::State& state) { run(state); });
  row->MeasureProcessCPUTime()->UseRealTime();
  row->Unit(options.unit.value_or(function_.target.is_dispatch ? benchmark::kMicrosecond
                                                               : benchmark::kMillisecond));
  if (bench_.threads > 1) row->Threads(bench_.threads);
  if (items_ > 0) row->Iterations(static_cast<benchmark::IterationCount>(items_));
}

// The number of calls in the next sample: fewer than usual if fewer are left.
uint64_t CallRow::calls_until_the_end(const benchmark::State& state) const {
  const benchmark::IterationCount turns = state.max_iterations - state.iterations();
  if (turns <= 0) return 1;
  return std::min(calls_per_sample_, (static_cast<uint64_t>(turns) + bench_.batch - 1) / bench_.batch);
}

void CallRow::run(benchmark::State& state) {
  if (!error_.empty()) return state.SkipWithError(error_.c_str());
  Worker& worker = *workers_[static_cast<size_t>(state.thread_index())];
  worker.samples.clear();
  Clock::time_point before = {};
  while (true) {
    const uint64_t calls = calls_until_the_end(state);
    const auto turns = static_cast<benchmark::IterationCount>(calls * bench_.batch);
    if (!state.KeepRunningBatch(turns)) break;
    if (before == Clock::time_point{}) before = Clock::now();
    for (uint64_t i = 0; i < calls; ++i) {
      const Result<> done = worker.caller->call_batch(bench_.batch, bench_.in_flight);
      if (done) [[likely]]
        continue;
      state.SkipWithError(bench_.note(done.error()).c_str());
      break;
    }
    if (bench_.stop.asked_for() && !state.error_occurred()) [[unlikely]]
      state.SkipWithError(kStopped);
    const Clock::time_point after = Clock::now();
    if (calls == calls_per_sample_ || worker.samples.values().empty())
      worker.samples.add(seconds_between(before, after) / static_cast<double>(turns));
    before = after;
  }
  state.SetItemsProcessed(state.iterations());
  // All threads have finished their loops here.
  if (state.thread_index() == 0 && !state.error_occurred()) add_counters(state);
}

// Adds the counters of the calls other than their time. Google Benchmark adds up the counters of all threads,
// so only one thread sets them.
void CallRow::add_counters(benchmark::State& state) const {
  std::vector<const Samples*> all;
  for (const auto& worker : workers_) all.push_back(&worker->samples);
  if (const std::optional<Summary> summary = summary_of(all)) {
    add_summary(state, *summary);
    for (ProfileReport& profile : bench_.profiles)
      if (profile.function == function_.target.name)
        profile.untraced_ns = summary->median * 1e9 * static_cast<double>(bench_.batch);
  }
  const uint64_t calls = static_cast<uint64_t>(state.iterations()) / bench_.batch;
  state.counters["calls_per_sample"] = static_cast<double>(std::min(calls_per_sample_, calls));
  state.counters["machine_percent"] = shares_.machine;
  state.counters["hal_percent"] = shares_.hal;
  state.counters["device_percent"] = shares_.device;
  if (kCountsAllocations) state.counters["allocations"] = allocations_per_call_;
}

}  // namespace

std::string call_row_name(const Target& target) { return "BM_" + target.name; }

std::unique_ptr<Row> make_call_row(Bench& bench, const Measured& function) {
  return std::make_unique<CallRow>(bench, function);
}

}  // namespace halyard::tools
