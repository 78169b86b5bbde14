// NativeModule: functions written in C++ that bytecode imports. A function receives the caller's registers in
// place; the typed wrapper bind<> (vm/native/bind.h) makes one from a plain C++ function. Specified by
// calling-convention.md, section 6.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "vm/module/module.h"

namespace halyard::vm {

class Invocation;

// One call of a native function, as the caller's frame holds it. Arguments are borrowed: what the callee
// keeps it retains. Registers are named as in bytecode (bit 15: a ref; MOVE bits are removed); a 64-bit value
// by its low slot.
struct NativeCall {
  Invocation* invocation = nullptr;
  void* state = nullptr;                // of the module in this context
  uint32_t* values = nullptr;           // the caller's 32-bit slots
  Object** refs = nullptr;              // the caller's refs
  const uint16_t* arguments = nullptr;  // flattened in the order of the convention
  const uint16_t* segments = nullptr;   // one count per top-level item; null where the convention has no span
  const uint16_t* results = nullptr;  // where results go; written only on success, the old refs are released
  bool resumed = false;               // called again after it had deferred, with the same arguments
  bool deferred = false;              // set by the callee: not done, call again when the invocation resumes
  bool may_defer = true;              // else the caller has no way to wait for the results
  const void* function_data = nullptr;  // NativeExport::data of the function that is called
};

using NativeFunction = Status (*)(NativeCall& call);

struct NativeExport {
  const char* name;
  const char* convention;
  NativeFunction function;
  const void* data = nullptr;  // what the function needs to know of itself; lives as long as the module
};

// State of a module in one context. Owned by the context.
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
    std::vector<NativeExport> exports;                  // one name may stand with several conventions
    std::function<Result<NativeState>()> create_state;  // may be empty
  };
  static Ref<NativeModule> create(Definition definition);

  const NativeExport& native_export(uint32_t function) const { return definition_.exports[function]; }
  Result<NativeState> create_state() const;

  explicit NativeModule(Definition definition);
  ~NativeModule() = default;

 private:
  Definition definition_;
};

}  // namespace halyard::vm
