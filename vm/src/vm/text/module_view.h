// A module opened for inspection, not for execution. It is checked like a loaded module, but unknown ref
// types are accepted, and data that exists only in the file (flags, descriptors, segments) can be read.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "vm/format/archive.h"
#include "vm/module/bytecode_module.h"
#include "vm/object/type_registry.h"

namespace halyard::vm {

// The fields of FunctionDescriptor (module-format.md, section 3.2) that Function does not have.
struct FunctionFields {
  int16_t reserved = 0;
  uint16_t value_registers = 0;  // as in the file, not rounded up
  uint16_t ref_registers = 0;
};

class ModuleView {
 public:
  // Like BytecodeModule::load, but accepts unknown types; RESOURCE_EXHAUSTED also for excessively long type
  // names.
  static Result<ModuleView> open(Ref<Bytes> bytes);

  const BytecodeModule& module() const { return *module_; }
  const Archive& archive() const { return archive_; }

  uint32_t import_flags(uint32_t import) const;
  uint32_t dependency_flags(uint32_t dependency) const;
  FunctionFields function_fields(uint32_t function) const;
  // Attributes of the function's signature, even if the function is not exported.
  std::vector<Attribute> function_attributes(uint32_t function) const;
  // From the debug database; empty if it has none. May be wrong, because compilers have written wrong names.
  std::string_view debug_name(uint32_t function) const;
  uint32_t source_locations() const;  // the number of entries in the debug database's table
  uint32_t bytecode_bytes() const;
  bool is_embedded(uint32_t segment) const;  // in the FlatBuffer, not after it
  std::span<const uint8_t> segment(uint32_t segment) const { return module_->rodata()[segment]->span(); }

  // OK if the function can run; otherwise the reason.
  Result<> verify(uint32_t function) const;

  // The names of all functions in the text: the first export, else the name in the debug database, else
  // func_N. Each name is unique. Views of the module or of `made_up`.
  std::vector<std::string_view> function_names(std::deque<std::string>& made_up) const;

 private:
  Archive archive_;
  std::deque<std::string> type_names_;
  std::deque<ObjectType> placeholders_;
  TypeRegistry types_;
  Ref<BytecodeModule> module_;
};

}  // namespace halyard::vm
