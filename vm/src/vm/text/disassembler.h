// Disassembler: a module as .vmasm text (docs/vmasm.md) that the assembler takes back. Whatever can be loaded
// can be printed, and what the text assembles to prints as the same text and has the same bytecode. What a
// text does not carry: where in the file things lay, source locations, rwdata segments, attributes of
// imports.
#pragma once

#include <string>

#include "base/bytes.h"
#include "base/status.h"

namespace halyard::vm {

struct DisassembleOptions {
  bool offsets = false;  // each instruction begins with its pc: "[0000001A] "
};

// A function that cannot run stands in the text as its bytes, with the reason and what could be read of it as
// comments. A constant that is itself a module is printed as one. Fails as the loader does, except that no
// type is unknown; RESOURCE_EXHAUSTED where the text would be longer than the assembler takes.
Result<std::string> disassemble(Ref<Bytes> bytes, const DisassembleOptions& options);

}  // namespace halyard::vm
