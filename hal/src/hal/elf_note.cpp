// Walks ELF header, program headers and notes; every offset is checked against the file's size before it is
// used.
#include "hal/elf_note.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <string_view>

namespace halyard::hal {

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

// The T at `offset`, if the bytes hold all of it.
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

std::unexpected<Status> damaged(const std::string& path, std::string_view what) {
  return fail(Code::INVALID_ARGUMENT, "driver '{}' is damaged: {}; install it again", path, what);
}

Result<Elf64_Ehdr> read_header(std::span<const uint8_t> file, const std::string& path) {
  const auto identity = slice(file, 0, EI_NIDENT);
  if (!identity || std::memcmp(identity->data(), ELFMAG, SELFMAG) != 0)
    return fail(Code::INVALID_ARGUMENT,
                "'{}' is not a shared library (no ELF file); expected a Halyard driver", path);
  if ((*identity)[EI_CLASS] != ELFCLASS64)
    return fail(Code::INVALID_ARGUMENT, "'{}' is not a library of 64 bits; expected one for {}", path,
                machine_name(kMachine));
  if ((*identity)[EI_DATA] != ELFDATA2LSB)
    return fail(Code::INCOMPATIBLE, "'{}' is for a big-endian machine; this one is {}", path,
                machine_name(kMachine));
  const auto header = read_at<Elf64_Ehdr>(file, 0);
  if (!header) return damaged(path, "the file ends within its header");
  if (header->e_machine != kMachine)
    return fail(Code::INCOMPATIBLE, "'{}' is for {}, this machine is {}; install the driver for this machine",
                path, machine_name(header->e_machine), machine_name(kMachine));
  if (header->e_type != ET_DYN)
    return fail(Code::INVALID_ARGUMENT,
                "'{}' is an ELF file, but not a shared library; expected a Halyard driver", path);
  return *header;
}

uint64_t padded(uint64_t size, uint64_t alignment) { return (size + alignment - 1) / alignment * alignment; }

// What the notes of one segment say. Notes of others are passed over.
struct Search {
  std::optional<halyard_driver_note_t> note;
  std::optional<uint32_t> later_type;  // a note of this project that this version does not know
};
Result<> search_notes(std::span<const uint8_t> notes, uint64_t alignment, const std::string& path,
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
    if (ours && !description) return damaged(path, "its note reaches beyond its segment");
    if (!owner || !description) return {};  // somebody else's damage; what follows it cannot be found
    at = description_at + padded(header.n_descsz, alignment);
    if (!ours) continue;
    if (header.n_type != HALYARD_NOTE_TYPE) {
      search.later_type = header.n_type;
      continue;
    }
    search.note = read_at<halyard_driver_note_t>(*description, 0);
    if (!search.note)
      return damaged(path, fmt::format("its note has {} bytes, expected {}", description->size(),
                                       sizeof(halyard_driver_note_t)));
    return {};
  }
  return {};
}

}  // namespace

Result<halyard_driver_note_t> find_driver_note(std::span<const uint8_t> file, const std::string& path) {
  const Elf64_Ehdr header = HALYARD_TRY(read_header(file, path));
  if (header.e_phnum != 0 && header.e_phentsize < sizeof(Elf64_Phdr))
    return damaged(path, "its program headers are too short");
  constexpr uint64_t kMostNoteBytes = 1 << 20;  // so that a forged file cannot keep the reader busy
  uint64_t note_bytes = 0;
  Search search;
  for (uint64_t i = 0; i < header.e_phnum; ++i) {
    uint64_t at = 0;
    if (__builtin_add_overflow(header.e_phoff, i * header.e_phentsize, &at))
      return damaged(path, "its program headers lie outside of the file");
    const auto segment = read_at<Elf64_Phdr>(file, at);
    if (!segment) return damaged(path, "its program headers lie outside of the file");
    // The loader of the system would map what is not there, and die of touching it.
    if (segment->p_type == PT_LOAD && !slice(file, segment->p_offset, segment->p_filesz))
      return damaged(path, "it is cut short: a segment reaches beyond its end");
    if (segment->p_type != PT_NOTE || search.note) continue;
    const auto notes = slice(file, segment->p_offset, segment->p_filesz);
    if (!notes) return damaged(path, "its notes lie outside of the file");
    note_bytes += notes->size();
    if (note_bytes > kMostNoteBytes) return damaged(path, "its notes are longer than any driver's");
    HALYARD_TRY(search_notes(*notes, segment->p_align == 8 ? 8 : 4, path, search));
  }
  if (search.note) return *search.note;
  if (search.later_type)
    return fail(Code::INCOMPATIBLE,
                "driver '{}' has a note of type {}, this Halyard knows type {}; it needs a newer Halyard",
                path, *search.later_type, HALYARD_NOTE_TYPE);
  return fail(Code::NOT_FOUND,
              "'{}' is not a Halyard driver: it has no note of owner '{}'; a driver states one with "
              "HALYARD_DRIVER_NOTE (halyard/driver.h)",
              path, HALYARD_NOTE_OWNER);
}

}  // namespace halyard::hal
