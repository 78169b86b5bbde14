// Reads ELF headers and segments.
#include "elf_file.h"

#include <elf.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "elf_dynamic.h"

namespace halyard::local {

namespace {

// Much larger than the images of compilers; a larger image is damaged.
constexpr uint64_t kMaxImage = uint64_t{1} << 31;  // bytes
constexpr uint64_t kMaxAlignment = uint64_t{1} << 21;

Result<Elf64_Ehdr> read_header(FileBytes file, const ElfArchitecture& architecture) {
  const auto header = read_at<Elf64_Ehdr>(file, 0);
  if (!header) return broken_elf("it has {} bytes, an ELF header has {}", file.size(), sizeof(Elf64_Ehdr));
  if (std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0)
    return broken_elf("expected the magic number of ELF files at its start");
  if (header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_ident[EI_DATA] != ELFDATA2LSB)
    return broken_elf("expected 64-bit and little-endian (class {}, data {}), found class {}, data {}",
                      ELFCLASS64, ELFDATA2LSB, header->e_ident[EI_CLASS], header->e_ident[EI_DATA]);
  if (header->e_ident[EI_VERSION] != EV_CURRENT || header->e_version != EV_CURRENT)
    return broken_elf("expected ELF version {}, found {}", EV_CURRENT, header->e_version);
  if (header->e_type != ET_DYN)
    return broken_elf("expected a shared object (type {}), found type {}", ET_DYN, header->e_type);
  if (header->e_machine != architecture.machine)
    return broken_elf(
        "expected code for {} (machine {}), found code for {} (machine {}); compile it for this processor",
        architecture.name, architecture.machine, architecture_name(header->e_machine), header->e_machine);
  return *header;
}

// Reads the program headers. The section headers must exist but are not read.
Result<FileBytes> read_tables(FileBytes file, const Elf64_Ehdr& header) {
  if (header.e_ehsize != sizeof(Elf64_Ehdr) || header.e_phentsize != sizeof(Elf64_Phdr) ||
      header.e_shentsize != sizeof(Elf64_Shdr))
    return broken_elf("expected headers of {}, {} and {} bytes, found {}, {} and {}", sizeof(Elf64_Ehdr),
                      sizeof(Elf64_Phdr), sizeof(Elf64_Shdr), header.e_ehsize, header.e_phentsize,
                      header.e_shentsize);
  const auto programs = part(file, header.e_phoff, uint64_t{header.e_phnum} * sizeof(Elf64_Phdr));
  if (!programs || header.e_phnum == 0 || header.e_phnum == PN_XNUM)
    return broken_elf("expected one or more program headers within its {} bytes, found {} at offset {}",
                      file.size(), header.e_phnum, header.e_phoff);
  if (header.e_shnum == 0 || !part(file, header.e_shoff, uint64_t{header.e_shnum} * sizeof(Elf64_Shdr)))
    return broken_elf("expected one or more section headers within its {} bytes, found {} at offset {}",
                      file.size(), header.e_shnum, header.e_shoff);
  return *programs;
}

Result<> add_segment(FileBytes file, const Elf64_Phdr& header, ElfImage& image) {
  if (header.p_memsz == 0) return {};
  const ElfSegment segment = {header.p_vaddr,
                              header.p_memsz,
                              header.p_offset,
                              header.p_filesz,
                              (header.p_flags & PF_W) != 0,
                              (header.p_flags & PF_X) != 0};
  if (segment.file_size > segment.memory_size || !part(file, segment.file_offset, segment.file_size))
    return broken_elf("a segment of {} bytes in memory has {} bytes at offset {} of a file of {} bytes",
                      segment.memory_size, segment.file_size, segment.file_offset, file.size());
  const uint64_t alignment = std::max<uint64_t>(header.p_align, 1);
  if (!std::has_single_bit(alignment) || alignment > kMaxAlignment ||
      (segment.address - segment.file_offset) % alignment != 0)
    return broken_elf("a segment at address {:#x}, offset {:#x}, is aligned to {:#x}", segment.address,
                      segment.file_offset, alignment);
  // The first segment may have any address; the others must be near it.
  const uint64_t first = image.segments.empty() ? segment.address : image.segments.front().address;
  uint64_t end = 0;
  if (__builtin_add_overflow(segment.address, segment.memory_size, &end) || segment.address < first ||
      end - first > kMaxImage || end > UINT64_MAX - kMaxImage)
    return broken_elf("a segment of {} bytes at address {:#x}, where the first one starts at {:#x}",
                      segment.memory_size, segment.address, first);
  if (!image.segments.empty() &&
      segment.address / image.page <= (image.segments.back().end() - 1) / image.page)
    return broken_elf(
        "the segment at address {:#x} shares a page with the previous segment, which ends at {:#x}",
        segment.address, image.segments.back().end());
  if (segment.writable && segment.executable)
    return fail(Code::PERMISSION_DENIED,
                "the ELF library has a segment (address {:#x}) that is both writable and executable; link it "
                "without -z wxneeded and without writable code",
                segment.address);
  image.alignment = std::max(image.alignment, alignment);
  image.segments.push_back(segment);
  return {};
}

Result<> set_read_only(const Elf64_Phdr& header, ElfImage& image) {
  if (header.p_memsz == 0) return {};
  if (image.read_only_later.size != 0) return broken_elf("it has two PT_GNU_RELRO headers");
  uint64_t end = 0;
  const bool inside = !__builtin_add_overflow(header.p_vaddr, header.p_memsz, &end) &&
                      std::ranges::any_of(image.segments, [&](const ElfSegment& segment) {
                        return segment.writable && header.p_vaddr >= segment.address &&
                               end <= (segment.end() + image.page - 1) / image.page * image.page;
                      });
  if (!inside)
    return broken_elf("PT_GNU_RELRO, {} bytes at address {:#x}, is not within a writable segment",
                      header.p_memsz, header.p_vaddr);
  // The last page stays writable if it extends beyond the range, as the linker intends.
  const uint64_t first = header.p_vaddr / image.page * image.page;
  image.read_only_later = {first, end / image.page * image.page - first};
  return {};
}

// The processor levels that a note requires; 0 if it has no known property.
uint32_t levels_of_note(FileBytes note) {
  constexpr uint32_t kIsaNeeded = 0xC0008002;  // GNU_PROPERTY_X86_ISA_1_NEEDED
  const auto header = read_at<Elf64_Nhdr>(note, 0);
  if (!header || header->n_type != NT_GNU_PROPERTY_TYPE_0 || header->n_namesz != 4) return 0;
  const auto name = read_at<uint32_t>(note, sizeof *header);
  const auto properties = part(note, sizeof *header + 4, header->n_descsz);
  if (!name || std::memcmp(&*name, ELF_NOTE_GNU, 4) != 0 || !properties) return 0;
  for (uint64_t at = 0; at < properties->size();) {
    const auto type = read_at<uint32_t>(*properties, at);
    const auto size = read_at<uint32_t>(*properties, at + 4);
    if (!type || !size) return 0;
    const auto value = read_at<uint32_t>(*properties, at + 8);
    if (*type == kIsaNeeded) return value && *size == sizeof *value ? *value : 0;
    at += 8 + (uint64_t{*size} + 7) / 8 * 8;
  }
  return 0;
}

}  // namespace

Result<ElfImage> read_elf(FileBytes file, const ElfArchitecture& architecture, uint64_t page) {
  const Elf64_Ehdr header = HALYARD_TRY(read_header(file, architecture));
  const FileBytes programs = HALYARD_TRY(read_tables(file, header));
  ElfImage image;
  image.page = page;
  image.alignment = page;
  for (uint32_t i = 0; i < header.e_phnum; ++i) {
    const auto program = element<Elf64_Phdr>(programs, i);
    if (program.p_type == PT_LOAD) HALYARD_TRY(add_segment(file, program, image));
  }
  if (image.segments.empty()) return broken_elf("it has no PT_LOAD header, so there is nothing to load");
  image.begin = image.segments.front().address / image.alignment * image.alignment;
  image.size = (image.segments.back().end() - image.begin + page - 1) / page * page;

  const Elf64_Phdr* dynamic = nullptr;
  Elf64_Phdr program = {};
  for (uint32_t i = 0; i < header.e_phnum; ++i) {
    const auto each = element<Elf64_Phdr>(programs, i);
    if (each.p_type == PT_GNU_RELRO) HALYARD_TRY(set_read_only(each, image));
    if (each.p_type != PT_DYNAMIC) continue;
    if (dynamic) return broken_elf("it has two PT_DYNAMIC headers");
    program = each;
    dynamic = &program;
  }
  if (!dynamic) return broken_elf("it has no PT_DYNAMIC header, so its symbols cannot be found");
  HALYARD_TRY(read_dynamic(file, architecture, {dynamic->p_vaddr, dynamic->p_filesz}, image));
  image.needed_levels = needed_processor_levels(file, architecture);
  return image;
}

Result<> check_elf_header(FileBytes file, const ElfArchitecture& architecture) {
  HALYARD_TRY(read_header(file, architecture));
  return {};
}

uint32_t needed_processor_levels(FileBytes file, const ElfArchitecture& architecture) {
  const Result<Elf64_Ehdr> header = read_header(file, architecture);
  if (!header || architecture.machine != EM_X86_64 || header->e_phentsize != sizeof(Elf64_Phdr)) return 0;
  for (uint64_t i = 0; i < header->e_phnum; ++i) {
    uint64_t offset = 0;
    if (__builtin_add_overflow(header->e_phoff, i * sizeof(Elf64_Phdr), &offset)) return 0;
    const auto program = read_at<Elf64_Phdr>(file, offset);
    if (!program) return 0;
    if (program->p_type != PT_GNU_PROPERTY) continue;
    const auto note = part(file, program->p_offset, program->p_filesz);
    return note ? levels_of_note(*note) : 0;
  }
  return 0;
}

}  // namespace halyard::local
