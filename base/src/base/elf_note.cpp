// Walks ELF header, program headers and notes; every offset is checked against the file's size before it is
// used.
#include "base/elf_note.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <string_view>

#include "halyard/abi.h"

namespace halyard {

namespace {

#if defined(__x86_64__)
constexpr uint16_t kMachine = EM_X86_64;
#elif defined(__aarch64__)
constexpr uint16_t kMachine = EM_AARCH64;
#elif defined(__riscv)
constexpr uint16_t kMachine = EM_RISCV;
#else
#error "Name the ELF machine of this processor here"
#endif

std::string machine_name(uint16_t machine) {
  static constexpr std::pair<uint16_t, std::string_view> kNames[] = {
      {EM_386, "x86_32"},  {EM_X86_64, "x86_64"}, {EM_ARM, "arm_32"}, {EM_AARCH64, "arm_64"},
      {EM_RISCV, "riscv"}, {EM_PPC64, "ppc_64"},  {EM_S390, "s390"},  {EM_LOONGARCH, "loongarch"},
  };
  for (const auto& [number, name] : kNames) {
    if (number == machine) return std::string(name);
  }
  return fmt::format("ELF machine {}", machine);
}

// Reads a T at `offset`; no value if it extends past the bytes.
template <typename T>
std::optional<T> read_at(std::span<const uint8_t> bytes, uint64_t offset) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) return std::nullopt;
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

std::optional<std::span<const uint8_t>> slice(std::span<const uint8_t> bytes, uint64_t offset,
                                              uint64_t size) {
  if (offset > bytes.size() || size > bytes.size() - offset) return std::nullopt;
  return bytes.subspan(offset, size);
}

// A file and its expected kind.
struct Candidate {
  std::span<const uint8_t> file;
  const std::string& path;
  const PluginKind& kind;

  std::unexpected<Status> damaged(std::string_view how) const {
    return fail(Code::INVALID_ARGUMENT, "{} '{}' is damaged: {}; install it again", kind.what, path, how);
  }
};

Result<Elf64_Ehdr> read_header(const Candidate& candidate) {
  const auto& [file, path, kind] = candidate;
  const auto identity = slice(file, 0, EI_NIDENT);
  if (!identity || std::memcmp(identity->data(), ELFMAG, SELFMAG) != 0)
    return fail(Code::INVALID_ARGUMENT, "'{}' is not a shared library (no ELF file); expected a Halyard {}",
                path, kind.what);
  if ((*identity)[EI_CLASS] != ELFCLASS64)
    return fail(Code::INVALID_ARGUMENT, "'{}' is not a 64-bit library; expected one for {}", path,
                machine_name(kMachine));
  if ((*identity)[EI_DATA] != ELFDATA2LSB)
    return fail(Code::INCOMPATIBLE, "'{}' is for a big-endian machine; this one is {}", path,
                machine_name(kMachine));
  const auto header = read_at<Elf64_Ehdr>(file, 0);
  if (!header) return candidate.damaged("the file ends within its header");
  if (header->e_machine != kMachine)
    return fail(Code::INCOMPATIBLE, "'{}' is for {}, this machine is {}; install the {} for this machine",
                path, machine_name(header->e_machine), machine_name(kMachine), kind.what);
  if (header->e_type != ET_DYN)
    return fail(Code::INVALID_ARGUMENT,
                "'{}' is an ELF file, but not a shared library; expected a Halyard {}", path, kind.what);
  return *header;
}

uint64_t padded(uint64_t size, uint64_t alignment) { return (size + alignment - 1) / alignment * alignment; }

// The name for plugins of a note type; null for an unknown type.
const char* other_kind(uint32_t type) {
  switch (type) {
    case HALYARD_NOTE_TYPE_DRIVER:
      return "driver";
    case HALYARD_NOTE_TYPE_MODULE:
      return "native module";
    default:
      return nullptr;
  }
}

// Reads the notes of one segment. Skips notes of other owners.
struct Search {
  std::optional<std::span<const uint8_t>> note;
  std::optional<uint32_t> other_type;  // a note of this project, but not of the expected type
};
Result<> search_notes(const Candidate& candidate, std::span<const uint8_t> notes, uint64_t alignment,
                      Search& search) {
  uint64_t at = 0;
  while (at < notes.size() && notes.size() - at >= sizeof(Elf64_Nhdr)) {
    const auto header = *read_at<Elf64_Nhdr>(notes, at);
    const uint64_t owner_at = at + sizeof header;
    const uint64_t description_at = at + padded(sizeof header + header.n_namesz, alignment);
    const auto owner = slice(notes, owner_at, header.n_namesz);
    const auto description = slice(notes, description_at, header.n_descsz);
    constexpr std::string_view kOwner(HALYARD_NOTE_OWNER, sizeof HALYARD_NOTE_OWNER);
    const bool ours = owner && std::ranges::equal(*owner, kOwner);
    if (ours && !description) return candidate.damaged("its note reaches beyond its segment");
    if (!owner || !description) return {};  // a damaged note of another owner; later ones cannot be found
    at = description_at + padded(header.n_descsz, alignment);
    if (!ours) continue;
    if (header.n_type != candidate.kind.note_type) {
      search.other_type = header.n_type;
      continue;
    }
    if (description->size() < candidate.kind.note_size)
      return candidate.damaged(
          fmt::format("its note has {} bytes, expected {}", description->size(), candidate.kind.note_size));
    search.note = description->first(candidate.kind.note_size);
    return {};
  }
  return {};
}

}  // namespace

