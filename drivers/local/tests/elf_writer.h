// Writes a small ELF library byte by byte; tests can corrupt every part of it.
#pragma once

#include <elf.h>

#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

namespace halyard::local_tests {

class ElfWriter {
 public:
  // File offsets. The address of code is one page after its offset, that of data two pages.
  static constexpr uint64_t kSymbols = 0x200, kHash = 0x2C0, kStrings = 0x300, kRelocations = 0x380,
                            kNote = 0x470, kCode = 0x4C0, kData = 0x500, kDynamic = 0x580, kSections = 0x6A0;
  static constexpr uint64_t kPage = 0x1000;
  static constexpr uint64_t kCodeAddress = kPage + kCode;
  static constexpr uint64_t kDataAddress = 2 * kPage + kData;
  static constexpr uint64_t kDynamicAddress = 2 * kPage + kDynamic;
  static constexpr uint64_t kZeros = 0x100;  // bytes of memory that the file does not have
  enum Program : size_t { kReadOnly, kExecutable, kWritable, kDynamicProgram, kRelro };

  explicit ElfWriter(uint16_t machine = EM_X86_64, std::string_view function = "the_function") {
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_ident[EI_DATA] = ELFDATA2LSB;
    header.e_ident[EI_VERSION] = EV_CURRENT;
    header.e_type = ET_DYN;
    header.e_machine = machine;
    header.e_version = EV_CURRENT;
    header.e_phoff = sizeof header;
    header.e_shoff = kSections;
    header.e_ehsize = sizeof(Elf64_Ehdr);
    header.e_phentsize = sizeof(Elf64_Phdr);
    header.e_shentsize = sizeof(Elf64_Shdr);
    header.e_shnum = 1;
    programs = {
        {PT_LOAD, PF_R, 0, 0, 0, kCode, kCode, kPage},
        {PT_LOAD, PF_R | PF_X, kCode, kCodeAddress, kCodeAddress, kData - kCode, kData - kCode, kPage},
        {PT_LOAD, PF_R | PF_W, kData, kDataAddress, kDataAddress, kSections - kData,
         kSections - kData + kZeros, kPage},
        {PT_DYNAMIC, PF_R | PF_W, kDynamic, kDynamicAddress, kDynamicAddress, kSections - kDynamic,
         kSections - kDynamic, 8},
        {PT_GNU_RELRO, PF_R, kData, kDataAddress, kDataAddress, kSections - kData, 3 * kPage - kDataAddress,
         1},
    };
    strings.assign(1, 0);
    symbols.emplace_back();
    add_symbol(function, kCodeAddress);
    dynamic = {entry(DT_STRTAB, kStrings), entry(DT_STRSZ, strings.size()), entry(DT_SYMTAB, kSymbols),
               entry(DT_SYMENT, sizeof(Elf64_Sym)), entry(DT_HASH, kHash)};
    code = {0x31, 0xC0, 0xC3};  // x86-64: return 0
    data.assign(kDynamic - kData, 0xAB);
  }

