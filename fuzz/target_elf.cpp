// An arbitrary native library, for each architecture and page size: if it can be read, it can be placed in
// memory within its bounds. No code of it runs.
#include <algorithm>
#include <vector>

#include "fuzzing.h"
#include "native/elf_file.h"
#include "native/elf_image.h"
#include "native/fat_elf.h"

using namespace halyard;
using namespace halyard::local;

namespace {

constexpr uint64_t kMaxImage = uint64_t{1} << 22;  // bytes; larger images are not filled

bool in_one(const ElfImage& image, uint64_t address, uint64_t size, bool ElfSegment::* kind) {
  return std::ranges::any_of(image.segments, [&](const ElfSegment& segment) {
    return segment.*kind && address >= segment.address && size <= segment.memory_size &&
           address - segment.address <= segment.memory_size - size;
  });
}

void check(const ElfImage& image, std::span<const uint8_t> file) {
  uint64_t end = 0;
  for (const ElfSegment& segment : image.segments) {
    if (segment.writable && segment.executable) fuzz::finding("code that can be written to");
    if (segment.address < std::max(end, image.begin))
      fuzz::finding("segments share a page or are not in order");
    if (segment.file_size > segment.memory_size || segment.file_offset > file.size() ||
        segment.file_size > file.size() - segment.file_offset)
      fuzz::finding("a segment outside of the file");
    end = (segment.end() + image.page - 1) / image.page * image.page;
    if (segment.end() < segment.address || end - image.begin > image.size) fuzz::finding("a segment outside");
  }
  for (const ElfFixup& fixup : image.fixups)
    if (!in_one(image, fixup.place, fixup.width, &ElfSegment::writable)) fuzz::finding("a fixup outside");
  for (const ElfExport& each : image.exports)
    if (each.address - image.begin > image.size) fuzz::finding("an export outside");
  if (image.initializer != 0 && !in_one(image, image.initializer, 1, &ElfSegment::executable))
    fuzz::finding("an initializer that is no code");
  const ElfRange& later = image.read_only_later;
  if (later.size != 0 && (later.address < image.begin || later.address - image.begin > image.size ||
                          later.size > image.size - (later.address - image.begin)))
    fuzz::finding("pages outside are protected");
}

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span<const uint8_t> file = {data, size};
  for (const ElfArchitecture& architecture : kElfArchitectures) {
    const auto chosen = choose_from_fat_elf(file, architecture);
    if (!chosen) continue;
    (void)needed_processor_levels(*chosen, architecture);
    for (const uint64_t page : {uint64_t{0x1000}, uint64_t{0x10000}}) {
      const Result<ElfImage> image = read_elf(*chosen, architecture, page);
      if (!image) continue;
      check(*image, *chosen);
      if (image->size > kMaxImage) continue;
      std::vector<uint8_t> memory(image->size);
      for (const uint64_t base : {uint64_t{0x7F0000000000}, uint64_t{0x400000}})
        (void)place_elf(*image, *chosen, memory, base);
    }
  }
  return 0;
}
