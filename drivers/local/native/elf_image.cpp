// Copies an image to memory and relocates it.
#include "elf_image.h"

#include <algorithm>
#include <cstring>

namespace halyard::local {

bool ElfImage::has_memory(uint64_t address, uint64_t bytes, bool ElfSegment::* kind) const {
  return std::ranges::any_of(segments, [&](const ElfSegment& segment) {
    return (!kind || segment.*kind) && address >= segment.address && address <= segment.end() &&
           bytes <= segment.end() - address;
  });
}

Result<> place_elf(const ElfImage& image, FileBytes file, std::span<uint8_t> memory, uint64_t base) {
  for (const ElfSegment& segment : image.segments)
    std::copy_n(file.begin() + static_cast<ptrdiff_t>(segment.file_offset), segment.file_size,
                memory.begin() + static_cast<ptrdiff_t>(segment.address - image.begin));
  const uint64_t bias = base - image.begin;
  for (const ElfFixup& fixup : image.fixups) {
    const uint64_t value = fixup.value + static_cast<uint64_t>(int64_t{fixup.bias_factor}) * bias;
    const bool fits =
        fixup.fit == RelocationFit::always ||
        (fixup.fit == RelocationFit::as_unsigned ? value <= UINT32_MAX : value + (1ull << 31) <= UINT32_MAX);
    if (!fits)
      return fail(
          Code::OUT_OF_RANGE,
          "the ELF library relocates the {1} bytes at {2:#x} to the address {0:#x}, which does not fit; "
          "compile it as position-independent code",
          value, fixup.width, fixup.place);
    std::memcpy(memory.data() + (fixup.place - image.begin), &value, fixup.width);
  }
  return {};
}

}  // namespace halyard::local
