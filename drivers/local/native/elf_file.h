// Reads and checks ELF files, from their headers on.
#pragma once

#include <cstdint>

#include "elf_architecture.h"
#include "elf_image.h"
#include "elf_reader.h"
#include "status.h"

namespace halyard::local {

// FAILED_PRECONDITION: not a library, or damaged. UNAVAILABLE: the library depends on other libraries.
// UNIMPLEMENTED: unknown relocation. PERMISSION_DENIED: writable code. `page`: bytes, a power of two.
Result<ElfImage> read_elf(FileBytes file, const ElfArchitecture& architecture, uint64_t page);

// The checks for both kinds of library: a 64-bit little-endian shared object for this architecture.
// FAILED_PRECONDITION.
Result<> check_elf_header(FileBytes file, const ElfArchitecture& architecture);

// GNU_PROPERTY_X86_ISA_1_NEEDED: bit n stands for level n + 1 of x86-64. 0 if the file has no such note or is
// not an ELF file.
uint32_t needed_processor_levels(FileBytes file, const ElfArchitecture& architecture);

}  // namespace halyard::local
