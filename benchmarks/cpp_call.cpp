// What halyard/halyard.hpp adds to a call: the same calls through C and through C++, in batches that
// alternate, so that both have the same machine. `extra_ns` is the median of the differences of neighbouring
// batches.
#include <algorithm>
#include <chrono>

#include "halyard/halyard.hpp"
#include "program.h"

namespace {

constexpr int kBatch = 2000;

constexpr const char* kText = R"(
vm.module @calls
vm.export @add
vm.export @pass
vm.func @add(%i0: f32, %i1: f32) -> (f32) {
  %i0 = vm.add.f32 %i0, %i1
  vm.return %i0
}
vm.func @pass(%r0: !vm.ref<?>) -> (!vm.ref<?>) {
  vm.return %R0
}
)";

// A careful program in C: it builds its arguments, and checks the status and the kinds of its results.
float add_in_c(halyard_call_t call, halyard_function_t function, float x, float y) {
  halyard_value_t arguments[2] = {};
  arguments[0].kind = arguments[1].kind = HALYARD_VALUE_F32;
  arguments[0].f32 = x;
  arguments[1].f32 = y;
  halyard_value_t result;
  require(halyard_call_invoke(call, function, arguments, 2, &result, 1));
  if (result.kind != HALYARD_VALUE_F32) std::abort();
  return result.f32;
}
halyard_object_t pass_in_c(halyard_call_t call, halyard_function_t function, halyard_object_t object) {
  halyard_value_t argument = {};
  argument.kind = HALYARD_VALUE_OBJECT;
  argument.object = object;
  halyard_value_t result;
  require(halyard_call_invoke(call, function, &argument, 1, &result, 1));
  if (result.kind != HALYARD_VALUE_OBJECT) std::abort();
  return result.object;
}

template <typename Body>
double nanoseconds_of(Body&& body) {
  const auto begun = std::chrono::steady_clock::now();
  for (int i = 0; i < kBatch; ++i) body(i);
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begun).count() / kBatch;
}
double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

// One iteration is a batch of each, the first of them in turns.
template <typename C, typename Cpp>
void compare(benchmark::State& state, C&& in_c, Cpp&& in_cpp) {
  std::vector<double> c, cpp, extra;
  nanoseconds_of(in_c);  // warm
  nanoseconds_of(in_cpp);
  for ([[maybe_unused]] auto _ : state) {
    if (c.size() % 2 == 0) {
      c.push_back(nanoseconds_of(in_c));
      cpp.push_back(nanoseconds_of(in_cpp));
    } else {
      cpp.push_back(nanoseconds_of(in_cpp));
      c.push_back(nanoseconds_of(in_c));
    }
    extra.push_back(cpp.back() - c.back());
  }
  state.counters["c_ns"] = median(c);
  state.counters["cpp_ns"] = median(cpp);
  state.counters["extra_ns"] = median(extra);
}

void scalars(benchmark::State& state) {
  const auto instance = halyard::Instance::create();
  const auto module = halyard::Module::from_text(instance, kText);
  const auto context = halyard::Context::create(instance, {.modules = {module}});
  const auto add = context.find("add");
  const auto call = halyard::Call::create(context);
  compare(
      state,
      [&](int i) { benchmark::DoNotOptimize(add_in_c(call.get(), add.get(), static_cast<float>(i), 1.0f)); },
      [&](int i) { benchmark::DoNotOptimize(add.call<float>(static_cast<float>(i), 1.0f)); });
}
BENCHMARK(scalars);

void tensors(benchmark::State& state) {
  const auto instance = halyard::Instance::create();
  const auto module = halyard::Module::from_text(instance, kText);
  const auto context = halyard::Context::create(instance, {.modules = {module}});
  const auto pass = context.find("pass");
  const auto call = halyard::Call::create(context);
  const auto tensor = halyard::Tensor::create<float>(halyard::Device(), {4}, {1, 2, 3, 4});
  compare(
      state, [&](int) { halyard_release(pass_in_c(call.get(), pass.get(), tensor.get())); },
      [&](int) { benchmark::DoNotOptimize(pass.call<halyard::Tensor>(tensor)); });
}
BENCHMARK(tensors);

}  // namespace

BENCHMARK_MAIN();