Result<std::span<const uint8_t>> find_note(std::span<const uint8_t> file, const std::string& path,
                                           const PluginKind& kind) {
  const Candidate candidate{file, path, kind};
  const Elf64_Ehdr header = HALYARD_TRY(read_header(candidate));
  if (header.e_phnum != 0 && header.e_phentsize < sizeof(Elf64_Phdr))
    return candidate.damaged("its program headers are too short");
  constexpr uint64_t kMaxNoteBytes = 1 << 20;  // bounds the time that a forged file takes
  uint64_t note_bytes = 0;
  Search search;
  for (uint64_t i = 0; i < header.e_phnum; ++i) {
    uint64_t at = 0;
    if (__builtin_add_overflow(header.e_phoff, i * header.e_phentsize, &at))
      return candidate.damaged("its program headers lie outside of the file");
    const auto segment = read_at<Elf64_Phdr>(file, at);
    if (!segment) return candidate.damaged("its program headers lie outside of the file");
    // The system's loader would map past the end of the file and crash when it accesses the pages.
    if (segment->p_type == PT_LOAD && !slice(file, segment->p_offset, segment->p_filesz))
      return candidate.damaged("it is cut short: a segment reaches beyond its end");
    if (segment->p_type != PT_NOTE || search.note) continue;
    const auto notes = slice(file, segment->p_offset, segment->p_filesz);
    if (!notes) return candidate.damaged("its notes lie outside of the file");
    note_bytes += notes->size();
    if (note_bytes > kMaxNoteBytes)
      return candidate.damaged(fmt::format("its notes are longer than any {}'s", kind.what));
    HALYARD_TRY(search_notes(candidate, *notes, segment->p_align == 8 ? 8 : 4, search));
  }
  if (search.note) return *search.note;
  if (search.other_type) {
    if (const char* const other = other_kind(*search.other_type))
      return fail(Code::INVALID_ARGUMENT, "'{}' is a Halyard {}; expected a {}", path, other, kind.what);
    return fail(Code::INCOMPATIBLE,
                "{} '{}' has a note of type {}, this Halyard supports type {}; install a newer Halyard",
                kind.what, path, *search.other_type, kind.note_type);
  }
  return fail(Code::NOT_FOUND,
              "'{}' is not a Halyard {}: it has no note of owner '{}'; a {} states one with {}", path,
              kind.what, HALYARD_NOTE_OWNER, kind.what, kind.note_macro);
}

std::string find_build_id(std::span<const uint8_t> file) {
  const auto header = read_at<Elf64_Ehdr>(file, 0);
  for (uint64_t i = 0; header && i < header->e_phnum; ++i) {
    const auto segment = read_at<Elf64_Phdr>(file, header->e_phoff + i * sizeof(Elf64_Phdr));
    if (!segment || segment->p_type != PT_NOTE) continue;
    const auto notes = slice(file, segment->p_offset, segment->p_filesz);
    for (uint64_t at = 0; notes;) {
      const auto note = read_at<Elf64_Nhdr>(*notes, at);
      if (!note) break;
      const uint64_t description_at = at + sizeof *note + padded(note->n_namesz, 4);
      const auto description = slice(*notes, description_at, note->n_descsz);
      if (!description) break;
      if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == sizeof ELF_NOTE_GNU)
        return {description->begin(), description->end()};
      at = description_at + padded(note->n_descsz, 4);
    }
  }
  return {};
}

}  // namespace halyard
