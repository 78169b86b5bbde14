// NativeModule: C++ functions that bytecode imports. A function accesses the caller's registers in place;
// bind<> (vm/native/bind.h) generates such a function from a plain C++ function. Specified by
// calling-convention.md, section 6.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "vm/module/module.h"
#include "vm/object/buffer.h"
#include "vm/object/list.h"

namespace halyard::vm {

class Invocation;
struct ModuleInstance;

// One call of a native function, with access to the caller's frame. Arguments are borrowed: the callee
// retains a ref to keep it. Registers are numbered as in bytecode: bit 15 marks a ref, MOVE bits are cleared,
// and a 64-bit value has the number of its low slot.
struct NativeCall {
  Invocation* invocation = nullptr;
  void* state = nullptr;                     // the module's state in this context
  const ModuleInstance* instance = nullptr;  // the module in this context; null: called outside of a context
  uint32_t* values = nullptr;                // the caller's 32-bit slots
  Object** refs = nullptr;                   // the caller's refs
  const uint16_t* arguments = nullptr;       // in the order of the convention, spans flattened
  const uint16_t* segments = nullptr;  // one count for each top-level item; null: the convention has no span
  const uint16_t* results = nullptr;   // written only on success; releases the old refs first
  bool resumed = false;                // a further attempt after it deferred, with the same arguments
  bool deferred = false;  // set by the callee: not done; call it again when the invocation resumes
  bool may_defer = true;  // false: the caller cannot wait for the results
  const void* function_data = nullptr;  // NativeExport::data of the called function
};

using NativeFunction = Status (*)(NativeCall& call);

struct NativeExport {
  const char* name;
  const char* convention;
  NativeFunction function;
  const void* data = nullptr;  // passed to the function; lives as long as the module
  std::vector<Attribute> attributes = {};
};

// What a program has beside functions (halyard/program.h). Contexts share the constants.
struct NativeProgram {
  uint32_t global_bytes = 0;
  uint32_t global_refs = 0;
  bool legacy_floats = false;
  std::vector<ElementType> types;
  std::vector<Ref<Buffer>> constants;
  std::vector<Object*> constant_objects;  // the same
};

// The state of a module in one context, which owns it.
struct NativeState {
  void* pointer = nullptr;
  void (*destroy)(void* pointer) = nullptr;
};

class NativeModule final : public Module {
 public:
  static const ObjectType kType;

  struct Definition {
    std::string name;
    uint32_t version = 0;
    std::vector<NativeExport> exports;                  // a name may appear with several conventions
    std::function<Result<NativeState>()> create_state;  // may be empty
    std::vector<Import> imports;
    std::vector<Dependency> dependencies;
    std::vector<Attribute> attributes;
    // Null: the module is no program. A program may wait in every call, and adds the places of its failures
    // itself.
    const NativeProgram* program = nullptr;
  };
  static Ref<NativeModule> create(Definition definition);

  const NativeExport& native_export(uint32_t function) const { return definition_.exports[function]; }
  Result<NativeState> create_state() const;
  const NativeProgram* program() const { return definition_.program; }

  explicit NativeModule(Definition definition);
  ~NativeModule() = default;

 private:
  Definition definition_;
};

}  // namespace halyard::vm