  static Elf64_Dyn entry(int64_t tag, uint64_t value) {
    Elf64_Dyn result = {};
    result.d_tag = tag;
    result.d_un.d_val = value;
    return result;
  }
  // The value of an entry of the dynamic table, to be changed; adds the entry if it is missing.
  Elf64_Xword& operator[](int64_t tag) {
    for (Elf64_Dyn& each : dynamic)
      if (each.d_tag == tag) return each.d_un.d_val;
    dynamic.push_back(entry(tag, 0));
    return dynamic.back().d_un.d_val;
  }
  void remove(int64_t tag) {
    std::erase_if(dynamic, [&](const Elf64_Dyn& each) { return each.d_tag == tag; });
  }
  Elf64_Sym& add_symbol(std::string_view name, uint64_t value) {
    Elf64_Sym symbol = {};
    symbol.st_name = static_cast<uint32_t>(strings.size());
    symbol.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC);
    symbol.st_shndx = 1;
    symbol.st_value = value;
    strings.insert(strings.end(), name.begin(), name.end());
    strings.push_back(0);
    for (Elf64_Dyn& each : dynamic)
      if (each.d_tag == DT_STRSZ) each.d_un.d_val = strings.size();
    symbols.push_back(symbol);
    return symbols.back();
  }
  void add_relocation(uint64_t place, uint32_t type, uint64_t symbol, int64_t addend) {
    relocations.push_back({place, ELF64_R_INFO(symbol, type), addend});
    (*this)[DT_RELA] = kRelocations;
    (*this)[DT_RELASZ] = relocations.size() * sizeof(Elf64_Rela);
    (*this)[DT_RELAENT] = sizeof(Elf64_Rela);
  }
  // A note that requires processor levels.
  void add_levels(uint32_t levels) {
    const uint32_t words[] = {4, 16, NT_GNU_PROPERTY_TYPE_0, 0x00554E47, 0xC0008002, 4, levels, 0};
    note.resize(sizeof words);
    std::memcpy(note.data(), words, sizeof words);
    programs.push_back({PT_GNU_PROPERTY, PF_R, kNote, kNote, kNote, sizeof words, sizeof words, 8});
  }

  std::vector<uint8_t> build() const {
    std::vector<uint8_t> file(kSections + sizeof(Elf64_Shdr), 0);
    const auto put = [&](uint64_t at, const void* bytes, size_t size) {
      if (size != 0) std::memcpy(file.data() + at, bytes, size);
    };
    const auto put_all = [&](uint64_t at, const auto& list) {
      put(at, list.data(), list.size() * sizeof(list[0]));
    };
    Elf64_Ehdr written = header;
    if (written.e_phnum == 0) written.e_phnum = static_cast<uint16_t>(programs.size());
    put_all(sizeof header, programs);
    put(0, &written, sizeof written);
    put_all(kSymbols, symbols);
    const uint32_t count = hash_count == 0 ? static_cast<uint32_t>(symbols.size()) : hash_count;
    const uint32_t hash[] = {1, count, 1, 0};
    put(kHash, hash, sizeof hash);
    put_all(kStrings, strings);
    put_all(kRelocations, relocations);
    put_all(kNote, note);
    put_all(kCode, code);
    put_all(kData, data);
    put_all(kDynamic, dynamic);  // terminated by the zeros after it
    return file;
  }

  Elf64_Ehdr header = {};  // e_phnum 0: use the actual number
  std::vector<Elf64_Phdr> programs;
  std::vector<Elf64_Dyn> dynamic;
  std::vector<Elf64_Sym> symbols;
  std::vector<Elf64_Rela> relocations;
  std::vector<uint8_t> strings, note, code, data;
  uint32_t hash_count = 0;  // symbols, as the hash table states; 0: use the actual number
};

// A FatELF container with these files one after another.
struct FatElfRecord {
  uint16_t machine;
  uint8_t system = 0, system_version = 0;
  uint8_t word_size = 2, byte_order = 1;
  uint16_t reserved = 0;
  uint64_t offset = 0, size = 0;
};

inline std::vector<uint8_t> fat_elf(std::vector<FatElfRecord> records,
                                    const std::vector<std::vector<uint8_t>>& files, uint16_t version = 1) {
  std::vector<uint8_t> result(8 + records.size() * sizeof(FatElfRecord));
  const uint8_t magic[] = {0xFA, 0x70, 0x0E, 0x1F};
  std::memcpy(result.data(), magic, 4);
  std::memcpy(result.data() + 4, &version, 2);
  result[6] = static_cast<uint8_t>(records.size());
  for (size_t i = 0; i < records.size(); ++i) {
    if (records[i].size == 0) {
      records[i].offset = result.size();
      records[i].size = files[i].size();
    }
    std::memcpy(result.data() + 8 + i * sizeof(FatElfRecord), &records[i], sizeof(FatElfRecord));
    result.insert(result.end(), files[i].begin(), files[i].end());
  }
  return result;
}

}  // namespace halyard::local_tests
