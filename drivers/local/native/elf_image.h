// ElfImage: a parsed and checked embedded ELF library: the bytes to load and their addresses, the
// relocations, and the exports. This code neither maps nor runs the library, so it is safe for any bytes.
// Specified by exec-cpu-library.md, section 9.
//
// Addresses are those in the file. The image is loaded at `base`; all addresses move by the same distance,
// the bias.
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
  uint64_t memory_size;  // bytes; those beyond file_size are zero
  uint64_t file_offset;
  uint64_t file_size;
  bool writable;
  bool executable;  // never both writable and executable

  uint64_t end() const { return address + memory_size; }
};

// value + bias_factor * bias is written to `place`.
struct ElfFixup {
  uint64_t place;
  uint64_t value;
  int8_t bias_factor;  // -1, 0 or 1
  uint8_t width;       // bytes, 4 or 8
  RelocationFit fit;
};

struct ElfExport {
  std::string_view name;  // a view of the file
  uint64_t address;
};

struct ElfRange {
  uint64_t address = 0;
  uint64_t size = 0;  // bytes
};

struct ElfImage {
  uint64_t begin = 0;                // a multiple of `alignment`, at or before the first segment's address
  uint64_t size = 0;                 // bytes, whole pages; not 0
  uint64_t alignment = 0;            // of the base; a power of two, at least a page
  uint64_t page = 0;                 // bytes; segments do not share pages
  std::vector<ElfSegment> segments;  // in ascending order
  std::vector<ElfFixup> fixups;      // all in writable segments
  std::vector<ElfExport> exports;    // all inside the image
  ElfRange read_only_later;    // whole pages of one segment, made read-only after relocation; may be empty
  uint64_t initializer = 0;    // a function; 0: none
  ElfRange initializers;       // an array of function addresses, which fixups relocate; may be empty
  uint32_t needed_levels = 0;  // needed_processor_levels()

  // Whether [address, address + size) is within one segment's memory.
  bool has_memory(uint64_t address, uint64_t size, bool ElfSegment::* kind) const;
};

// Copies the segments to `memory`, which has the image's size and is zeroed, and applies the fixups for an
// image loaded at `base`. OUT_OF_RANGE: an address does not fit in the relocated bytes.
Result<> place_elf(const ElfImage& image, FileBytes file, std::span<uint8_t> memory, uint64_t base);

}  // namespace halyard::local
