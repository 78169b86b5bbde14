// Reads the records of a FatELF container.
#include "fat_elf.h"

#include <elf.h>

namespace halyard::local {

namespace {

constexpr uint32_t kMagic = 0x1F0E70FA;
constexpr uint16_t kVersion = 1;
constexpr uint8_t kWord64 = 2;
constexpr uint8_t kLittleEndian = 1;

struct Header {
  uint32_t magic;
  uint16_t version;
  uint8_t record_count;
  uint8_t reserved;
};
struct Record {
  uint16_t machine;
  uint8_t system;
  uint8_t system_version;
  uint8_t word_size;
  uint8_t byte_order;
  uint16_t reserved;
  uint64_t offset;
  uint64_t size;
};
static_assert(sizeof(Header) == 8 && sizeof(Record) == 24);

bool fits(const Record& record, const ElfArchitecture& architecture) {
  const bool any_system =
      record.system == ELFOSABI_NONE || record.system == ELFOSABI_GNU || record.system == ELFOSABI_STANDALONE;
  return record.machine == architecture.machine && any_system && record.word_size == kWord64 &&
         record.byte_order == kLittleEndian;
}

}  // namespace

Result<FileBytes> choose_from_fat_elf(FileBytes file, const ElfArchitecture& architecture) {
  if (read_at<uint32_t>(file, 0) != kMagic) return file;
  const auto header = read_at<Header>(file, 0);
  if (!header || header->version != kVersion)
    return broken_elf("expected a FatELF container of version {1}, found version {0}",
                      header ? header->version : 0, kVersion);
  for (uint64_t i = 0; i < header->record_count; ++i) {
    const auto record = read_at<Record>(file, sizeof(Header) + i * sizeof(Record));
    if (!record)
      return broken_elf("the FatELF container ends before record {} of {}", i, header->record_count);
    if (!fits(*record, architecture)) continue;
    const auto library = part(file, record->offset, record->size);
    if (!library)
      return broken_elf("a FatELF container of {} bytes, with a library of {} bytes at offset {}",
                        file.size(), record->size, record->offset);
    return *library;
  }
  return fail(Code::INCOMPATIBLE,
              "the FatELF container holds {} libraries, but none for {}; compile for that architecture, too",
              header->record_count, architecture.name);
}

}  // namespace halyard::local
