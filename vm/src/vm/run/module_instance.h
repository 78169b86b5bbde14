// The state of a module in a context: its globals and resolved imports.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/budget.h"
#include "base/object.h"
#include "vm/module/bytecode_module.h"
#include "vm/module/calling_convention.h"
#include "vm/module/native_module.h"

namespace halyard::vm {

class CodeStore;
struct ModuleInstance;

// The provider of an import.
struct Target {
  ModuleInstance* instance = nullptr;  // null: an unresolved optional import
  uint32_t function = 0;               // bytecode function or native export
  NativeFunction native = nullptr;     // set if the provider is native
  const void* native_data = nullptr;   // the export's data
  bool is_program = false;             // it is of a program that is a native module
};

// A module in a context.
struct ModuleInstance {
  Ref<Module> module;
  const BytecodeModule* bytecode = nullptr;  // the same module if it is bytecode, otherwise null
  CodeStore* store = nullptr;                // its code if it is bytecode, otherwise null
  std::unique_ptr<uint8_t[]> global_bytes;   // 16-byte aligned
  std::vector<Object*> global_refs;          // owned
  std::vector<Target> imports;
  std::vector<Convention> import_conventions;  // of the providers, if the module is native
  NativeState native_state;
  Charge charge;  // for the globals

  ModuleInstance() = default;
  ModuleInstance(const ModuleInstance&) = delete;
  ModuleInstance& operator=(const ModuleInstance&) = delete;
  ~ModuleInstance() {
    for (Object* object : global_refs) release(object);
    if (native_state.destroy) native_state.destroy(native_state.pointer);
  }
};

}  // namespace halyard::vm
