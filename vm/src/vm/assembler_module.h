// The module that the assembler is building: what directives declare and what function bodies refer to by
// name. Names are views of the text being assembled.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "vm/assembler.h"
#include "vm/vmasm_lexer.h"

namespace halyard::vm::assembler {

using OrdinalOf = std::unordered_map<std::string_view, uint32_t>;

struct Attribute {
  std::string_view key;
  std::string_view value;
};

struct Import {
  std::string_view full_name;
  std::string_view calling_convention;
  bool optional = false;
};

struct Dependency {
  std::string_view name;
  uint32_t minimum_version = 0;
  bool optional = false;
};

struct Global {
  Bank bank = Bank::none;
  uint32_t offset = 0;  // known once all are declared
  uint32_t size() const { return bank == Bank::i64 || bank == Bank::f64 ? 8 : 4; }
};

// The function is looked up when the text ends: exports may stand before their functions.
struct Export {
  std::string_view name;
  std::string_view target;
  SourceLine line;
};

struct ExportAttribute {
  std::string_view export_name;
  Attribute attribute;
  SourceLine line;
};

struct Function {
  std::string_view name;
  std::string calling_convention;
  uint32_t offset = 0;
  uint32_t length = 0;
  uint32_t requirements = 0;  // 1 EXT_F32, 2 EXT_F64
  uint32_t block_count = 0;
  uint32_t value_registers = 0;
  uint32_t ref_registers = 0;
  std::vector<Attribute> attributes;  // sorted by key
};

// A callee that may be a function further down.
struct CalleeUse {
  Cursor at;  // for messages
  std::string_view name;
  size_t position = 0;  // in the bytecode
  bool import_only = false;
};

struct Module {
  AssembleOptions options;

  bool declared = false;
  std::string_view name;
  uint32_t version = 0;
  std::vector<Attribute> attributes;
  std::vector<std::string> types;  // as in the type table, "!vm.buffer"
  std::unordered_map<std::string, uint32_t> type_ordinals;
  std::vector<Dependency> dependencies;
  std::vector<Import> imports;
  OrdinalOf import_ordinals;
  std::vector<Global> globals;
  OrdinalOf global_ordinals;
  uint32_t global_bytes = 0;
  uint32_t global_refs = 0;
  std::vector<Export> exports;
  OrdinalOf export_ordinals;
  std::vector<ExportAttribute> export_attributes;
  std::vector<Function> functions;
  OrdinalOf function_ordinals;
  std::vector<std::vector<uint8_t>> rodata;
  std::vector<uint8_t> bytecode;
  std::vector<CalleeUse> callees;

  // The ordinal of a type as written, added on first use.
  Result<uint32_t> type_ordinal(const Cursor& cursor, std::string_view written);
};

// "vm.buffer" and "!vm.buffer" are the same type; what is neither a value type nor a ref type is an error.
Result<std::string> type_name(const Cursor& cursor, std::string_view written);

// "; did you mean 'x'?" over the names of a table, or nothing.
std::string suggestion(std::string_view word, const OrdinalOf& names);

// One directive. Reads further lines for a nested module or a function's body.
Result<> assemble_directive(Module& module, Cursor cursor, LineReader& lines, int depth);

// "vm.func" and its body, up to and including the line "}".
Result<> assemble_function(Module& module, Cursor cursor, LineReader& lines);

// Lines up to the end of the text or, for a nested module (depth > 0), up to its "}". The flat archive.
Result<std::vector<uint8_t>> assemble_module(LineReader& lines, const AssembleOptions& options, int depth,
                                             SourceLine opened);

// The complete module as a FlatBuffer with its size before it.
std::vector<uint8_t> flat_archive(const Module& module);

}  // namespace halyard::vm::assembler
