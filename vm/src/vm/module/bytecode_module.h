// BytecodeModule: a .vmfb archive, verified and indexed. Functions are verified and decoded on their first
// call. Specified by module-format.md.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/tracer.h"
#include "vm/compile/heat.h"
#include "vm/module/module.h"
#include "vm/object/buffer.h"
#include "vm/object/list.h"
#include "vm/object/type_registry.h"

namespace halyard::vm {

class CompileQueue;  // vm/compile/compile_queue.h
class CompiledFunction;
class Compiler;       // vm/compile/compiler.h
struct FunctionCode;  // decoded, vm/decode/code.h (`Code` is the status code)

enum Feature : uint32_t { kFeatureF32 = 1, kFeatureF64 = 2, kFeatureYield = 4, kFeatureUnwind = 8 };

// The requirements that modules and functions of this bytecode version may have. The last two only describe
// what a function may do; this runtime supports both.
constexpr uint32_t known_features(uint32_t bytecode_version) {
  return kFeatureF32 | kFeatureF64 | (bytecode_version < 17 ? 0 : kFeatureYield | kFeatureUnwind);
}

struct Function {
  std::span<const uint8_t> bytecode;
  uint32_t features = 0;  // Feature bits
  uint16_t block_count = 0;
  uint16_t value_registers = 0;  // 32-bit slots, rounded up by the verifier's rule 3.1.3
  uint16_t ref_registers = 0;    // rounded up likewise
  std::string_view convention;   // empty: () -> ()
};

class BytecodeModule final : public Module {
 public:
  static const ObjectType kType;

  struct LoadOptions {
    bool verify_eagerly = false;         // verify and decode every function now
    bool fuse = true;                    // fuse instructions; tests turn it off to compare
    const Compiler* compiler = nullptr;  // compiles the functions that it supports when they are decoded
    // Compiles hot functions on the queue's thread while the queue exists. Not together with `compiler`.
    std::shared_ptr<CompileQueue> queue = {};
    std::string cache = {};   // folder for compiled objects; empty: none
    bool fast_math = false;   // compiled code may reorder sums of floats and use vector math (docs/jit.md)
    Ref<Tracer> tracer = {};  // records compilation; may be null
    const uint32_t* stop =
        nullptr;  // a stop word (base/work_scope.h), looked at between functions that are verified now
  };

  // Checks everything in module-format.md, section 4, except function bodies (unless `verify_eagerly`). The
  // bytes stay mapped as long as the module or a buffer over its rodata exists. INVALID_ARGUMENT; NOT_FOUND:
  // a type; RESOURCE_EXHAUSTED: a file crafted to cost far more than its size. The message names the check.
  static Result<Ref<BytecodeModule>> load(Ref<Bytes> bytes, const TypeRegistry& types,
                                          const LoadOptions& options);
  static Result<Ref<BytecodeModule>> load(Ref<Bytes> bytes, const TypeRegistry& types) {
    return load(std::move(bytes), types, {});
  }

  uint32_t bytecode_version() const { return bytecode_version_; }  // 15, 16 or 17
  uint32_t features() const { return features_; }
  std::span<const Function> functions() const { return functions_; }
  std::span<const ElementType> types() const { return types_; }  // by ordinal
  std::span<const std::string_view> type_names() const { return type_names_; }
  std::span<const Ref<Buffer>> rodata() const { return rodata_; }  // one read-only object per segment
  uint32_t global_bytes() const { return global_bytes_; }
  uint32_t global_refs() const { return global_refs_; }
  // The DebugDatabase of the schema, verified; null if the module has none (vm/format/source_location.h).
  const void* debug_database() const { return debug_database_; }
  // A name for messages: the export's, otherwise the debug database's, otherwise empty.
  std::string_view function_name(uint32_t function) const;

  // The verified and decoded function, created on first use. Thread-safe. Fails with the verifier's status
  // and the note "at module.name+PC".
  Result<const FunctionCode*> code(uint32_t function) const;

  // Puts the function into the compile queue, with entries at the heads of loops or without. Thread-safe.
  void ask_for_code(uint32_t function, bool for_loops) const noexcept;
  // Compiles the function now; called by the queue. Afterwards code() returns the compiled version, unless it
  // was compiled for loops. At most once for each function and kind.
  void compile(uint32_t function, bool for_loops) const noexcept;

  // Null without a compile queue.
  const Heat* heat(uint32_t function) const;
  const Sampling& sampling() const { return sampling_; }  // the compile queue's

  BytecodeModule();
  ~BytecodeModule();

 private:
  friend struct ModuleLoader;
  Result<std::unique_ptr<const FunctionCode>> decode(uint32_t function) const;

  TypeRegistry registry_;  // keeps the types alive that types_ points to
  Ref<Bytes> bytes_;       // the file
  Ref<Bytes> metadata_;    // holds names: the file, or a copy if the file is not aligned in memory
  // All functions. A copy that nothing else refers to: a function is read again when it is compiled, and what
  // was verified must not have changed.
  Ref<Bytes> bytecode_;
  bool fuse_ = true;
  const Compiler* compiler_ = nullptr;
  std::weak_ptr<CompileQueue> queue_;
  Sampling sampling_;
  std::string cache_;
  bool fast_math_ = false;
  Ref<Tracer> tracer_;
  Result<CompiledFunction> compile(const Compiler& compiler, const FunctionCode& code) const;
  std::unique_ptr<Heat[]> heat_;          // by function; null without a compile queue
  const void* debug_database_ = nullptr;  // in metadata_
  uint32_t bytecode_version_ = 0;
  uint32_t features_ = 0;
  uint32_t global_bytes_ = 0;
  uint32_t global_refs_ = 0;
  std::vector<Function> functions_;
  std::vector<ElementType> types_;
  std::vector<std::string_view> type_names_;
  std::vector<Ref<Buffer>> rodata_;
  std::vector<std::string_view> function_names_;
  mutable std::unique_ptr<std::atomic<const FunctionCode*>[]> code_;
  mutable std::mutex decode_mutex_;
  // Versions that code() does not return: the interpreted ones that frames may still use, and those for
  // loops.
  mutable std::vector<std::unique_ptr<const FunctionCode>> other_code_;
};

}  // namespace halyard::vm
