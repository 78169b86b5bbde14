// Reads the dynamic table of an ELF library: symbols, relocations, initializers.
#pragma once

#include "elf_image.h"

namespace halyard::local {

// Fills exports, fixups and initializers of an image whose segments are known. Fails like read_elf().
Result<> read_dynamic(FileBytes file, const ElfArchitecture& architecture, ElfRange table, ElfImage& image);

}  // namespace halyard::local
