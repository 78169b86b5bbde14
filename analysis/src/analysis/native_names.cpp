// Vulkan: entry points of the pipelines in the FlatBuffer. ELF: the library's record of its exports, which is
// found by its relocations, so that no code of the library runs. Specified by exec-cpu-library.md, section 5.
#include "analysis/native_names.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <string_view>

#include "vulkan_executable_generated.h"

namespace halyard::analysis {

namespace {

constexpr size_t kMaxNames = 65'536;
constexpr size_t kMaxName = 512;

template <typename T>
std::optional<T> read(std::span<const uint8_t> bytes, uint64_t at) {
  if (at > bytes.size() || bytes.size() - at < sizeof(T)) return std::nullopt;
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

// An embedded library: memory addresses with the bytes of the file, and what its relocations store there.
class ElfLibrary {
 public:
  explicit ElfLibrary(std::span<const uint8_t> file) : file_(file) {}

  std::vector<std::string> names() {
    if (!read_headers()) return {};
    for (const auto& [place, target] : pointers_) {
      std::vector<std::string> found = names_of(place, target);
      if (!found.empty()) return found;
    }
    return {};
  }

 private:
  bool read_headers() {
    const auto header = read<Elf64_Ehdr>(file_, 0);
    if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
        header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_ident[EI_DATA] != ELFDATA2LSB)
      return false;
    std::optional<Elf64_Phdr> dynamic;
    for (uint32_t i = 0; i < header->e_phnum; ++i) {
      const auto segment = read<Elf64_Phdr>(file_, header->e_phoff + uint64_t{i} * sizeof(Elf64_Phdr));
      if (!segment) return false;
      if (segment->p_type == PT_LOAD) segments_.push_back(*segment);
      if (segment->p_type == PT_DYNAMIC) dynamic = segment;
    }
    if (!dynamic) return false;
    uint64_t table = 0;
    uint64_t bytes = 0;
    for (uint64_t at = 0; at < dynamic->p_filesz; at += sizeof(Elf64_Dyn)) {
      const auto entry = read<Elf64_Dyn>(file_, dynamic->p_offset + at);
      if (!entry || entry->d_tag == DT_NULL) break;
      if (entry->d_tag == DT_RELA) table = entry->d_un.d_ptr;
      if (entry->d_tag == DT_RELASZ) bytes = entry->d_un.d_val;
    }
    for (uint64_t at = 0; at + sizeof(Elf64_Rela) <= bytes && pointers_.size() < 16 * kMaxNames;
         at += sizeof(Elf64_Rela)) {
      const auto relocation = load<Elf64_Rela>(table + at);
      if (!relocation) break;
      // The base-relative kind of every processor has no symbol.
      if (ELF64_R_SYM(relocation->r_info) == 0)
        pointers_[relocation->r_offset] = static_cast<uint64_t>(relocation->r_addend);
    }
    return true;
  }

  std::optional<std::span<const uint8_t>> at(uint64_t address) const {
    for (const Elf64_Phdr& segment : segments_) {
      if (address < segment.p_vaddr || address - segment.p_vaddr >= segment.p_filesz) continue;
      const uint64_t within = address - segment.p_vaddr;
      if (segment.p_offset > file_.size() || file_.size() - segment.p_offset < segment.p_filesz) return {};
      return file_.subspan(segment.p_offset + within, segment.p_filesz - within);
    }
    return {};
  }

  template <typename T>
  std::optional<T> load(uint64_t address) const {
    const auto bytes = at(address);
    return bytes ? read<T>(*bytes, 0) : std::nullopt;
  }

  std::optional<std::string> text(uint64_t address) const {
    const auto bytes = at(address);
    if (!bytes) return std::nullopt;
    const auto end = std::find(bytes->begin(), bytes->end(), uint8_t{0});
    const auto size = static_cast<size_t>(end - bytes->begin());
    if (end == bytes->end() || size == 0) return std::nullopt;
    return std::string(reinterpret_cast<const char*>(bytes->data()), std::min(size, kMaxName));
  }

  std::optional<uint64_t> pointer(uint64_t place) const {
    const auto found = pointers_.find(place);
    if (found == pointers_.end()) return std::nullopt;
    return found->second;
  }

  // `place` is the library's record if its first pointer leads to a header, and pointers to functions,
  // attributes and names stand where the revision has them.
  std::vector<std::string> names_of(uint64_t place, uint64_t header) const {
    constexpr uint64_t kNameOfHeader = 8;
    constexpr uint64_t kCount = 24;
    constexpr uint64_t kFunctions = 32;
    constexpr uint64_t kAttributes = 40;
    const auto revision = load<uint32_t>(header);
    if (!revision || *revision < 1 || *revision > 16) return {};
    const auto name = pointer(header + kNameOfHeader);
    const auto count = load<uint32_t>(place + kCount);
    if (!name || !text(*name) || !count || *count == 0 || *count > kMaxNames ||
        !pointer(place + kFunctions) || !pointer(place + kAttributes))
      return {};
    const auto table = pointer(place + (*revision >= 6 ? 64 : 48));
    if (!table) return {};
    std::vector<std::string> names;
    for (uint64_t i = 0; i < *count; ++i) {
      const auto at = pointer(*table + 8 * i);
      auto found = at ? text(*at) : std::nullopt;
      if (!found) return {};
      names.push_back(*std::move(found));
    }
    return names;
  }

  std::span<const uint8_t> file_;
  std::vector<Elf64_Phdr> segments_;
  std::map<uint64_t, uint64_t> pointers_;
};

std::vector<std::string> vulkan_names(std::span<const uint8_t> bytes) {
  constexpr std::string_view kIdentifier = "VKE1";
  // Since 3.10 the FlatBuffer follows a header of 64 bytes, which begins with the identifier.
  const auto begins_at = [&](size_t at) {
    return bytes.size() >= at + kIdentifier.size() &&
           std::memcmp(bytes.data() + at, kIdentifier.data(), kIdentifier.size()) == 0;
  };
  constexpr size_t kHeader = 64;
  if (begins_at(0) && bytes.size() > kHeader) {
    bytes = bytes.subspan(kHeader);
  } else if (!begins_at(4)) {
    return {};
  }
  std::vector<uint8_t> aligned(bytes.begin(), bytes.end());
  flatbuffers::Verifier verifier(aligned.data(), aligned.size());
  if (!verifier.VerifyBuffer<vulkan::format::Executable>(nullptr)) return {};
  const auto* executable = flatbuffers::GetRoot<vulkan::format::Executable>(aligned.data());
  std::vector<std::string> names;
  if (!executable->pipelines() || executable->pipelines()->size() > kMaxNames) return {};
  for (const auto* pipeline : *executable->pipelines()) {
    const flatbuffers::String* name = pipeline->entry_point();
    if (const auto* info = pipeline->export_info(); info && info->name()) name = info->name();
    names.push_back(name ? name->str().substr(0, kMaxName) : std::string());
  }
  return names;
}

}  // namespace

std::vector<std::string> native_names(std::span<const uint8_t> bytes) {
  std::vector<std::string> names = vulkan_names(bytes);
  return names.empty() ? ElfLibrary(bytes).names() : names;
}

}  // namespace halyard::analysis
