// The ELF loader with valid files, and with files that have one error each. No code of them runs.
#include <gtest/gtest.h>

#include <functional>
#include <random>

#include "elf_writer.h"
#include "native/elf_file.h"
#include "native/elf_image.h"
#include "native/fat_elf.h"
#include "status_testing.h"

namespace halyard::local_tests {
namespace {

using namespace halyard::local;

constexpr uint64_t kBase = 0x7F0000400000;

const ElfArchitecture& architecture(uint16_t machine) {
  for (const ElfArchitecture& each : kElfArchitectures)
    if (each.machine == machine) return each;
  ADD_FAILURE() << machine;
  return kElfArchitectures[0];
}

Result<ElfImage> read(const ElfWriter& elf, uint64_t page = ElfWriter::kPage) {
  const uint16_t machine = elf.header.e_machine;
  // The image's names are views of the file.
  static std::vector<uint8_t> file;
  file = elf.build();
  return read_elf(file, architecture(machine), page);
}

template <typename T>
T at(const std::vector<uint8_t>& memory, const ElfImage& image, uint64_t address) {
  T value;
  std::memcpy(&value, memory.data() + (address - image.begin), sizeof value);
  return value;
}

std::vector<uint8_t> placed(const ElfWriter& elf, const ElfImage& image, uint64_t base = kBase) {
  std::vector<uint8_t> memory(image.size);
  const std::vector<uint8_t> file = elf.build();
  EXPECT_OK(place_elf(image, file, memory, base));
  return memory;
}

TEST(Elf, ValidFile) {
  const ElfWriter elf;
  const ElfImage image = ASSERT_VALUE(read(elf));
  EXPECT_EQ(image.begin, 0u);
  EXPECT_EQ(image.size, 3 * ElfWriter::kPage);
  ASSERT_EQ(image.segments.size(), 3u);
  EXPECT_TRUE(image.segments[1].executable && !image.segments[1].writable);
  EXPECT_TRUE(image.segments[2].writable && !image.segments[2].executable);
  ASSERT_EQ(image.exports.size(), 1u);
  EXPECT_EQ(image.exports[0].name, "the_function");
  EXPECT_EQ(image.exports[0].address, ElfWriter::kCodeAddress);
  EXPECT_EQ(image.read_only_later.address, 2 * ElfWriter::kPage);
  EXPECT_EQ(image.read_only_later.size, ElfWriter::kPage);
  EXPECT_EQ(image.needed_levels, 0u);
  const std::vector<uint8_t> memory = placed(elf, image);
  EXPECT_EQ(at<uint8_t>(memory, image, ElfWriter::kCodeAddress + 2), 0xC3);
  EXPECT_EQ(at<uint8_t>(memory, image, ElfWriter::kDataAddress), 0xAB);
  EXPECT_EQ(at<uint64_t>(memory, image, ElfWriter::kDataAddress - 8), 0u) << "zeros between segments";
}

TEST(Elf, AnImageMayStartAnywhere) {
  ElfWriter elf;
  const uint64_t shift = 0x123456000;
  for (Elf64_Phdr& program : elf.programs) program.p_vaddr += shift;
  for (const int64_t tag : {DT_STRTAB, DT_SYMTAB, DT_HASH}) elf[tag] += shift;
  elf.symbols[1].st_value += shift;
  elf.add_relocation(ElfWriter::kDataAddress + shift, R_X86_64_RELATIVE, 0,
                     static_cast<int64_t>(ElfWriter::kCodeAddress + shift));
  elf[DT_RELA] += shift;
  const ElfImage image = ASSERT_VALUE(read(elf));
  EXPECT_EQ(image.begin, shift);
  const std::vector<uint8_t> memory = placed(elf, image);
  EXPECT_EQ(at<uint64_t>(memory, image, ElfWriter::kDataAddress + shift), kBase + ElfWriter::kCodeAddress);
}

struct RelocationCase {
  uint16_t machine;
  uint32_t type;
  uint64_t symbol;  // 0: none; 1: the function; 2: an absolute one with value 0x1234
  int64_t addend;
  uint64_t expected;
  uint32_t width;
};

TEST(Elf, EveryRelocation) {
  constexpr uint64_t kHere = ElfWriter::kDataAddress;
  constexpr uint64_t kFunction = kBase + ElfWriter::kCodeAddress;
  const RelocationCase cases[] = {
      {EM_X86_64, R_X86_64_NONE, 1, 5, 0xABABABABABABABAB, 8},
      {EM_X86_64, R_X86_64_64, 1, -3, kFunction - 3, 8},
      {EM_X86_64, R_X86_64_64, 2, 1, 0x1235, 8},
      {EM_X86_64, R_X86_64_64, 0, 9, 9, 8},
      {EM_X86_64, R_X86_64_PC32, 1, -4, static_cast<uint32_t>(ElfWriter::kCodeAddress - 4 - kHere), 4},
      {EM_X86_64, R_X86_64_GLOB_DAT, 1, 77, kFunction, 8},
      {EM_X86_64, R_X86_64_JUMP_SLOT, 1, 77, kFunction, 8},
      {EM_X86_64, R_X86_64_RELATIVE, 0, 0x2510, kBase + 0x2510, 8},
      {EM_X86_64, R_X86_64_32, 2, 0x10, 0x1244, 4},
      {EM_X86_64, R_X86_64_32S, 2, -0x1235, UINT32_MAX, 4},
      {EM_AARCH64, R_AARCH64_ABS64, 1, 8, kFunction + 8, 8},
      {EM_AARCH64, R_AARCH64_GLOB_DAT, 1, 8, kFunction + 8, 8},
      {EM_AARCH64, R_AARCH64_JUMP_SLOT, 1, 0, kFunction, 8},
      {EM_AARCH64, R_AARCH64_RELATIVE, 0, 0x2510, kBase + 0x2510, 8},
      {EM_AARCH64, R_AARCH64_NONE, 0, 0, 0xABABABABABABABAB, 8},
      {EM_RISCV, R_RISCV_32, 2, 1, 0x1235, 4},
      {EM_RISCV, R_RISCV_64, 1, 1, kFunction + 1, 8},
      {EM_RISCV, R_RISCV_RELATIVE, 0, 0x2510, kBase + 0x2510, 8},
      {EM_RISCV, R_RISCV_JUMP_SLOT, 1, 5, kFunction, 8},
  };
  for (const RelocationCase& each : cases) {
    ElfWriter elf(each.machine);
    elf.add_symbol("fixed", 0x1234).st_shndx = SHN_ABS;
    elf.add_relocation(kHere, each.type, each.symbol, each.addend);
    const ElfImage image = ASSERT_VALUE(read(elf));
    const std::vector<uint8_t> memory = placed(elf, image);
    const auto value = at<uint64_t>(memory, image, kHere);
    EXPECT_EQ(each.width == 8 ? value : value & UINT32_MAX, each.expected)
        << each.machine << " type " << each.type << " symbol " << each.symbol;
    if (each.width == 4) {
      EXPECT_EQ(value >> 32, 0xABABABABu) << "no more than four bytes";
    }
  }
}

TEST(Elf, AddressesThatDoNotFit) {
  for (const uint32_t type : {R_X86_64_32, R_X86_64_32S}) {
    ElfWriter elf;
    elf.add_relocation(ElfWriter::kDataAddress, type, 1, 0);
    const ElfImage image = ASSERT_VALUE(read(elf));
    std::vector<uint8_t> memory(image.size);
    const std::vector<uint8_t> file = elf.build();
    EXPECT_FAILS(OUT_OF_RANGE, "", place_elf(image, file, memory, kBase));
    EXPECT_TRUE(place_elf(image, file, memory, 0x10000)) << "low enough";
    EXPECT_EQ(at<uint32_t>(memory, image, ElfWriter::kDataAddress), 0x10000 + ElfWriter::kCodeAddress);
  }
}

struct WrongCase {
  const char* name;
  std::function<void(ElfWriter&)> change;
  Code code = Code::FAILED_PRECONDITION;
};

TEST(Elf, OneErrorEach) {
  using W = ElfWriter;
  const WrongCase cases[] = {
      {"magic", [](W& e) { e.header.e_ident[1] = 'X'; }},
      {"32 bits", [](W& e) { e.header.e_ident[EI_CLASS] = ELFCLASS32; }},
      {"big endian", [](W& e) { e.header.e_ident[EI_DATA] = ELFDATA2MSB; }},
      {"version", [](W& e) { e.header.e_version = 2; }},
      {"ident version", [](W& e) { e.header.e_ident[EI_VERSION] = 0; }},
      {"executable type", [](W& e) { e.header.e_type = ET_EXEC; }},
      {"header size", [](W& e) { e.header.e_ehsize = 52; }},
      {"program header size", [](W& e) { e.header.e_phentsize = 57; }},
      {"section header size", [](W& e) { e.header.e_shentsize = 0; }},
      {"program headers outside", [](W& e) { e.header.e_phoff = 1u << 20; }},
      {"program headers wrap", [](W& e) { e.header.e_phoff = UINT64_MAX - 10; }},
      {"many program headers", [](W& e) { e.header.e_phnum = 1000; }},
      {"no section headers", [](W& e) { e.header.e_shnum = 0; }},
      {"section headers outside", [](W& e) { e.header.e_shoff += 1; }},
      {"no segments",
       [](W& e) {
         for (auto& program : e.programs)
           if (program.p_type == PT_LOAD) program.p_type = PT_NOTE;
       }},
      {"segment past the file",
       [](W& e) { e.programs[W::kWritable].p_filesz = e.programs[W::kWritable].p_memsz = 0x300; }},
      {"segment offset wraps", [](W& e) { e.programs[W::kWritable].p_offset = UINT64_MAX - 0xAFF; }},
      {"more in file than in memory", [](W& e) { e.programs[W::kWritable].p_memsz = 16; }},
      {"memory wraps", [](W& e) { e.programs[W::kWritable].p_memsz = UINT64_MAX; }},
      {"huge memory", [](W& e) { e.programs[W::kWritable].p_memsz = uint64_t{1} << 40; }},
      {"far apart", [](W& e) { e.programs[W::kWritable].p_vaddr += uint64_t{1} << 33; }},
      {"at the end of addresses",
       [](W& e) {
         for (auto& program : e.programs) program.p_vaddr += UINT64_MAX - 0x3FFF;
       }},
      {"alignment no power of two", [](W& e) { e.programs[W::kExecutable].p_align = 0x1001; }},
      {"alignment too large", [](W& e) { e.programs[W::kReadOnly].p_align = uint64_t{1} << 40; }},
      {"address and offset disagree", [](W& e) { e.programs[W::kExecutable].p_vaddr += 16; }},
      {"unordered", [](W& e) { std::swap(e.programs[W::kExecutable], e.programs[W::kWritable]); }},
      {"overlapping", [](W& e) { e.programs[W::kReadOnly].p_memsz = 0x1500; }},
      {"on one page",
       [](W& e) {
         e.programs[W::kExecutable].p_vaddr = W::kCode;
         e.programs[W::kExecutable].p_memsz = 8;
       }},
      {"writable code", [](W& e) { e.programs[W::kExecutable].p_flags |= PF_W; }, Code::PERMISSION_DENIED},
      {"two dynamic tables", [](W& e) { e.programs.push_back(e.programs[W::kDynamicProgram]); }},
      {"no dynamic table", [](W& e) { e.programs[W::kDynamicProgram].p_type = PT_NOTE; }},
      {"dynamic table outside", [](W& e) { e.programs[W::kDynamicProgram].p_vaddr = 0x9000; }},
      {"dynamic table in zeros", [](W& e) { e.programs[W::kDynamicProgram].p_filesz += 16; }},
      {"dynamic table without end",
       [](W& e) { e.programs[W::kDynamicProgram].p_filesz = e.dynamic.size() * 16; }},
      {"an entry twice", [](W& e) { e.dynamic.push_back(W::entry(DT_HASH, W::kHash)); }},
      {"no strings", [](W& e) { e.remove(DT_STRTAB); }},
      {"no size of strings", [](W& e) { e.remove(DT_STRSZ); }},
      {"no symbols", [](W& e) { e.remove(DT_SYMTAB); }},
      {"no symbol size", [](W& e) { e.remove(DT_SYMENT); }},
      {"no hash table", [](W& e) { e.remove(DT_HASH); }},
      {"symbol size", [](W& e) { e[DT_SYMENT] = 16; }},
      {"strings outside", [](W& e) { e[DT_STRTAB] = 0x4B8; }},
      {"strings of size 0", [](W& e) { e[DT_STRSZ] = 0; }},
      {"huge strings", [](W& e) { e[DT_STRSZ] = UINT64_MAX; }},
      {"strings without end", [](W& e) { e[DT_STRSZ] -= 1; }},
      {"a name outside", [](W& e) { e.symbols[1].st_name = 0x7FFFFFFF; }},
      {"many symbols", [](W& e) { e.hash_count = 0x0FFFFFFF; }},
      {"more symbols than there are bytes", [](W& e) { e.hash_count = 40; }},
      {"hash table outside", [](W& e) { e[DT_HASH] = 0x4BC; }},
      {"symbol outside", [](W& e) { e.symbols[1].st_value = 0x3001; }},
      {"symbol far outside", [](W& e) { e.symbols[1].st_value = UINT64_MAX; }},
      {"undefined symbol", [](W& e) { e.add_symbol("memcpy", 0).st_shndx = SHN_UNDEF; }, Code::UNAVAILABLE},
      {"weak undefined symbol",
       [](W& e) {
         Elf64_Sym& symbol = e.add_symbol("maybe", 0);
         symbol.st_shndx = SHN_UNDEF;
         symbol.st_info = ELF64_ST_INFO(STB_WEAK, STT_NOTYPE);
       },
       Code::UNAVAILABLE},
      {"thread-local symbol", [](W& e) { e.symbols[1].st_info = ELF64_ST_INFO(STB_GLOBAL, STT_TLS); },
       Code::UNIMPLEMENTED},
      {"indirect function", [](W& e) { e.symbols[1].st_info = ELF64_ST_INFO(STB_GLOBAL, STT_GNU_IFUNC); },
       Code::UNIMPLEMENTED},
      {"common symbol", [](W& e) { e.symbols[1].st_shndx = SHN_COMMON; }, Code::UNIMPLEMENTED},
      {"relocation without addend", [](W& e) { e[DT_REL] = W::kRelocations; }, Code::UNIMPLEMENTED},
      {"packed relocations", [](W& e) { e[36] = W::kRelocations; }, Code::UNIMPLEMENTED},
      {"relocation of thread-local data",
       [](W& e) { e.add_relocation(W::kDataAddress, R_X86_64_DTPMOD64, 0, 0); }, Code::UNIMPLEMENTED},
      {"relocation by a function", [](W& e) { e.add_relocation(W::kDataAddress, R_X86_64_IRELATIVE, 0, 0); },
       Code::UNIMPLEMENTED},
      {"unknown relocation", [](W& e) { e.add_relocation(W::kDataAddress, 0xFFFFFFFF, 0, 0); },
       Code::UNIMPLEMENTED},
      {"relocation of code", [](W& e) { e.add_relocation(W::kCodeAddress, R_X86_64_RELATIVE, 0, 0); }},
      {"relocation outside", [](W& e) { e.add_relocation(UINT64_MAX - 3, R_X86_64_RELATIVE, 0, 0); }},
      {"relocation half outside",
       [](W& e) { e.add_relocation(2 * W::kPage + W::kSections + W::kZeros - 7, R_X86_64_RELATIVE, 0, 0); }},
      {"relocation between segments", [](W& e) { e.add_relocation(2 * W::kPage, R_X86_64_RELATIVE, 0, 0); }},
      {"relocation of no symbol", [](W& e) { e.add_relocation(W::kDataAddress, R_X86_64_64, 9, 0); }},
      {"relocations outside",
       [](W& e) {
         e.add_relocation(W::kDataAddress, R_X86_64_RELATIVE, 0, 0);
         e[DT_RELA] = 0x10000;
       }},
      {"size of relocations",
       [](W& e) {
         e.add_relocation(W::kDataAddress, R_X86_64_RELATIVE, 0, 0);
         e[DT_RELASZ] = 25;
       }},
      {"size of a relocation",
       [](W& e) {
         e.add_relocation(W::kDataAddress, R_X86_64_RELATIVE, 0, 0);
         e[DT_RELAENT] = 16;
       }},
      {"jump relocations of another form",
       [](W& e) {
         e[DT_JMPREL] = W::kRelocations;
         e[DT_PLTRELSZ] = 24;
         e[DT_PLTREL] = DT_REL;
       },
       Code::UNIMPLEMENTED},
      {"unknown jump relocation",
       [](W& e) {
         e.add_relocation(W::kDataAddress, 99, 0, 0);
         e.remove(DT_RELA);
         e[DT_JMPREL] = W::kRelocations;
         e[DT_PLTRELSZ] = 24;
       },
       Code::UNIMPLEMENTED},
      {"initializer that is no code", [](W& e) { e[DT_INIT] = W::kDataAddress; }},
      {"initializers outside",
       [](W& e) {
         e[DT_INIT_ARRAY] = 0x5000;
         e[DT_INIT_ARRAYSZ] = 8;
       }},
      {"size of initializers",
       [](W& e) {
         e[DT_INIT_ARRAY] = W::kDataAddress;
         e[DT_INIT_ARRAYSZ] = 9;
       }},
      {"read-only later outside", [](W& e) { e.programs[W::kRelro].p_vaddr = 0x8000; }},
      {"read-only later, of code", [](W& e) { e.programs[W::kRelro].p_vaddr = W::kCodeAddress; }},
      {"read-only later wraps", [](W& e) { e.programs[W::kRelro].p_memsz = UINT64_MAX; }},
      {"read-only later twice", [](W& e) { e.programs.push_back(e.programs[W::kRelro]); }},
  };
  ASSERT_TRUE(read(ElfWriter()));
  for (const WrongCase& each : cases) {
    ElfWriter elf;
    each.change(elf);
    EXPECT_TRUE(fails_with(read(elf), each.code, "")) << each.name;
  }
}

TEST(Elf, IgnoredParts) {
  using W = ElfWriter;
  const std::function<void(W&)> cases[] = {
      [](W& e) { e.programs.push_back({PT_TLS, PF_R, 0, 0, 0, UINT64_MAX, UINT64_MAX, 3}); },
      [](W& e) { e.programs.push_back({PT_NOTE, PF_R, UINT64_MAX, 0, 0, 8, 8, 3}); },
      [](W& e) { e.programs.push_back({PT_LOAD, PF_W | PF_X, 0, 0, 0, 0, 0, 3}); },  // nothing to load
      [](W& e) { e.programs[W::kReadOnly].p_align = 0; },
      [](W& e) { e[DT_NEEDED] = 1; },
      [](W& e) { e.programs[W::kRelro].p_memsz = 0; },
      [](W& e) { e.add_symbol("nowhere", UINT64_MAX).st_shndx = SHN_ABS; },
  };
  for (const auto& change : cases) {
    ElfWriter elf;
    change(elf);
    const Result<ElfImage> image = read(elf);
    EXPECT_TRUE(image) << image.error().text();
    EXPECT_EQ(image ? image->exports.size() : 0, 1u);
  }
}

TEST(Elf, LocalSymbolsAreNotExported) {
  ElfWriter elf;
  elf.add_symbol("weak", ElfWriter::kDataAddress).st_info = ELF64_ST_INFO(STB_WEAK, STT_OBJECT);
  elf.add_symbol("local", ElfWriter::kDataAddress).st_info = ELF64_ST_INFO(STB_LOCAL, STT_OBJECT);
  const ElfImage image = ASSERT_VALUE(read(elf));
  ASSERT_EQ(image.exports.size(), 2u);
  EXPECT_EQ(image.exports[1].name, "weak");
}

TEST(Elf, LargePages) {
  EXPECT_FAILS(FAILED_PRECONDITION, "", read(ElfWriter(), 0x10000)) << "segments share a page";
}

TEST(Elf, ProcessorLevels) {
  ElfWriter elf;
  elf.add_levels(5);
  EXPECT_EQ(ASSERT_VALUE(read(elf)).needed_levels, 5u);
  elf.header.e_machine = EM_AARCH64;
  EXPECT_EQ(ASSERT_VALUE(read(elf)).needed_levels, 0u) << "bits of another architecture";
  // Truncated and malformed notes are ignored.
  elf.header.e_machine = EM_X86_64;
  const std::vector<uint8_t> note = elf.note;
  for (size_t word = 0; word < 8; ++word) {
    for (const uint32_t value : {0u, 1u, 0xFFFFFFFFu}) {
      elf.note = note;
      std::memcpy(elf.note.data() + word * 4, &value, 4);
      EXPECT_TRUE(read(elf));
    }
  }
  elf.programs.back().p_filesz = 12;
  EXPECT_EQ(ASSERT_VALUE(read(elf)).needed_levels, 0u);
}

TEST(Elf, FatElf) {
  const ElfArchitecture& host = architecture(EM_X86_64);
  const std::vector<uint8_t> x86 = ElfWriter().build();
  const std::vector<uint8_t> arm = ElfWriter(EM_AARCH64).build();
  const auto chosen = [&](const std::vector<uint8_t>& file) -> Result<std::vector<uint8_t>> {
    const FileBytes bytes = HALYARD_TRY(choose_from_fat_elf(file, host));
    return std::vector<uint8_t>(bytes.begin(), bytes.end());
  };
  EXPECT_EQ(chosen(x86), x86) << "no container";
  EXPECT_EQ(chosen(fat_elf({{EM_AARCH64}, {EM_X86_64}}, {arm, x86})), x86);
  EXPECT_EQ(chosen(fat_elf({{EM_X86_64, 3}}, {x86})), x86);
  EXPECT_EQ(chosen(fat_elf({{EM_X86_64, 255}}, {x86})), x86);
  const std::vector<FatElfRecord> others[] = {{{EM_AARCH64}},
                                              {{EM_X86_64, 9}},
                                              {{.machine = EM_X86_64, .word_size = 1}},
                                              {{.machine = EM_X86_64, .byte_order = 2}},
                                              {}};
  for (const auto& records : others) {
    EXPECT_FAILS(INCOMPATIBLE, "", chosen(fat_elf(records, {x86})));
  }
  std::vector<std::vector<uint8_t>> damaged = {
      fat_elf({{EM_X86_64}}, {x86}, 2),
      fat_elf({{.machine = EM_X86_64, .offset = 1u << 20, .size = 8}}, {x86}),
      fat_elf({{.machine = EM_X86_64, .offset = UINT64_MAX, .size = UINT64_MAX}}, {x86}),
  };
  damaged.push_back(fat_elf({{EM_AARCH64}, {EM_X86_64}}, {{}, {}}));
  damaged.back().resize(40);
  damaged.push_back({0xFA, 0x70, 0x0E, 0x1F});
  for (const auto& file : damaged) {
    EXPECT_FAILS(FAILED_PRECONDITION, "", chosen(file));
  }
}

// Every truncation, and every single-byte change: a file that can be read can be placed.
TEST(Elf, DamagedFiles) {
  ElfWriter elf;
  elf.add_levels(1);
  for (const auto& [type, symbol] : {std::pair{R_X86_64_RELATIVE, 0}, {R_X86_64_64, 1}, {R_X86_64_PC32, 1}})
    elf.add_relocation(ElfWriter::kDataAddress + 8 * elf.relocations.size(), type, symbol, 0x2500);
  elf[DT_INIT] = ElfWriter::kCodeAddress;
  const std::vector<uint8_t> file = elf.build();
  const ElfArchitecture& host = architecture(EM_X86_64);
  const auto try_file = [&](const std::vector<uint8_t>& bytes) {
    const Result<ElfImage> image = read_elf(bytes, host, ElfWriter::kPage);
    if (!image || image->size > 1u << 22) return;
    std::vector<uint8_t> memory(image->size);
    (void)place_elf(*image, bytes, memory, kBase);
  };
  ASSERT_TRUE(read_elf(file, host, ElfWriter::kPage));
  for (size_t size = 0; size < file.size(); ++size)
    try_file({file.begin(), file.begin() + static_cast<ptrdiff_t>(size)});
  std::mt19937 random(1);
  for (size_t at = 0; at < file.size(); ++at) {
    for (const uint8_t value :
         {uint8_t{0}, uint8_t{0x7F}, uint8_t{0x80}, uint8_t{0xFF}, static_cast<uint8_t>(random())}) {
      std::vector<uint8_t> damaged = file;
      damaged[at] = value;
      try_file(damaged);
    }
  }
}

}  // namespace
}  // namespace halyard::local_tests
