// Shared by the benchmarks: one function of one module, ready to be called through the C ABI.
#pragma once

#include <benchmark/benchmark.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "halyard/halyard.h"

// Benchmarks end at the first error.
inline void require(halyard_status_t status) {
  if (!status) return;
  char* text = halyard_status_text(status);
  std::fprintf(stderr, "%s\n", text);
  std::exit(1);
}

// The folder with external programs.
inline std::string fixtures() {
  const char* given = std::getenv("HALYARD_FIXTURES");
  return given ? given : HALYARD_SOURCE_DIR "/../shared/fixtures";
}
inline std::string bench_modules() { return fixtures() + "/../bench/modules/"; }

// Lives as long as the process.
struct Program {
  halyard_instance_t instance = nullptr;
  halyard_device_t device = nullptr;
  halyard_module_t module = nullptr;
  halyard_context_t context = nullptr;
  halyard_function_t function = nullptr;
  halyard_call_t call = nullptr;

  // `trace` may be null.
  explicit Program(halyard_trace_t trace = nullptr) {
    halyard_instance_options_t options = {};
    options.struct_size = sizeof options;
    options.trace = trace;
    require(halyard_instance_create(&options, &instance));
  }
  void load_text(std::string_view text) {
    void* bytes = nullptr;
    size_t size = 0;
    require(halyard_assemble(text.data(), text.size(), nullptr, &bytes, &size));
    require(halyard_module_load_memory(instance, bytes, size, 0, &module));
    halyard_free(bytes);
  }
  void open_device(const char* uri = "local-sync") { require(halyard_device_open(instance, uri, &device)); }
  void link(const char* name) {
    halyard_context_options_t options = {};
    options.struct_size = sizeof options;
    options.modules = &module;
    options.module_count = 1;
    options.devices = &device;
    options.device_count = device ? 1 : 0;
    require(halyard_context_create(instance, &options, &context));
    require(halyard_context_find(context, nullptr, name, &function));
    require(halyard_call_create(context, &call));
  }
  // A function of a file on a device. If the file does not exist, returns false and the benchmark is skipped.
  bool load(benchmark::State& state, const std::string& path, const char* name,
            const char* uri = "local-sync") {
    if (!std::filesystem::exists(path)) {
      state.SkipWithError("the module is not here");
      return false;
    }
    require(halyard_module_load_file(instance, path.c_str(), 0, &module));
    open_device(uri);
    link(name);
    return true;
  }
  // An argument: an f32 tensor on the device.
  halyard_value_t view(const std::vector<float>& elements, const std::vector<int64_t>& shape) const {
    constexpr uint32_t kF32 = 0x21000020;
    halyard_value_t value = {};
    value.kind = HALYARD_VALUE_OBJECT;
    require(halyard_view_create(device, kF32, shape.data(), shape.size(), elements.data(),
                                elements.size() * sizeof(float), &value.object));
    return value;
  }
  // Runs the benchmark loop. Returns the last result.
  halyard_value_t repeat(benchmark::State& state, const std::vector<halyard_value_t>& arguments) const {
    halyard_value_t result = {};
    const auto once = [&] {
      halyard_release(result.object);
      require(halyard_call_invoke(call, function, arguments.data(), arguments.size(), &result, 1));
    };
    for (int i = 0; i < 3; ++i) once();  // warm-up
    for ([[maybe_unused]] auto _ : state) once();
    return result;
  }
};
