// The module being assembled: its declarations, and the names to which function bodies refer. Names are views
// of the text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "vm/text/vmasm_lexer.h"

namespace halyard::vm::assembler {

using OrdinalOf = std::unordered_map<std::string_view, uint32_t>;

struct Attribute {
  std::string_view key;
  std::string_view value;
};

// Flags of imports and dependencies.
enum : uint32_t { kRequired = 1, kOptional = 2 };

struct Import {
  std::string_view full_name;
  std::string_view calling_convention;
  uint32_t flags = kRequired;
};

struct Dependency {
  std::string_view name;
  uint32_t minimum_version = 0;
  uint32_t flags = kRequired;
};

struct Global {
  Bank bank = Bank::none;
  uint32_t offset = 0;  // known once all globals are declared
  uint32_t size() const { return bank == Bank::i64 || bank == Bank::f64 ? 8 : 4; }
};

// The function is looked up at the end of the text, because exports may precede their functions.
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
  std::string_view name;        // a view of the text
  std::string_view debug_name;  // for the debug database; may be empty
  std::string calling_convention;
  uint32_t offset = 0;
  uint32_t length = 0;
  uint32_t requirements = 0;
  uint32_t block_count = 0;
  uint32_t value_registers = 0;
  uint32_t ref_registers = 0;
  int16_t reserved = 0;
  std::vector<Attribute> attributes;  // those of vm.attr, sorted by key; then those of .attr, in order

  void use(const RegisterName& reg);  // raises the register counts to include `reg`
};

// The directives inside a function (lines that begin with a dot).
struct FunctionFacts {
  std::optional<std::string_view> calling_convention;
  std::optional<uint32_t> requirements;
  std::optional<uint32_t> value_registers;  // both counts are given, or none
  std::optional<uint32_t> ref_registers;
  std::optional<uint32_t> blocks;  // only if the body is given as bytes
  bool raw = false;                // the body is given as bytes
  bool endless = false;            // the function needs neither return nor fail
};

// A callee in the text: a name, possibly of a function defined later, or an ordinal.
struct Callee {
  enum Kind : uint8_t { by_name, function, import } kind = by_name;
  std::string_view name;  // with an ordinal: the module as written, or empty
  uint32_t ordinal = 0;
};
struct CalleeUse {
  Cursor at;  // for messages
  Callee callee;
  size_t position = 0;  // in the bytecode
  bool import_only = false;
};

struct Module {
  Source* source = nullptr;
  uint32_t bytecode_version = 17;
  uint32_t forced_version = 0;  // from the options; 0: the text decides

  bool declared = false;
  bool functionless = false;  // vm.empty
  std::string_view name;
  uint32_t version = 0;
  std::optional<uint32_t> requirements;
  std::vector<Attribute> attributes;
  OrdinalOf attribute_ordinals;
  std::vector<std::string> types;  // in the form of the type table, "!vm.buffer"
  std::unordered_map<std::string, uint32_t> type_ordinals;
  std::vector<Dependency> dependencies;
  OrdinalOf dependency_ordinals;
  std::vector<Import> imports;
  OrdinalOf import_ordinals;
  std::vector<Global> globals;
  OrdinalOf global_ordinals;
  bool state_given = false;  // vm.state is present and sets the next two members; else they follow from use
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

  // Returns the ordinal of a type in the text; adds the type on first use.
  Result<uint32_t> type_ordinal(const Cursor& cursor, std::string_view written);
};

// "vm.buffer" and "!vm.buffer" are the same type. Anything that is not a value type or a ref type is an
// error.
Result<std::string> type_name(const Cursor& cursor, std::string_view written);

// Returns "; did you mean 'x'?" with a name from a table, or an empty string.
std::string suggestion(std::string_view word, const OrdinalOf& names);

// Assigns offsets: first to 4-byte globals, then to 8-byte ones, each in the order of declaration.
Result<> lay_out_globals(Module& module, const Cursor& at);

// Reads a directive, including the lines of a nested module or of a function's body.
Result<> assemble_directive(Module& module, Cursor cursor, LineReader& lines, int depth);

// Appends the remaining hex digits of the line to `bytes`.
Result<> read_hex(Cursor& cursor, std::vector<uint8_t>& bytes);

// Reads "KEY" "VALUE" and the end of the line.
Result<Attribute> read_attribute(Cursor& cursor);

// Reads "ext_f32, yield", a number for bits without a name, or "none".
Result<uint32_t> read_features(Cursor& cursor);

std::string_view register_form(Bank bank);  // "%iN:N+1"
std::string bank_text(Bank bank);           // "a 64-bit register, %iN:N+1"

// Reads arguments and results: "(%i0: i32) -> (i64)".
Result<> read_signature(Cursor& cursor, Function& function);

// Reads a directive inside a function, other than .bytes.
Result<> read_fact(Cursor& cursor, Function& function, FunctionFacts& facts);

// Applies the directives where they differ from the body.
Result<> apply_facts(const Cursor& at, Function& function, const FunctionFacts& facts);

// Reads "vm.func" and its body, including the closing line "}".
Result<> assemble_function(Module& module, Cursor cursor, LineReader& lines);

// Assembles lines up to the end of the text or, for a nested module (depth > 0), its "}". Returns the flat
// archive. `outer` is the enclosing module of a nested one, otherwise null.
Result<std::vector<uint8_t>> assemble_module(LineReader& lines, Source& source, uint32_t forced_version,
                                             const Module* outer, int depth, SourceLine opened);

// Serializes the complete module as a size-prefixed FlatBuffer.
std::vector<uint8_t> flat_archive(const Module& module);

}  // namespace halyard::vm::assembler
