// For tests of native modules in C: makes definitions of functions, and loads them.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "machine_testing.h"
#include "status_testing.h"
#include "vm/native/module_definition.h"

namespace halyard::vm::test {

// A definition with these functions, which a test can modify.
struct Definition : halyard_module_definition_t {
  explicit Definition(std::vector<halyard_module_export_t> given = {})
      : halyard_module_definition_t(), functions(std::move(given)) {
    struct_size = sizeof(halyard_module_definition_t);
    abi_version = HALYARD_MODULE_ABI_V1;
    name = "native";
    version = 3;
    export_size = sizeof(halyard_module_export_t);
    exports = functions.data();
    export_count = functions.size();
    type_size = sizeof(halyard_module_type_t);
  }
  Definition(const Definition&) = delete;
  Definition& operator=(const Definition&) = delete;

  std::vector<halyard_module_export_t> functions;
};

template <typename Function>
halyard_module_export_t plain(const char* name, const char* convention, Function* function,
                              uint32_t flags = 0) {
  return HALYARD_PLAIN(name, convention, function, flags);
}
inline halyard_module_export_t frame(const char* name, const char* convention,
                                     halyard_frame_function_t function) {
  return HALYARD_FRAME(name, convention, function);
}

// A machine with a module of these functions.
inline void add_module(Machine& machine, const Definition& definition, const std::string& argument = "") {
  auto module =
      ASSERT_VALUE(create_native_module(&definition, {.argument = argument, .name = ""}, machine.types));
  ASSERT_OK(machine.context->add(module));
}
struct NativeMachine : Machine {
  explicit NativeMachine(std::vector<halyard_module_export_t> functions) {
    add_module(*this, Definition(std::move(functions)));
  }
};

}  // namespace halyard::vm::test
