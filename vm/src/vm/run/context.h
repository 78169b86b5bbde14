// Context: modules linked together, with a state of their own (globals, resolved imports). Specified by
// module-format.md, sections 5, 7, 8 and 10. Several invocations may use a context one after another; at the
// same time only where the program allows it (globals are not locked).
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/budget.h"
#include "base/loop.h"
#include "base/object.h"
#include "base/status.h"
#include "base/tracer.h"
#include "vm/module/bytecode_module.h"
#include "vm/module/calling_convention.h"
#include "vm/native/native_module.h"

namespace halyard::vm {

// Passing one is RESOURCE_EXHAUSTED; passing `time` is DEADLINE_EXCEEDED.
struct Limits {
  uint64_t stack_bytes = 8u << 20;             // of one invocation
  uint64_t buffer_bytes = uint64_t{16} << 30;  // of one vm.buffer
  uint32_t list_elements = 1u << 28;           // of one vm.list
  Ref<Budget> memory;                          // of all that the program takes; null: no limit
  std::chrono::nanoseconds time{0};            // of one call from outside, waits included; 0: no limit
  bool concurrent_calls = true;                // else a second call at the same time is refused
};

struct ModuleInstance;

// What an import is bound to.
struct Target {
  ModuleInstance* instance = nullptr;  // null: an unresolved optional import
  uint32_t function = 0;               // bytecode function or native export
  NativeFunction native = nullptr;     // set where the provider is native
  const void* native_data = nullptr;   // of that export
};

// A module in a context.
struct ModuleInstance {
  Ref<Module> module;
  const BytecodeModule* bytecode = nullptr;  // the same module, where it is one
  std::unique_ptr<uint8_t[]> global_bytes;   // 16-byte aligned
  std::vector<Object*> global_refs;          // owned
  std::vector<Target> imports;
  NativeState native_state;
  Charge charge;  // of the globals

  ModuleInstance() = default;
  ModuleInstance(const ModuleInstance&) = delete;
  ModuleInstance& operator=(const ModuleInstance&) = delete;
  ~ModuleInstance();
};

// An export that can be called from outside. Valid while its context lives.
struct Callable {
  ModuleInstance* instance = nullptr;
  const Export* function = nullptr;
  Convention convention;
  // The convention again, close together: what every call goes through.
  std::vector<ValueType> arguments;  // none: a ref
  std::string results;               // a character each
};

class Context final : public ObjectOf<Context> {
 public:
  static const ObjectType kType;

  // `tracer` (may be null) is told of calls. `loop` measures the time limit of calls; null: one of its own,
  // where there is such a limit.
  static Ref<Context> create(Limits limits = {}, Ref<Tracer> tracer = {}, Ref<Loop> loop = {});
  ~Context();

  // Adds a module: state, dependencies, imports (from modules added before), __init. On failure the module is
  // not added.
  Result<> add(Ref<Module> module);
  // The export of the module added last under that name. NOT_FOUND names near ones.
  Result<Callable> find(std::string_view module, std::string_view function) const;
  Result<Callable> callable(ModuleInstance* instance, const Export& function) const;

  const Limits& limits() const { return limits_; }
  Tracer* tracer() const { return tracer_.get(); }
  const Ref<Loop>& loop() const { return loop_; }  // null where calls have no time limit
  std::span<const std::unique_ptr<ModuleInstance>> modules() const { return modules_; }

  // For contexts without concurrent calls: takes the context for a call, or FAILED_PRECONDITION naming the
  // one that has it.
  Result<> enter(const Export& function) {
    const Export* running = nullptr;
    if (running_.compare_exchange_strong(running, &function, std::memory_order_acquire)) return {};
    return is_running(*running, function);
  }
  void leave() { running_.store(nullptr, std::memory_order_release); }

  Context(Limits limits, Ref<Tracer> tracer, Ref<Loop> loop);

 private:
  static std::unexpected<Status> is_running(const Export& running, const Export& refused);

  Limits limits_;
  Ref<Tracer> tracer_;
  Ref<Loop> loop_;
  std::vector<std::unique_ptr<ModuleInstance>> modules_;
  std::atomic<const Export*> running_ = nullptr;
};

}  // namespace halyard::vm
