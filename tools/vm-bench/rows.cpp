// All rows except warm calls. Each sample is timed separately, without its preparation.
#include "rows.h"

#include <algorithm>
#include <cmath>

namespace halyard::tools {

namespace {

using Modules = std::vector<Module>;

// Runs a step once and returns its time in seconds; nullopt if there is nothing to do.
using Sample = std::function<Result<std::optional<double>>()>;

class StepRow final : public Row {
 public:
  StepRow(Bench& bench, std::string name, Sample sample)
      : Row(std::move(name)), bench_(bench), sample_(std::move(sample)) {}

  bool prepare() override;
  void enlist() override;

 private:
  void run(benchmark::State& state);

  Bench& bench_;
  const Sample sample_;
  uint64_t samples_ = 1;
  std::string error_;
};

bool StepRow::prepare() {
  constexpr double kMaxSamples = 1e6;
  double seconds = 0;  // including untimed preparation
  for (int i = 0; i < 2; ++i) {
    const Clock::time_point begin = Clock::now();
    const Result<std::optional<double>> done = sample_();
    const Result<double> slowest = bench_.slowest(seconds_between(begin, Clock::now()));
    seconds = slowest.value_or(0);
    if (!done || !slowest) {
      error_ = bench_.note(done ? slowest.error() : done.error());
      return true;
    }
    if (!*done) return false;
    if (seconds > bench_.options.min_time) break;
  }
  const double wanted = bench_.options.min_time / std::max(seconds, 1e-9);
  samples_ = static_cast<uint64_t>(std::clamp(wanted, 1.0, kMaxSamples));
  if (bench_.options.iterations > 0) samples_ = bench_.options.iterations;
  return true;
}

void StepRow::enlist() {
  auto* row = benchmark::RegisterBenchmark(name().c_str(), [this](benchmark::State& state) { run(state); });
  // Sets the number of iterations. Google Benchmark counts only the measured time, so it would run for very
  // long if a step needs much untimed preparation.
  row->UseManualTime()->Iterations(static_cast<benchmark::IterationCount>(samples_));
  row->Unit(bench_.options.unit.value_or(benchmark::kMicrosecond));
}

void StepRow::run(benchmark::State& state) {
  if (!error_.empty()) return state.SkipWithError(error_.c_str());
  Samples samples;
  while (state.KeepRunning()) {
    const Result<std::optional<double>> seconds = sample_();
    if (seconds && !bench_.stop.asked_for()) {
      state.SetIterationTime(seconds->value_or(0));
      samples.add(seconds->value_or(0));
    } else {
      state.SkipWithError(seconds ? kStopped : bench_.note(seconds.error()).c_str());
    }
  }
  if (const auto summary = summary_of({&samples}); summary && !state.error_occurred())
    add_summary(state, *summary);
}

// The time that `step` takes, in seconds.
template <typename Step>
Result<double> timed(Step&& step) {
  const Clock::time_point begin = Clock::now();
  Result<> done = step();
  const Clock::time_point end = Clock::now();
  if (!done) return std::unexpected(std::move(done).error());
  return seconds_between(begin, end);
}

Result<> prepare_modules(const Modules& modules, uint32_t phase) {
  for (const Module& module : modules) TOOL_TRY(module.prepare(phase));
  return {};
}

Result<double> load_sample(Bench& bench) {
  Modules modules;  // destroyed after the time has been measured
  return timed([&]() -> Result<> {
    modules = TOOL_TRY(bench.load_again());
    return {};
  });
}

Result<double> verify_sample(Bench& bench) {
  return timed([&] { return prepare_modules(bench.program.modules, HALYARD_PREPARE_VERIFY); });
}

// Decoding includes verification, so the time of verification is subtracted.
Result<double> decode_sample(Bench& bench) {
  const Modules modules = TOOL_TRY(bench.load_again());
  TOOL_TRY(prepare_modules(modules, HALYARD_PREPARE_VERIFY));  // so that both read the bytes from the cache
  const double verify = TOOL_TRY(timed([&] { return prepare_modules(modules, HALYARD_PREPARE_VERIFY); }));
  const double both = TOOL_TRY(timed([&] { return prepare_modules(modules, HALYARD_PREPARE_DECODE); }));
  return std::max(both - verify, 0.0);
}

Result<double> init_sample(Bench& bench) {
  Context context;
  return timed([&]() -> Result<> {
    context = TOOL_TRY(bench.make_context(bench.program.modules));
    return {};
  });
}

Result<double> cold_sample(Bench& bench, const Measured& function) {
  const Modules modules = TOOL_TRY(bench.load_again());
  const Context context = TOOL_TRY(bench.make_context(modules));
  const std::unique_ptr<Caller> caller = TOOL_TRY(bench.make_caller(context, function));
  return timed([&] { return caller->call(); });
}

// A function in a context that is created on first use and reused for all samples.
class KeptCaller {
 public:
  KeptCaller(Bench& bench, const Measured& function) : bench_(bench), function_(function) {}
  Result<Caller*> get() {
    if (!caller_) {
      context_ = TOOL_TRY(bench_.make_context(bench_.program.modules));
      caller_ = TOOL_TRY(bench_.make_caller(context_, function_));
    }
    return caller_.get();
  }

