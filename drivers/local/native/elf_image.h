// ElfImage: what an embedded ELF library asks of a loader, read and checked: which bytes go where, what is
// changed there, and what it offers. Nothing here maps or runs anything, so any bytes may be given. Specified
// by exec-cpu-library.md, section 9.
//
// Addresses are those of the file. The image lies at `base` in memory; then all of them move by the same
// distance, the bias.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "elf_architecture.h"
#include "elf_reader.h"
#include "status.h"

namespace halyard::local {

struct ElfSegment {
  uint64_t address;
  uint64_t memory_size;  // bytes; those that the file has not are zero
  uint64_t file_offset;
  uint64_t file_size;
  bool writable;
  bool executable;  // never both

  uint64_t end() const { return address + memory_size; }
};

// value + bias_factor * bias, written to `place`.
struct ElfFixup {
  uint64_t place;
  uint64_t value;
  int8_t bias_factor;  // -1, 0 or 1
  uint8_t width;       // bytes, 4 or 8
  RelocationFit fit;
};

struct ElfExport {
  std::string_view name;  // in the file
  uint64_t address;
};

struct ElfRange {
  uint64_t address = 0;
  uint64_t size = 0;  // bytes
};

struct ElfImage {
  uint64_t begin = 0;                // a multiple of `alignment`, at most the first segment's address
  uint64_t size = 0;                 // bytes, whole pages; 0 never
  uint64_t alignment = 0;            // of the base; a power of two, at least a page
  uint64_t page = 0;                 // bytes; no two segments share one
  std::vector<ElfSegment> segments;  // ascending
  std::vector<ElfFixup> fixups;      // all in writable segments
  std::vector<ElfExport> exports;    // all inside the image
  ElfRange read_only_later;    // whole pages of one segment, protected when all is in place; may be empty
  uint64_t initializer = 0;    // a function; 0: none
  ElfRange initializers;       // an array of addresses, which fixups change; may be empty
  uint32_t needed_levels = 0;  // needed_processor_levels()

  // Whether [address, address + size) is all in one segment's memory.
  bool has_memory(uint64_t address, uint64_t size, bool ElfSegment::* kind) const;
};

// FAILED_PRECONDITION: not a library, or a damaged one. UNAVAILABLE: it needs other libraries. UNIMPLEMENTED:
// a relocation that is not known. PERMISSION_DENIED: code that can be written to. `page`: bytes, a power of
// two.
Result<ElfImage> read_elf(FileBytes file, const ElfArchitecture& architecture, uint64_t page);

// What both kinds of library must be: a 64-bit little-endian shared object of this architecture.
// FAILED_PRECONDITION.
Result<> check_elf_header(FileBytes file, const ElfArchitecture& architecture);

// GNU_PROPERTY_X86_ISA_1_NEEDED: bit n stands for level n + 1 of x86-64. 0: the file says nothing, or is
// none.
uint32_t needed_processor_levels(FileBytes file, const ElfArchitecture& architecture);

// Copies the segments to `memory`, which has the image's size and is zero, and makes the fixups for an image
// that lies at `base`. OUT_OF_RANGE: an address does not fit where it is wanted.
Result<> place_elf(const ElfImage& image, FileBytes file, std::span<uint8_t> memory, uint64_t base);

}  // namespace halyard::local
