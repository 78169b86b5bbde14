// The machine's own overhead, compared with one iteration of a native loop in the same run: calls within a
// module, of an import and from outside, and a kernel of a compiled module. machine.py combines these with
// the programs of core.vmasm against Lua; decoding is in vm/benchmarks.
#include <benchmark/benchmark.h>

#include <vector>

#include "program.h"

namespace {

// The iterations of every loop here.
constexpr int32_t kTurns = 1 << 20;

constexpr char kCallsText[] = R"(
vm.module @calls
vm.import @hal.devices.count cconv "0v_i"
vm.export @plain
vm.export @within
vm.export @across
vm.export @empty
vm.func @plain(%i0: i32) -> (i32) {
  %i1 = vm.const.i32.zero
  vm.br ^bb1()
^bb1:
  %i1 = vm.add.i32 %i1, %i1
  %i2 = vm.const.i32 1
  %i0 = vm.sub.i32 %i0, %i2
  vm.cond_br %i0, ^bb1(), ^bb2()
^bb2:
  vm.return %i1
}
vm.func @within(%i0: i32) -> (i32) {
  %i1 = vm.const.i32.zero
  vm.br ^bb1()
^bb1:
  %i1 = vm.call @same(%i1)
  %i2 = vm.const.i32 1
  %i0 = vm.sub.i32 %i0, %i2
  vm.cond_br %i0, ^bb1(), ^bb2()
^bb2:
  vm.return %i1
}
vm.func @across(%i0: i32) -> (i32) {
  %i1 = vm.const.i32.zero
  vm.br ^bb1()
^bb1:
  %i1 = vm.call @hal.devices.count()
  %i2 = vm.const.i32 1
  %i0 = vm.sub.i32 %i0, %i2
  vm.cond_br %i0, ^bb1(), ^bb2()
^bb2:
  vm.return %i1
}
vm.func @empty() -> () {
  vm.return
}
vm.func @same(%i0: i32) -> (i32) {
  vm.return %i0
}
)";

benchmark::Counter each(double count) {
  return {count, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert};
}

void native_turn(benchmark::State& state) {
  for ([[maybe_unused]] auto _ : state) {
    int32_t sum = 0;
    for (int32_t i = 0; i < kTurns; ++i) {
      sum += i;
      benchmark::DoNotOptimize(sum);
    }
  }
  state.counters["each"] = each(kTurns);
}
BENCHMARK(native_turn);

// A loop whose iterations do nothing, call a function of the module, or call an import.
void loop(benchmark::State& state, const char* function) {
  Program program;
  program.load_text(kCallsText);
  program.open_device();
  program.link(function);
  halyard_value_t turns = {};
  turns.kind = HALYARD_VALUE_I32;
  turns.i32 = kTurns;
  halyard_value_t result = {};
  for ([[maybe_unused]] auto _ : state)
    require(halyard_call_invoke(program.call, program.function, &turns, 1, &result, 1));
  state.counters["each"] = each(kTurns);
}
BENCHMARK_CAPTURE(loop, turn, "plain");
BENCHMARK_CAPTURE(loop, internal_call, "within");
BENCHMARK_CAPTURE(loop, import_call, "across");

void call_from_outside(benchmark::State& state) {
  Program program;
  program.load_text(kCallsText);
  program.open_device();
  program.link("empty");
  for ([[maybe_unused]] auto _ : state)
    require(halyard_call_invoke(program.call, program.function, nullptr, 0, nullptr, 0));
  state.counters["each"] = each(1);
}
BENCHMARK(call_from_outside);

// A compiled kernel, run by the machine: 2 x + y.
void saxpy(benchmark::State& state) {
  constexpr size_t kElements = 1 << 20;
  Program program;
  if (!program.load(state, bench_modules() + "saxpy.vmvx.vmfb", "saxpy")) return;
  halyard_value_t two = {};
  two.kind = HALYARD_VALUE_F32;
  two.f32 = 2;
  const halyard_value_t result =
      program.repeat(state, {two, program.view(std::vector<float>(kElements, 3), {kElements}),
                             program.view(std::vector<float>(kElements, 4), {kElements})});
  float last = 0;
  require(halyard_view_read(result.object, (kElements - 1) * sizeof last, &last, sizeof last));
  if (last != 10.0f) state.SkipWithError("2 * 3 + 4 is not 10");
  state.counters["each"] = each(kElements);
}
BENCHMARK(saxpy)->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
