// FatELF: a container of ELF libraries for several architectures. Specified by exec-cpu-library.md, section
// 9.
#pragma once

#include "elf_architecture.h"
#include "elf_reader.h"
#include "status.h"

namespace halyard::local {

// The library for this architecture; the file itself if it is not a FatELF container. FAILED_PRECONDITION: a
// damaged container. INCOMPATIBLE: it has no library for this architecture.
Result<FileBytes> choose_from_fat_elf(FileBytes file, const ElfArchitecture& architecture);

}  // namespace halyard::local
