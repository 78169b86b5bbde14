// A module opened to be looked at, not run: everything the loader checks is checked, but ref types that this
// host does not have are taken as they are, and what only the file says (flags, descriptors, segments) can be
// asked too.
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

// FunctionDescriptor, module-format.md, section 3.2, without what Function has.
struct FunctionFields {
  int16_t reserved = 0;
  uint16_t value_registers = 0;  // as stated, not rounded
  uint16_t ref_registers = 0;
};

class ModuleView {
 public:
  // As BytecodeModule::load, except that no type is unknown; RESOURCE_EXHAUSTED also for absurdly long type
  // names.
  static Result<ModuleView> open(Ref<Bytes> bytes);

  const BytecodeModule& module() const { return *module_; }
  const Archive& archive() const { return archive_; }

  uint32_t import_flags(uint32_t import) const;
  uint32_t dependency_flags(uint32_t dependency) const;
  FunctionFields function_fields(uint32_t function) const;
  // Attributes of the function's signature, also of one that is not exported.
  std::vector<Attribute> function_attributes(uint32_t function) const;
  // From the debug database; empty where it has none. It may be wrong: compilers have written it so.
  std::string_view debug_name(uint32_t function) const;
  uint32_t source_locations() const;  // entries of the debug database's table
  uint32_t bytecode_bytes() const;
  bool is_embedded(uint32_t segment) const;  // in the FlatBuffer, not after it
  std::span<const uint8_t> segment(uint32_t segment) const { return module_->rodata()[segment]->span(); }

  // Whether the function can run; else why not.
  Result<> verify(uint32_t function) const;

  // What to call each function in text: the first of its exports, else its name in the debug database, else
  // func_N; each name once. Views of the module or of `made_up`.
  std::vector<std::string_view> function_names(std::deque<std::string>& made_up) const;

 private:
  Archive archive_;
  std::deque<std::string> type_names_;
  std::deque<ObjectType> placeholders_;
  TypeRegistry types_;
  Ref<BytecodeModule> module_;
};

}  // namespace halyard::vm
