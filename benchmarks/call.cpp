// The cost of a call through the C ABI: an empty function, an addition, and whole programs that dispatch to a
// local device. Baselines in the same run: one iteration of a native loop, and a native product.
#include <benchmark/benchmark.h>

#include <string>
#include <vector>

#include "program.h"

namespace {

constexpr char kSmallText[] = R"(
vm.module @small
vm.export @empty
vm.export @add
vm.func @empty() -> () {
  vm.return
}
vm.func @add(%i0: i32, %i1: i32) -> (i32) {
  %i0 = vm.add.i32 %i0, %i1
  vm.return %i0
}
)";

Program small_program(const char* function) {
  Program program;
  program.load_text(kSmallText);
  program.link(function);
  return program;
}

void native_loop_turn(benchmark::State& state) {
  constexpr uint64_t kTurns = 1 << 16;
  for ([[maybe_unused]] auto _ : state) {
    uint64_t sum = 0;
    for (uint64_t i = 0; i < kTurns; ++i) {
      sum += i;
      benchmark::DoNotOptimize(sum);
    }
  }
  state.counters["turn"] =
      benchmark::Counter(static_cast<double>(kTurns),
                         benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}
BENCHMARK(native_loop_turn);

void native_product_of_8(benchmark::State& state) {
  std::vector<float> left(8, 2.0f);
  std::vector<float> right(8, 3.0f);
  std::vector<float> product(8);
  for ([[maybe_unused]] auto _ : state) {
    for (size_t i = 0; i < product.size(); ++i) product[i] = left[i] * right[i];
    benchmark::DoNotOptimize(product.data());
    benchmark::ClobberMemory();
  }
}
BENCHMARK(native_product_of_8);

void call_empty(benchmark::State& state) {
  const Program program = small_program("empty");
  for ([[maybe_unused]] auto _ : state)
    require(halyard_call_invoke(program.call, program.function, nullptr, 0, nullptr, 0));
}
BENCHMARK(call_empty);

void call_add(benchmark::State& state) {
  const Program program = small_program("add");
  halyard_value_t arguments[2] = {};
  arguments[0].kind = arguments[1].kind = HALYARD_VALUE_I32;
  arguments[0].i32 = 40;
  arguments[1].i32 = 2;
  halyard_value_t result = {};
  for ([[maybe_unused]] auto _ : state)
    require(halyard_call_invoke(program.call, program.function, arguments, 2, &result, 1));
  if (result.i32 != 42) state.SkipWithError("40 + 2 is not 42");
}
BENCHMARK(call_add);

// A whole warm call of an element-wise product: checks of the arguments, alloca, dispatch, wait, view.
void call_product(benchmark::State& state, const char* device, const std::string& path,
                  const std::string& function, int64_t elements) {
  Program program;
  if (!program.load(state, path, function.c_str(), device)) return;
  const std::vector<float> twos(static_cast<size_t>(elements), 2.0f);
  const halyard_value_t result =
      program.repeat(state, {program.view(twos, {elements}), program.view(twos, {elements})});
  float first = 0;
  require(halyard_view_read(result.object, 0, &first, sizeof first));
  if (first != 4.0f) state.SkipWithError("2 * 2 is not 4");
}

// The same with a trace to /dev/null: the cost of an event is the difference to the call without, divided by
// the number of events.
void call_product_traced(benchmark::State& state, const std::string& path) {
  halyard_trace_t trace = nullptr;
  require(halyard_trace_create("/dev/null", &trace));
  Program program(trace);
  if (!program.load(state, path, "simple_mul")) return;
  const std::vector<float> twos(4, 2.0f);
  const std::vector<halyard_value_t> arguments = {program.view(twos, {4}), program.view(twos, {4})};
  halyard_trace_totals_t before = {};
  before.struct_size = sizeof before;
  halyard_trace_totals_t after = before;
  require(halyard_trace_totals(trace, &before));
  program.repeat(state, arguments);
  require(halyard_trace_totals(trace, &after));
  const auto calls = static_cast<double>(state.iterations());
  state.counters["events"] = static_cast<double>(after.events - before.events) / calls;
}

// A whole warm call of forty dispatches, each depending on the previous one.
void call_chain(benchmark::State& state, const char* device) {
  Program program;
  if (!program.load(state, fixtures() + "/compiled/pipeline_chain.llvm-cpu.vmfb", "chain", device)) return;
  constexpr double kDispatches = 40;
  program.repeat(state, {program.view(std::vector<float>(256, 1.0f), {16, 16})});
  state.counters["dispatch"] = benchmark::Counter(
      kDispatches, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

const std::string elementwise_mul = HALYARD_SOURCE_DIR "/examples/elementwise_mul.vmasm";
const std::string simple_mul = fixtures() + "/compiled/simple_mul.vmvx.vmfb";
BENCHMARK_CAPTURE(call_product, elementwise_mul, "local-sync", elementwise_mul, "mul", 8);
BENCHMARK_CAPTURE(call_product, simple_mul, "local-sync", simple_mul, "simple_mul", 4);
BENCHMARK_CAPTURE(call_product_traced, simple_mul, simple_mul);
BENCHMARK_CAPTURE(call_product, simple_mul_task, "local-task", simple_mul, "simple_mul", 4)->UseRealTime();
BENCHMARK_CAPTURE(call_chain, sync, "local-sync");
BENCHMARK_CAPTURE(call_chain, task, "local-task")->UseRealTime();

}  // namespace

BENCHMARK_MAIN();
