// BytecodeModule: a .vmfb archive, checked and indexed. Functions are verified and decoded when first called.
// Specified by module-format.md.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "vm/module/module.h"
#include "vm/object/buffer.h"
#include "vm/object/list.h"
#include "vm/object/type_registry.h"

namespace halyard::vm {

class Compiler;       // vm/compile/compiler.h
struct FunctionCode;  // a function in decoded form, vm/decode/code.h (not "Code": that is the status code)

enum Feature : uint32_t { kFeatureF32 = 1, kFeatureF64 = 2, kFeatureYield = 4, kFeatureUnwind = 8 };

// What modules and functions of this bytecode version may require. The last two tell what a function may do
// and change nothing for a runtime that can do it.
constexpr uint32_t known_features(uint32_t bytecode_version) {
  return kFeatureF32 | kFeatureF64 | (bytecode_version < 17 ? 0 : kFeatureYield | kFeatureUnwind);
}

struct Function {
  std::span<const uint8_t> bytecode;
  uint32_t features = 0;  // Feature bits
  uint16_t block_count = 0;
  uint16_t value_registers = 0;  // 32-bit slots, rounded up as the verifier's rule 3.1.3 says
  uint16_t ref_registers = 0;    // likewise
  std::string_view convention;   // of its signature; empty = () -> ()
};

class BytecodeModule final : public Module {
 public:
  static const ObjectType kType;

  struct LoadOptions {
    bool verify_eagerly = false;         // verify and decode every function now
    bool fuse = true;                    // fuse instructions; without, to compare both in tests
    const Compiler* compiler = nullptr;  // compiles what it takes of every function when that is decoded
  };

  // Checks everything of module-format.md, section 4, except function bodies (unless eager). The bytes stay
  // mapped while the module or any buffer over its rodata lives. INVALID_ARGUMENT, NOT_FOUND (a type),
  // RESOURCE_EXHAUSTED (a file made to cost far more than its size); the message names the check.
  static Result<Ref<BytecodeModule>> load(Ref<Bytes> bytes, const TypeRegistry& types, LoadOptions options);
  static Result<Ref<BytecodeModule>> load(Ref<Bytes> bytes, const TypeRegistry& types) {
    return load(std::move(bytes), types, {});
  }

  uint32_t bytecode_version() const { return bytecode_version_; }  // 15, 16 or 17
  uint32_t features() const { return features_; }
  std::span<const Function> functions() const { return functions_; }
  std::span<const ElementType> types() const { return types_; }  // by type ordinal
  std::span<const std::string_view> type_names() const { return type_names_; }
  std::span<const Ref<Buffer>> rodata() const { return rodata_; }  // one read-only object per segment
  uint32_t global_bytes() const { return global_bytes_; }
  uint32_t global_refs() const { return global_refs_; }
  // The DebugDatabase of the schema, verified; null where the module has none (vm/format/source_location.h).
  const void* debug_database() const { return debug_database_; }
  // For messages: the export's name, else the debug database's, else empty.
  std::string_view function_name(uint32_t function) const;

  // The verified, decoded function; made on first use, then shared. Any thread. Fails with the verifier's
  // status, annotated "at module.name+PC".
  Result<const FunctionCode*> code(uint32_t function) const;

  BytecodeModule();
  ~BytecodeModule();

 private:
  friend struct ModuleLoader;
  Result<std::unique_ptr<const FunctionCode>> decode(uint32_t function) const;

  TypeRegistry registry_;  // keeps alive what types_ points to
  Ref<Bytes> bytes_;       // the file
  Ref<Bytes>
      metadata_;  // what names and bytecode point into: the file, or a copy where its memory is not aligned
  bool fuse_ = true;
  const Compiler* compiler_ = nullptr;
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
};

}  // namespace halyard::vm
