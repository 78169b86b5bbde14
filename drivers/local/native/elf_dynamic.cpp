// Reads the dynamic table and the tables that it refers to, all within the file's bytes of the segments.
#include "elf_dynamic.h"

#include <elf.h>

#include <algorithm>
#include <iterator>

namespace halyard::local {

namespace {

// Entries by tag; nullopt if the table has no such entry.
struct Dynamic {
  std::optional<uint64_t> strtab, strsz, symtab, syment, hash;
  std::optional<uint64_t> rela, relasz, relaent, jmprel, pltrelsz, pltrel;
  std::optional<uint64_t> init, init_array, init_arraysz;
  std::optional<uint64_t> rel, relr;
};

struct Entry {
  int64_t tag;
  std::optional<uint64_t> Dynamic::* value;
  const char* name;
};
constexpr int64_t kRelr = 36;  // DT_RELR
constexpr Entry kEntries[] = {
    {DT_STRTAB, &Dynamic::strtab, "DT_STRTAB"},
    {DT_STRSZ, &Dynamic::strsz, "DT_STRSZ"},
    {DT_SYMTAB, &Dynamic::symtab, "DT_SYMTAB"},
    {DT_SYMENT, &Dynamic::syment, "DT_SYMENT"},
    {DT_HASH, &Dynamic::hash, "DT_HASH"},
    {DT_RELA, &Dynamic::rela, "DT_RELA"},
    {DT_RELASZ, &Dynamic::relasz, "DT_RELASZ"},
    {DT_RELAENT, &Dynamic::relaent, "DT_RELAENT"},
    {DT_JMPREL, &Dynamic::jmprel, "DT_JMPREL"},
    {DT_PLTRELSZ, &Dynamic::pltrelsz, "DT_PLTRELSZ"},
    {DT_PLTREL, &Dynamic::pltrel, "DT_PLTREL"},
    {DT_INIT, &Dynamic::init, "DT_INIT"},
    {DT_INIT_ARRAY, &Dynamic::init_array, "DT_INIT_ARRAY"},
    {DT_INIT_ARRAYSZ, &Dynamic::init_arraysz, "DT_INIT_ARRAYSZ"},
    {DT_REL, &Dynamic::rel, "DT_REL"},
    {kRelr, &Dynamic::relr, "DT_RELR"},
};
// Symbols cannot be found without these.
constexpr int64_t kRequired[] = {DT_STRTAB, DT_STRSZ, DT_SYMTAB, DT_SYMENT, DT_HASH};

struct Symbol {
  uint64_t value = 0;
  bool moves = false;  // moves with the image
};

class Reader {
 public:
  Reader(FileBytes file, const ElfArchitecture& architecture, ElfImage& image)
      : file_(file), architecture_(architecture), image_(image) {}

  Result<> read(ElfRange table) {
    HALYARD_TRY(read_table(table));
    HALYARD_TRY(read_strings());
    HALYARD_TRY(read_symbols());
    HALYARD_TRY(read_relocations());
    return read_initializers();
  }

 private:
  // The bytes of the file at an address.
  Result<FileBytes> bytes_at(uint64_t address, uint64_t size, const char* what) const {
    for (const ElfSegment& segment : image_.segments) {
      if (address < segment.address || address - segment.address > segment.file_size) continue;
      const uint64_t offset = address - segment.address;
      if (size <= segment.file_size - offset) return *part(file_, segment.file_offset + offset, size);
    }
    return broken_elf("{} ({} bytes at address {:#x}) is not within the segments' bytes in the file", what,
                      size, address);
  }

  Result<> read_table(ElfRange table) {
    const FileBytes entries = HALYARD_TRY(bytes_at(table.address, table.size, "the dynamic table"));
    bool ends = false;
    for (uint64_t i = 0; !ends && (i + 1) * sizeof(Elf64_Dyn) <= entries.size(); ++i) {
      const auto entry = element<Elf64_Dyn>(entries, i);
      ends = entry.d_tag == DT_NULL;
      const auto* known = std::ranges::find(kEntries, entry.d_tag, &Entry::tag);
      if (known == std::end(kEntries)) continue;
      std::optional<uint64_t>& value = dynamic_.*known->value;
      if (value) return broken_elf("its dynamic table has {} twice", known->name);
      value = entry.d_un.d_val;
    }
    if (!ends) return broken_elf("its dynamic table of {} bytes has no end (DT_NULL)", table.size);
    for (const int64_t tag : kRequired) {
      const Entry& entry = *std::ranges::find(kEntries, tag, &Entry::tag);
      if (dynamic_.*entry.value) continue;
      return broken_elf(
          "its dynamic table has no {}{}", entry.name,
          tag == DT_HASH ? "; link it with --hash-style=sysv, or run it as a system library" : "");
    }
    return {};
  }