 private:
  Bench& bench_;
  const Measured& function_;
  Context context_;
  std::unique_ptr<Caller> caller_;
};

enum class Part { submit, wait };

Result<double> async_sample(KeptCaller& kept, Part part) {
  Caller& caller = *TOOL_TRY(kept.get());
  TOOL_TRY(caller.make_fence());
  const double submit = TOOL_TRY(timed([&] { return caller.submit(); }));
  const double wait = TOOL_TRY(timed([&] { return caller.wait(); }));
  caller.release_results();
  return part == Part::submit ? submit : wait;
}

bool is_view(const Value& value) { return value.object().type() == "hal.buffer_view"; }

// The contents of a view, in host memory.
struct Contents {
  ElementType element_type = ElementType::none;
  std::vector<int64_t> shape;
  std::vector<uint8_t> bytes;
};

Result<Contents> read_view(const Tensor& view) {
  const auto shape = TOOL_TRY(view.shape());
  Contents contents{TOOL_TRY(view.element_type()), {shape.begin(), shape.end()}, {}};
  contents.bytes.resize(TOOL_TRY(view.byte_count()));  // the buffer may be larger
  TOOL_TRY(view.read_bytes(std::as_writable_bytes(std::span(contents.bytes))));
  return contents;
}

// Copies the tensors of the arguments to the device, and the results of one call back.
class Transfer {
 public:
  Transfer(Bench& bench, const Measured& function)
      : bench_(bench), function_(function), kept_(bench, function) {}

  Result<std::optional<double>> sample() {
    if (!ready_) TOOL_TRY(make_ready());
    if (inputs_.empty() && outputs_.empty()) return std::nullopt;
    const Device device = bench_.program.device();
    std::vector<Tensor> views(inputs_.size());
    std::vector<Tensor> results;
    for (const Value& result : caller_->results())
      if (is_view(result)) results.push_back(TOOL_TRY(result.as<Tensor>()));
    return timed([&]() -> Result<> {
      for (size_t i = 0; i < inputs_.size(); ++i) {
        const Contents& input = inputs_[i];
        views[i] = TOOL_TRY(
            Tensor::create(device, input.element_type, input.shape, input.bytes.data(), input.bytes.size()));
      }
      for (size_t i = 0; i < results.size(); ++i)
        TOOL_TRY(results[i].read_bytes(std::as_writable_bytes(std::span(outputs_[i]))));
      return {};
    });
  }

 private:
  Result<> make_ready() {
    for (const Value& argument : function_.arguments.values())
      if (is_view(argument)) inputs_.push_back(TOOL_TRY(read_view(TOOL_TRY(argument.as<Tensor>()))));
    caller_ = TOOL_TRY(kept_.get());
    const bool is_async = function_.target.description.is_async;
    if (is_async) TOOL_TRY(caller_->make_fence());
    TOOL_TRY(caller_->submit());
    if (is_async) TOOL_TRY(caller_->wait());
    for (const Value& result : caller_->results())
      if (is_view(result)) outputs_.push_back(TOOL_TRY(read_view(TOOL_TRY(result.as<Tensor>()))).bytes);
    ready_ = true;
    return {};
  }

  Bench& bench_;
  const Measured& function_;
  KeptCaller kept_;
  Caller* caller_ = nullptr;
  bool ready_ = false;
  std::vector<Contents> inputs_;
  std::vector<std::vector<uint8_t>> outputs_;
};

// Whether the arguments contain a tensor, or the results may contain one.
bool has_tensors(const Bench& bench, const Measured& function) {
  const std::string_view convention = view(function.target.description.convention);
  const size_t results = convention.find('_');
  return bench.program.device() &&
         (std::ranges::any_of(function.arguments.values(), is_view) ||
          (results != std::string_view::npos && convention.substr(results).contains('r')));
}

}  // namespace

void add_summary(benchmark::State& state, const Summary& summary) {
  state.counters["min"] = summary.min;
  state.counters["median"] = summary.median;
  state.counters["p99"] = summary.p99;
  state.counters["samples"] = static_cast<double>(summary.samples);
}

std::vector<std::unique_ptr<Row>> make_rows(Bench& bench) {
  std::vector<std::unique_ptr<Row>> rows;
  const auto add = [&](std::string name, Sample sample) {
    rows.push_back(std::make_unique<StepRow>(bench, std::move(name), std::move(sample)));
  };
  if (std::ranges::any_of(bench.sources, [](const auto& source) { return !source.is_native(); })) {
    add("load", [&] { return load_sample(bench); });
    add("verify", [&] { return verify_sample(bench); });
    add("decode", [&] { return decode_sample(bench); });
  }
  add("init", [&] { return init_sample(bench); });
  for (const Measured& function : bench.functions) {
    const std::string& name = function.target.name;
    add(name + "/cold_call", [&] { return cold_sample(bench, function); });
    rows.push_back(make_call_row(bench, function));
    if (function.target.description.is_async)
      for (const auto& [step, part] : {std::pair("submit", Part::submit), std::pair("wait", Part::wait)})
        add(fmt::format("{}/{}", name, step), [kept = std::make_shared<KeptCaller>(bench, function), part] {
          return async_sample(*kept, part);
        });
    if (has_tensors(bench, function))
      add(name + "/transfer",
          [transfer = std::make_shared<Transfer>(bench, function)] { return transfer->sample(); });
  }
  return rows;
}

}  // namespace halyard::tools
