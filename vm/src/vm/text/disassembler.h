// Disassembler: prints a module as .vmasm text (docs/vmasm.md) that the assembler accepts. Every module that
// loads can be printed. Assembling and printing again gives the same text and the same bytecode. The text
// lacks the layout of the file, source locations, rwdata segments, and attributes of imports.
#pragma once

#include <string>

#include "base/bytes.h"
#include "base/status.h"

namespace halyard::vm {

struct DisassembleOptions {
  bool offsets = false;  // print the pc before each instruction: "[0000001A] "
};

// A function that cannot run is printed as bytes, with comments that give the reason and the readable
// instructions. A constant that is a module is printed as a module. Fails like the loader, but accepts
// unknown types. RESOURCE_EXHAUSTED: the text would exceed the assembler's limit.
Result<std::string> disassemble(Ref<Bytes> bytes, const DisassembleOptions& options);

}  // namespace halyard::vm
