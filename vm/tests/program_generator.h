// Generates programs that load, terminate, and cover as much as possible: all opcodes on well-typed
// registers, branches with overlapping moves, loops, calls within the module, to another module and to native
// functions, MOVE bits in all fields that have one. For comparing two machines (differential.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "choices.h"
#include "module_parts.h"

namespace halyard::vm::test {

// The contents of a register. Kinds of refs are distinguished so that no list can contain itself: an `outer`
// list may contain everything except outer lists; a `leaf` list contains buffers and probes; a `values` list
// contains no refs; `any` may be anything and is never put into a list. Buffers and probes may be used where
// another kind is expected.
enum class Kind : uint8_t { i32, i64, f32, f64, buffer, probe, values, leaf, outer, any };

constexpr bool is_ref(Kind kind) { return kind >= Kind::buffer; }

struct ProgramArgument {
  Kind kind;
  uint64_t bits;  // of a value; for a ref, the index of one of a few objects of its kind, 0 being null
};

struct ProgramCall {
  std::vector<ProgramArgument> arguments;
  std::string function = "main";
  bool shares = false;  // other threads may run pieces of compiled loops
};

struct Program {
  std::vector<ModuleParts> modules;  // in loading order
  std::vector<ProgramCall> calls;    // calls of the last module, in order
  bool fuse = true;                  // decoding may fuse instructions
};

Program generate_program(Choices& choices);

// A native function of the module "native" that programs import.
struct NativeSignature {
  const char* name;
  const char* convention;
  std::vector<Kind> arguments;  // without spans, which are only in the convention
  std::vector<Kind> results;
  bool defers;
};
const std::vector<NativeSignature>& native_signatures();

}  // namespace halyard::vm::test
