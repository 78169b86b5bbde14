// The cost of preparing a function: verifying and decoding, each alone, in bytes of bytecode per second, next
// to one iteration of a native loop in the same run. Uses the layer directly, because the C ABI cannot
// separate the two.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "vm/compile/loaded_module.h"
#include "vm/decode/code.h"
#include "vm/format/archive.h"
#include "vm/text/assembler.h"
#include "vm/verify/verifier.h"

namespace halyard::vm {
namespace {

// A benchmark stops at the first error.
template <typename T>
T require(Result<T> result) {
  if (!result) {
    std::fprintf(stderr, "%s\n", result.error().text().c_str());
    std::exit(1);
  }
  if constexpr (!std::is_void_v<T>) return *std::move(result);
}

// Functions like those of a compiler: constants first, a loop over buffers, moves on its edges, calls.
std::string many_functions(int count) {
  std::string text = "vm.module @many\n";
  for (int i = 0; i < count; ++i)
    text += "vm.func @f" + std::to_string(i) + R"((%i0: i32, %r0: !vm.buffer) -> (i32) {
  %i1 = vm.const.i32 1
  %i2:3 = vm.const.i64 64
  %i4 = vm.const.i32.zero
  %i6:7 = vm.const.i64.zero
  %i8:9 = vm.ext.i32.i64.s %i0
  %i10:11 = vm.mul.i64 %i8:9, %i2:3
  vm.br ^bb1(%i6 -> %i12, %i7 -> %i13)
^bb1:
  %i5 = vm.cmp.lt.i64.s %i12:13, %i10:11
  vm.cond_br %i5, ^bb2(), ^bb3()
^bb2:
  %i14:15 = vm.add.i64 %i12:13, %i8:9
  %i16 = vm.buffer.load.i32 %r0, %i14:15
  %i17 = vm.mul.i32 %i16, %i0
  %i17 = vm.add.i32 %i17, %i4
  vm.buffer.store.i32 %i17, %r0, %i12:13
  %i18:19 = vm.const.i64 1
  %i20:21 = vm.add.i64 %i12:13, %i18:19
  vm.br ^bb1(%i20 -> %i12, %i21 -> %i13)
^bb3:
  %i22 = vm.buffer.load.i32 %r0, %i6:7
  %i23 = vm.cmp.eq.i32 %i22, %i1
  %i22 = vm.select.i32 %i23 ? %i22 : %i0
  vm.cond_br %i23, ^bb4(), ^bb5()
^bb4:
  %i22 = vm.call @f0(%i22, %r0)
  vm.br ^bb5()
^bb5:
  vm.discard.refs %r0
  vm.return %i22
}
)";
  return text;
}

using Modules = std::vector<Ref<LoadedModule>>;

Modules synthetic() {
  constexpr int kFunctions = 4000;
  std::vector<uint8_t> bytes = require(assemble(many_functions(kFunctions), {}));
  return {require(LoadedModule::load(Bytes::own(std::move(bytes)), TypeRegistry()))};
}

// A registry with all types that the module names.
TypeRegistry types_of(const Ref<Bytes>& bytes) {
  static std::deque<std::string> names;
  static std::deque<ObjectType> made;
  TypeRegistry types;
  for (;;) {
    const Result<Ref<LoadedModule>> module = LoadedModule::load(bytes, types);
    if (module || module.error().code() != Code::NOT_FOUND) return types;
    const std::string& message = module.error().message();  // type '!hal.buffer' ...
    const size_t first = message.find("'!");
    if (first == std::string::npos) return types;
    names.push_back(message.substr(first + 2, message.find('\'', first + 1) - first - 2));
    made.push_back({names.back().c_str(), nullptr});
    types.add(&made.back());
  }
}

// The module, and modules in its constants: device code of the same kind.
void collect(const Ref<Bytes>& bytes, Modules& modules) {
  Result<Ref<LoadedModule>> module = LoadedModule::load(bytes, types_of(bytes));
  if (!module) return;
  modules.push_back(*module);
  for (const Ref<Buffer>& constant : (*module)->rodata())
    if (constant->length() > 64) collect(Bytes::copy(constant->span()), modules);
}

Modules compiled() {
  const char* given = std::getenv("HALYARD_FIXTURES");
  const std::filesystem::path fixtures = given ? given : HALYARD_SOURCE_DIR "/../shared/fixtures";
  Modules modules;
  for (const auto& folder : {fixtures / "compiled", fixtures / "../bench/modules"}) {
    if (!std::filesystem::exists(folder)) continue;
    std::vector<std::string> files;
    for (const auto& entry : std::filesystem::directory_iterator(folder))
      if (entry.path().extension() == ".vmfb") files.push_back(entry.path());
    std::ranges::sort(files);
    for (const std::string& file : files) collect(require(Bytes::map_file(file)), modules);
  }
  return modules;
}

int64_t bytecode_size(const Modules& modules) {
  int64_t size = 0;
  for (const auto& module : modules)
    for (const Function& function : module->functions())
      size += static_cast<int64_t>(function.bytecode.size());
  return size;
}

// Prepares every function with `make`; the results are kept as long as the module would keep them.
template <typename Make>
void all_functions(benchmark::State& state, const Modules& modules, Make make) {
  if (modules.empty()) {
    state.SkipWithError("there are no compiled modules");
    return;
  }
  std::vector<decltype(make(*modules.front(), 0))> made;
  size_t functions = 0;
  for (const auto& module : modules) functions += module->functions().size();
  made.reserve(functions);
  for ([[maybe_unused]] auto _ : state) {
    for (const auto& module : modules)
      for (uint32_t i = 0; i < module->functions().size(); ++i) made.push_back(make(*module, i));
    state.PauseTiming();
    for (auto& each : made) require(std::move(each));
    made.clear();
    state.ResumeTiming();
  }
  state.counters["speed"] = benchmark::Counter(static_cast<double>(bytecode_size(modules)),
                                               benchmark::Counter::kIsIterationInvariantRate);
  state.counters["functions"] = static_cast<double>(functions);
  state.counters["bytes"] = static_cast<double>(bytecode_size(modules));
}

void native_turn(benchmark::State& state) {
  constexpr int32_t kTurns = 1 << 20;
  for ([[maybe_unused]] auto _ : state) {
    int32_t sum = 0;
    for (int32_t i = 0; i < kTurns; ++i) {
      sum += i;
      benchmark::DoNotOptimize(sum);
    }
  }
  state.counters["each"] =
      benchmark::Counter(kTurns, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}
BENCHMARK(native_turn);

void verify(benchmark::State& state, Modules (*modules)()) {
  all_functions(state, modules(), verify_function);
}
BENCHMARK_CAPTURE(verify, synthetic, synthetic)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(verify, compiled, compiled)->Unit(benchmark::kMillisecond);

void decode(benchmark::State& state, Modules (*modules)(), bool fuse) {
  all_functions(state, modules(), [fuse](const BytecodeModule& module, uint32_t function) {
    return decode_function(module, function, {.fuse = fuse});
  });
}
BENCHMARK_CAPTURE(decode, synthetic, synthetic, true)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(decode, compiled, compiled, true)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(decode, synthetic_unjoined, synthetic, false)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(decode, compiled_unjoined, compiled, false)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace halyard::vm

BENCHMARK_MAIN();
