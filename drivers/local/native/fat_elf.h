// FatELF: one file that holds ELF libraries for several architectures. Specified by exec-cpu-library.md,
// section 9.
#pragma once

#include "elf_architecture.h"
#include "elf_reader.h"
#include "status.h"

namespace halyard::local {

// The bytes of the library for this architecture; the file itself where it is no FatELF container.
// FAILED_PRECONDITION: a damaged container. INCOMPATIBLE: it has none for this architecture.
Result<FileBytes> choose_from_fat_elf(FileBytes file, const ElfArchitecture& architecture);

}  // namespace halyard::local
