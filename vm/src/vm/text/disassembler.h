// Disassembler: prints a module as .vmasm text (docs/vmasm.md), which the assembler accepts. Every module
// that can be loaded can be printed. Assembling and printing again gives the same text and the same bytecode.
// The text does not contain the layout of the file, source locations, rwdata segments, or attributes of
// imports.
#pragma once

#include <string>

#include "base/bytes.h"
#include "base/status.h"

namespace halyard::vm {

struct DisassembleOptions {
  bool offsets = false;  // print the pc before each instruction: "[0000001A] "
};

// A function that cannot run is printed as bytes, with comments that give the reason and the instructions
// that could be read. A constant that is a module itself is printed as a module. Fails like the loader,
// except that unknown types are accepted; RESOURCE_EXHAUSTED if the text would be longer than the assembler
// accepts.
Result<std::string> disassemble(Ref<Bytes> bytes, const DisassembleOptions& options);

}  // namespace halyard::vm