  Result<> read_strings() {
    strings_ = HALYARD_TRY(bytes_at(*dynamic_.strtab, *dynamic_.strsz, "DT_STRTAB"));
    if (strings_.empty() || strings_.back() != 0)
      return broken_elf("its string table does not end with a zero");
    return {};
  }

  // The string table ends with a zero, so every name in it is terminated.
  Result<std::string_view> string(uint32_t offset) const {
    if (offset >= strings_.size())
      return broken_elf("a name at offset {} of a string table of {} bytes", offset, strings_.size());
    return std::string_view(reinterpret_cast<const char*>(strings_.data()) + offset);
  }

  // Only the hash table contains the number of symbols.
  Result<uint32_t> symbol_count() const {
    const FileBytes counts = HALYARD_TRY(bytes_at(*dynamic_.hash, 8, "DT_HASH"));
    const auto buckets = element<uint32_t>(counts, 0);
    const auto chains = element<uint32_t>(counts, 1);
    HALYARD_TRY(bytes_at(*dynamic_.hash, (2 + uint64_t{buckets} + chains) * 4, "DT_HASH"));
    return chains;
  }

  Result<> read_symbols() {
    const uint32_t count = HALYARD_TRY(symbol_count());
    if (*dynamic_.syment != sizeof(Elf64_Sym))
      return broken_elf("its symbols have {} bytes, expected {}", *dynamic_.syment, sizeof(Elf64_Sym));
    const FileBytes table =
        HALYARD_TRY(bytes_at(*dynamic_.symtab, uint64_t{count} * sizeof(Elf64_Sym), "DT_SYMTAB"));
    symbols_.resize(count);
    for (uint32_t i = 1; i < count; ++i) HALYARD_TRY(read_symbol(element<Elf64_Sym>(table, i), symbols_[i]));
    return {};
  }

  Result<> read_symbol(const Elf64_Sym& from, Symbol& to) {
    const std::string_view name = HALYARD_TRY(string(from.st_name));
    if (from.st_shndx == SHN_UNDEF)
      return fail(Code::UNAVAILABLE,
                  "the ELF library needs the external symbol '{}'; embedded libraries must be self-contained",
                  name);
    const uint32_t type = ELF64_ST_TYPE(from.st_info);
    if (type == STT_TLS || type == STT_GNU_IFUNC || from.st_shndx == SHN_COMMON)
      return fail(Code::UNIMPLEMENTED,
                  "symbol '{}' of the ELF library is {}, which embedded libraries cannot have", name,
                  type == STT_TLS         ? "thread-local"
                  : type == STT_GNU_IFUNC ? "an indirect function"
                                          : "common memory without an address");
    to.value = from.st_value;
    to.moves = from.st_shndx != SHN_ABS;
    if (!to.moves) return {};
    if (to.value < image_.begin || to.value - image_.begin > image_.size)
      return broken_elf("symbol '{}' at address {:#x} is not within its segments", name, to.value);
    const uint32_t binding = ELF64_ST_BIND(from.st_info);
    if (binding == STB_GLOBAL || binding == STB_WEAK) image_.exports.push_back({name, to.value});
    return {};
  }

