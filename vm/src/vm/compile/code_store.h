// CodeStore: the verified, decoded and compiled forms of one module's functions, and their heat. All contexts
// of the module share it. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/object.h"
#include "base/status.h"
#include "base/tracer.h"
#include "vm/compile/compile_queue.h"
#include "vm/decode/call_writes.h"

namespace halyard::vm {

class BytecodeModule;
class CompiledFunction;
class Compiler;
struct FunctionCode;

struct LoadOptions {
  bool verify_eagerly = false;         // verify and decode every function when the module is loaded
  bool fuse = true;                    // fuse instructions; tests turn it off to compare results
  const Compiler* compiler = nullptr;  // compiles supported functions when they are decoded
  // Compiles hot functions on the queue's thread, as long as the queue exists. Excludes `compiler`.
  std::shared_ptr<CompileQueue> queue = {};
  std::string cache = {};   // folder for compiled objects; empty: none
  bool fast_math = false;   // compiled code may reorder sums of floats and use vector math (docs/jit.md)
  Ref<Tracer> tracer = {};  // records compilation; may be null
  // A stop word (base/work_scope.h), checked between functions that are verified eagerly; may be null.
  const uint32_t* stop = nullptr;
  CallWritesOf call_writes = nullptr;  // of the module's imports
};

class CodeStore final : public Compilable {
 public:
  // `module` owns the store. Its functions must not change.
  CodeStore(BytecodeModule& module, const LoadOptions& options);
  CodeStore(const CodeStore&) = delete;
  CodeStore& operator=(const CodeStore&) = delete;
  ~CodeStore();

  // Returns the verified and decoded function; creates it on first use. Fails with the verifier's status and
  // the note "at module.name+PC".
  Result<const FunctionCode*> code(uint32_t function) {
    if (function < count_)
      if (const FunctionCode* ready = code_[function].load(std::memory_order_acquire)) [[likely]]
        return ready;
    return make_code(function);
  }
  // Calls code() for every function. Fails with the code of the stop word if it is set before the last
  // function.
  Result<> verify_all(const uint32_t* stop);

  // Queues the function for compilation; `for_loops`: with entries at the heads of loops.
  void request(uint32_t function, bool for_loops) noexcept;
  // Queues the function for calls, before it is hot, unless it was queued before. Functions with a higher
  // `priority` are compiled first.
  void request_early(uint32_t function, uint64_t priority) noexcept;
  // Takes the function from the cache, unless it was queued before. Returns whether new calls of it run
  // machine code.
  bool take_from_cache(uint32_t function) noexcept;
  // Compiles the function on this thread, or waits, if it is queued (CompileQueue::finish).
  void finish_request(uint32_t function, const uint32_t* stop) noexcept;
  // Compiles the function now; called by the queue, at most once for each function and kind. Afterwards
  // code() returns the compiled version, unless it was compiled for loops.
  void compile(uint32_t function, bool for_loops) noexcept override;

  // Whether new calls of the function run machine code and, if not, why. The text lives as long as the store.
  struct Form {
    bool is_compiled = false;
    std::string_view reason;
  };
  Form form(uint32_t function) const;

  // Null without a compile queue.
  const Heat* heat(uint32_t function) const { return heat_ ? &heat_[function] : nullptr; }
  const Sampling& sampling() const { return sampling_; }  // the compile queue's

 private:
  Result<const FunctionCode*> make_code(uint32_t function);
  Result<std::unique_ptr<const FunctionCode>> decode(uint32_t function);
  // Returns whether the function is compiled; with `cached_only` a refusal is not recorded.
  bool compile(uint32_t function, bool for_loops, bool cached_only);
  Result<CompiledFunction> run_compiler(const Compiler& compiler, const FunctionCode& code,
                                        bool cached_only = false);
  void refuse(uint32_t function, std::string_view reason);

  BytecodeModule& module_;
  const size_t count_;  // of functions
  const bool fuse_;
  const bool fast_math_;
  const CallWritesOf call_writes_;
  const Compiler* const compiler_;
  const std::weak_ptr<CompileQueue> queue_;
  const Sampling sampling_;
  const std::string cache_;
  const Ref<Tracer> tracer_;
  std::unique_ptr<Heat[]> heat_;  // by function; null without a compile queue
  std::unique_ptr<std::atomic<const FunctionCode*>[]> code_;
  std::mutex mutex_;
  mutable std::mutex refusals_mutex_;
  std::map<uint32_t, std::string> refusals_;  // why functions were not compiled
  // Versions that code() does not return: versions for loops, and interpreted versions that frames may still
  // use.
  std::vector<std::unique_ptr<const FunctionCode>> other_code_;
};

}  // namespace halyard::vm
