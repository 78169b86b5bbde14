// Makes programs that load, end, and do as much as possible on the way: any opcode of the table over
// well-typed registers, branches with moves that overlap, loops, calls of functions, of another module and of
// native ones, MOVE bits wherever a field has one. For holding two machines against each other
// (differential.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "choices.h"
#include "module_parts.h"

namespace halyard::vm::test {

// What a register holds. Refs are kept apart so that no list can come to hold itself: an `outer` list may
// hold everything but outer lists; a `leaf` list, buffers and probes; a list of `values`, none; `any` holds
// anything and is put into nothing. Buffers and probes may be wherever something else is expected.
enum class Kind : uint8_t { i32, i64, f32, f64, buffer, probe, values, leaf, outer, any };

constexpr bool is_ref(Kind kind) { return kind >= Kind::buffer; }

struct ProgramArgument {
  Kind kind;
  uint64_t bits;  // of a value; of a ref, which of a few objects of its kind, 0 being null
};

struct ProgramCall {
  std::vector<ProgramArgument> arguments;
  std::string function = "main";
};

struct Program {
  std::vector<ModuleParts> modules;  // in the order of loading
  std::vector<ProgramCall> calls;    // of functions of the last module, one after another
  bool fuse = true;                  // whether decoding may fuse instructions
};

Program generate_program(Choices& choices);

// A native function that programs import from the module "native".
struct NativeSignature {
  const char* name;
  const char* convention;
  std::vector<Kind> arguments;  // spans left out: those are in the convention only
  std::vector<Kind> results;
  bool defers;
};
const std::vector<NativeSignature>& native_signatures();

}  // namespace halyard::vm::test