  Result<> read_relocations() {
    if (dynamic_.rel || dynamic_.relr)
      return fail(Code::UNIMPLEMENTED,
                  "the ELF library has relocations of the form {}, expected DT_RELA; link it without packed "
                  "relocations",
                  dynamic_.rel ? "DT_REL" : "DT_RELR");
    if (dynamic_.rela) {
      if (dynamic_.relaent.value_or(sizeof(Elf64_Rela)) != sizeof(Elf64_Rela))
        return broken_elf("its relocations have {} bytes, expected {}", *dynamic_.relaent,
                          sizeof(Elf64_Rela));
      HALYARD_TRY(read_relocations(*dynamic_.rela, dynamic_.relasz.value_or(0), "DT_RELA"));
    }
    if (dynamic_.jmprel) {
      if (dynamic_.pltrel.value_or(DT_RELA) != DT_RELA)
        return fail(Code::UNIMPLEMENTED,
                    "the ELF library has relocations of the form {} in DT_JMPREL, expected DT_RELA",
                    *dynamic_.pltrel);
      HALYARD_TRY(read_relocations(*dynamic_.jmprel, dynamic_.pltrelsz.value_or(0), "DT_JMPREL"));
    }
    return {};
  }

  Result<> read_relocations(uint64_t address, uint64_t size, const char* what) {
    if (size % sizeof(Elf64_Rela) != 0)
      return broken_elf("{} has {} bytes, expected a multiple of {}", what, size, sizeof(Elf64_Rela));
    const FileBytes table = HALYARD_TRY(bytes_at(address, size, what));
    const uint64_t count = size / sizeof(Elf64_Rela);
    image_.fixups.reserve(image_.fixups.size() + count);
    for (uint64_t i = 0; i < count; ++i) HALYARD_TRY(add_fixup(element<Elf64_Rela>(table, i)));
    return {};
  }

  Result<> add_fixup(const Elf64_Rela& relocation) {
    const uint32_t type = ELF64_R_TYPE(relocation.r_info);
    const uint64_t index = ELF64_R_SYM(relocation.r_info);
    const RelocationRule* rule = architecture_.find(type);
    if (!rule)
      return fail(Code::UNIMPLEMENTED,
                  "the ELF library has a relocation of type {} of {}, which is not supported; compile it "
                  "as position-independent code without thread-local data",
                  type, architecture_.name);
    if (rule->value == RelocationValue::none) return {};
    if (index >= symbols_.size() && index != 0)
      return broken_elf("a relocation names symbol {}; the library has {}", index, symbols_.size());
    const uint64_t place = relocation.r_offset;
    if (!image_.has_memory(place, rule->width, &ElfSegment::writable))
      return broken_elf("a relocation changes {} bytes at address {:#x}, which are not in a writable segment",
                        rule->width, place);
    const Symbol symbol = index == 0 ? Symbol() : symbols_[index];
    const auto addend = static_cast<uint64_t>(relocation.r_addend);
    ElfFixup fixup = {place, symbol.value, static_cast<int8_t>(symbol.moves), rule->width, rule->fit};
    switch (rule->value) {
      case RelocationValue::none:
      case RelocationValue::symbol:
        break;
      case RelocationValue::symbol_and_addend:
        fixup.value += addend;
        break;
      case RelocationValue::symbol_and_addend_from_here:
        fixup.value += addend - place;
        --fixup.bias_factor;
        break;
      case RelocationValue::base_and_addend:
        fixup.value = addend;
        fixup.bias_factor = 1;
        break;
    }
    image_.fixups.push_back(fixup);
    return {};
  }

  Result<> read_initializers() {
    image_.initializer = dynamic_.init.value_or(0);
    if (image_.initializer != 0 && !image_.has_memory(image_.initializer, 1, &ElfSegment::executable))
      return broken_elf("DT_INIT at address {:#x} is not code", image_.initializer);
    image_.initializers = {dynamic_.init_array.value_or(0), dynamic_.init_arraysz.value_or(0)};
    if (image_.initializers.size % sizeof(uint64_t) != 0 ||
        (image_.initializers.size != 0 &&
         !image_.has_memory(image_.initializers.address, image_.initializers.size, nullptr)))
      return broken_elf("DT_INIT_ARRAY, {} bytes at address {:#x}, is not within its segments",
                        image_.initializers.size, image_.initializers.address);
    return {};
  }

  const FileBytes file_;
  const ElfArchitecture& architecture_;
  ElfImage& image_;
  Dynamic dynamic_;
  FileBytes strings_;
  std::vector<Symbol> symbols_;  // number 0 is reserved
};

}  // namespace

Result<> read_dynamic(FileBytes file, const ElfArchitecture& architecture, ElfRange table, ElfImage& image) {
  return Reader(file, architecture, image).read(table);
}

}  // namespace halyard::local
