// Context: modules linked together, with their state (globals, resolved imports). Specified by
// module-format.md, sections 5, 7, 8 and 10. Invocations use a context one after another; concurrently only
// if the program allows it, because globals are not locked.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/loop.h"
#include "base/object.h"
#include "base/status.h"
#include "base/tracer.h"
#include "vm/module/calling_convention.h"
#include "vm/module/module.h"
#include "vm/run/limits.h"
#include "vm/run/module_instance.h"

namespace halyard::vm {

// An export that can be called from outside. Valid as long as its context.
struct Callable {
  ModuleInstance* instance = nullptr;
  const Export* function = nullptr;
  Convention convention;
  // The convention in the form that every call needs.
  std::vector<ValueType> arguments;  // none: a ref
  std::string results;               // one character each
};

class Context final : public ObjectOf<Context> {
 public:
  static const ObjectType kType;

  // `tracer` (may be null) records calls. `loop` measures the time limit of calls; if it is null and there is
  // a limit, the context creates its own loop.
  static Ref<Context> create(Limits limits = {}, Ref<Tracer> tracer = {}, Ref<Loop> loop = {});
  ~Context();

  // Adds a module: creates its state, links its dependencies and imports (to modules added before), and runs
  // __init. On failure the module is not added.
  Result<> add(Ref<Module> module);
  // An export of the last module with this name. NOT_FOUND lists near names.
  Result<Callable> find(std::string_view module, std::string_view function) const;
  Result<Callable> callable(ModuleInstance* instance, const Export& function) const;

  const Limits& limits() const { return limits_; }
  Tracer* tracer() const { return tracer_.get(); }
  const Ref<Loop>& loop() const { return loop_; }  // null if calls have no time limit
  std::span<const std::unique_ptr<ModuleInstance>> modules() const { return modules_; }

  // Keeps the memory of released buffers for buffers of later calls. Before the first call; only for contexts
  // that one thread at a time uses and whose buffers do not leave them.
  void keep_spare_blocks() { spare_blocks_ = std::make_unique<SpareBlocks>(); }
  SpareBlocks* spare_blocks() const { return spare_blocks_.get(); }

  // For contexts without concurrent calls: reserves the context for a call. FAILED_PRECONDITION names the
  // call that uses it.
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
  std::unique_ptr<SpareBlocks> spare_blocks_;  // outlives the buffers of modules_
  std::vector<std::unique_ptr<ModuleInstance>> modules_;
  std::atomic<const Export*> running_ = nullptr;
};

}  // namespace halyard::vm
