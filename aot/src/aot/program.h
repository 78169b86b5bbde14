// Modules to C over the services of a host: vm-cc --runtime=hal. Includes no other header of Halyard than
// translate.h, because tools have their own statuses and bytes.
#pragma once

#include "aot/translate.h"

namespace halyard::aot {

// Writes a module as C over halyard/module.h and halyard/program.h: NAME.h, NAME.c and, if its constants are
// large, NAME.bin with their bytes and NAME_data.S, which names them. Compiled to a shared library, this is
// the same module without bytecode. The same module and options give the same files. `main` is ignored.
// INVALID_ARGUMENT and the verifier's other codes: the module is not valid. UNIMPLEMENTED: a function cannot
// be written; the text says where and why.
std::expected<std::vector<File>, Refusal> translate_program(std::span<const uint8_t> module,
                                                            const Options& options);

}  // namespace halyard::aot
