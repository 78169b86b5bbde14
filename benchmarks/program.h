// What the benchmarks here stand on: one function of one module, ready to be called through the C ABI.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "halyard/halyard.h"

// A benchmark has no use for going on after an error.
inline void require(halyard_status_t status) {
  if (!status) return;
  char* text = halyard_status_text(status);
  std::fprintf(stderr, "%s\n", text);
  std::exit(1);
}

// Lives as long as the process.
struct Program {
  halyard_instance_t instance = nullptr;
  halyard_device_t device = nullptr;
  halyard_module_t module = nullptr;
  halyard_context_t context = nullptr;
  halyard_function_t function = nullptr;
  halyard_call_t call = nullptr;

  Program() { require(halyard_instance_create(nullptr, &instance)); }
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
};
