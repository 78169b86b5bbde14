// BytecodeModule: the contents of a .vmfb archive, checked and indexed. It neither verifies nor decodes
// function bodies; LoadedModule (vm/compile/loaded_module.h) is a module that can run. Specified by
// module-format.md.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "vm/format/features.h"
#include "vm/module/module.h"
#include "vm/object/buffer.h"
#include "vm/object/list.h"
#include "vm/object/type_registry.h"

namespace halyard::vm {

struct Function {
  std::span<const uint8_t> bytecode;
  uint32_t features = 0;  // Feature bits
  uint16_t block_count = 0;
  uint16_t value_registers = 0;  // 32-bit slots, rounded up by the verifier's rule 3.1.3
  uint16_t ref_registers = 0;    // rounded up in the same way
  std::string_view convention;   // empty: () -> ()
};

// A type as modules name it: "i32", "!vm.opaque", "!hal.buffer"; nullopt if the name is unknown.
std::optional<ElementType> find_element_type(std::string_view name, const TypeRegistry& types);

class BytecodeModule : public Module {
 public:
  static const ObjectType kType;

  // Checks everything in module-format.md, section 4, except function bodies. The bytes stay mapped as long
  // as the module or a buffer over its rodata exists. INVALID_ARGUMENT: a check failed; NOT_FOUND: an unknown
  // type; RESOURCE_EXHAUSTED: the file is crafted to cost far more than its size. The message names the
  // check.
  static Result<Ref<BytecodeModule>> load(Ref<Bytes> bytes, const TypeRegistry& types);

  uint32_t bytecode_version() const { return bytecode_version_; }  // 15, 16 or 17
  uint32_t features() const { return features_; }
  std::span<const Function> functions() const { return functions_; }
  std::span<const ElementType> types() const { return types_; }  // by ordinal
  std::span<const std::string_view> type_names() const { return type_names_; }
  std::span<const Ref<Buffer>> rodata() const { return rodata_; }  // one read-only object per segment
  uint32_t global_bytes() const { return global_bytes_; }
  uint32_t global_refs() const { return global_refs_; }
  // The DebugDatabase of the schema, verified; null if the module has none (vm/module/source_location.h).
  const void* debug_database() const { return debug_database_; }
  // A name for messages: of the export, else from the debug database, else empty.
  std::string_view function_name(uint32_t function) const;
  // The function's entry in the debug database.
  static constexpr uint32_t kNoDebugEntry = UINT32_MAX;
  uint32_t debug_entry(uint32_t function) const {
    return function < debug_entries_.size() ? debug_entries_[function] : kNoDebugEntry;
  }

  // Creates an empty module, which read() fills.
  explicit BytecodeModule(const ObjectType* type = &kType);
  ~BytecodeModule() = default;

 protected:
  // Implements load() for an empty module.
  Result<> read(Ref<Bytes> bytes, const TypeRegistry& types);

 private:
  friend struct ModuleReader;

  TypeRegistry registry_;  // keeps the types of types_ alive
  Ref<Bytes> bytes_;       // the file
  Ref<Bytes> metadata_;    // contains the names: the file, or a copy if the file is not aligned in memory
  // All function bodies: a private copy. A function is read again when it is compiled, and must not have
  // changed since it was verified.
  Ref<Bytes> bytecode_;
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
  std::vector<uint32_t> debug_entries_;  // by function; empty: no database
};

}  // namespace halyard::vm
