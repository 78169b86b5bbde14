// The cost of calling a C function from a program: a loop that adds by an instruction (the baseline), by a
// function of the module, by a plain C function (through libffi), and by a frame function.
#include <benchmark/benchmark.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "halyard/module.h"
#include "program.h"

namespace {

constexpr int64_t kTurns = 10000;

int32_t add(int32_t a, int32_t b) { return a + b; }

halyard_status_t add_frame(void*, halyard_module_call_t* call) {
  call->results[0].i32 = call->arguments[0].i32 + call->arguments[1].i32;
  return nullptr;
}

std::string program(const std::string& addition) {
  return R"(
vm.module @loop
vm.import @native.plain cconv "0ii_i"
vm.import @native.frame cconv "0ii_i"
vm.export @run
vm.func @internal(%i0: i32, %i1: i32) -> (i32) {
  %i0 = vm.add.i32 %i0, %i1
  vm.return %i0
}
vm.func @run(%i0: i32) -> (i32) {
  %i1 = vm.const.i32.zero
  %i2 = vm.const.i32 1
  vm.br ^bb1
^bb1:
  %i1 = )" +
         addition +
         R"((%i1, %i2)
  %i3 = vm.cmp.lt.i32.s %i1, %i0
  vm.cond_br %i3, ^bb1, ^bb2
^bb2:
  vm.return %i1
}
)";
}

void loop(benchmark::State& state, const std::string& addition) {
  static const halyard_module_export_t kExports[] = {HALYARD_PLAIN("plain", "0ii_i", add, 0),
                                                     HALYARD_FRAME("frame", "0ii_i", add_frame)};
  halyard_module_definition_t definition = {};
  definition.struct_size = sizeof definition;
  definition.abi_version = HALYARD_MODULE_ABI_V1;
  definition.name = "native";
  definition.export_size = sizeof kExports[0];
  definition.exports = kExports;
  definition.export_count = 2;
  halyard_instance_t instance = nullptr;
  require(halyard_instance_create(nullptr, &instance));
  halyard_module_t modules[2] = {};
  require(halyard_module_create_native(instance, &definition, &modules[0]));
  std::string text = program(addition);
  if (addition == "vm.add.i32") {  // an instruction takes its operands without parentheses
    const size_t at = text.find("vm.add.i32(");
    text.replace(at, sizeof "vm.add.i32(%i1, %i2)" - 1, "vm.add.i32 %i1, %i2");
  }
  void* bytes = nullptr;
  size_t size = 0;
  require(halyard_assemble(text.data(), text.size(), nullptr, &bytes, &size));
  require(halyard_module_load_memory(instance, bytes, size, 0, &modules[1]));
  halyard_free(bytes);
  halyard_context_options_t options = {};
  options.struct_size = sizeof options;
  options.modules = modules;
  options.module_count = 2;
  halyard_context_t context = nullptr;
  halyard_function_t function = nullptr;
  halyard_call_t call = nullptr;
  require(halyard_context_create(instance, &options, &context));
  require(halyard_context_find(context, nullptr, "run", &function));
  require(halyard_call_create(context, &call));
  halyard_value_t argument = {};
  argument.kind = HALYARD_VALUE_I32;
  argument.i32 = kTurns;
  halyard_value_t result = {};
  for ([[maybe_unused]] auto _ : state)
    require(halyard_call_invoke(call, function, &argument, 1, &result, 1));
  if (result.i32 != kTurns) state.SkipWithError("the loop did not end where it should");
  state.counters["turn"] =
      benchmark::Counter(static_cast<double>(kTurns),
                         benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
  for (void* handle :
       {static_cast<void*>(call), static_cast<void*>(function), static_cast<void*>(context),
        static_cast<void*>(modules[0]), static_cast<void*>(modules[1]), static_cast<void*>(instance)})
    halyard_release(handle);
}
BENCHMARK_CAPTURE(loop, instruction, "vm.add.i32");
BENCHMARK_CAPTURE(loop, internal_call, "vm.call @internal");
BENCHMARK_CAPTURE(loop, plain_function, "vm.call @native.plain");
BENCHMARK_CAPTURE(loop, frame_function, "vm.call @native.frame");

}  // namespace

BENCHMARK_MAIN();
