// Names of compiled functions: gdb's list, and the lines that perf reads, in a file that nobody else could
// have laid out.
#include "front/names.h"

#include <elf.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "fixtures.h"

// The list, as gdb's manual has it.
extern "C" {
struct jit_code_entry {
  jit_code_entry* next_entry;
  jit_code_entry* prev_entry;
  const char* symfile_addr;
  uint64_t symfile_size;
};
struct jit_descriptor {
  uint32_t version;
  uint32_t action_flag;
  jit_code_entry* relevant_entry;
  jit_code_entry* first_entry;
};
extern jit_descriptor __jit_debug_descriptor;
}

namespace halyard::jit {
namespace {

// The name and the address in the object file of an entry, as gdb reads them.
std::string symbol_of(const jit_code_entry& entry) {
  const auto* const header = reinterpret_cast<const Elf64_Ehdr*>(entry.symfile_addr);
  EXPECT_EQ(std::memcmp(header->e_ident, ELFMAG, SELFMAG), 0);
  const auto* const sections = reinterpret_cast<const Elf64_Shdr*>(entry.symfile_addr + header->e_shoff);
  EXPECT_EQ(header->e_shoff % alignof(Elf64_Shdr), 0u);
  EXPECT_LE(header->e_shoff + header->e_shnum * sizeof(Elf64_Shdr), entry.symfile_size);
  for (uint16_t i = 0; i < header->e_shnum; ++i) {
    if (sections[i].sh_type != SHT_SYMTAB) continue;
    const auto* const symbols =
        reinterpret_cast<const Elf64_Sym*>(entry.symfile_addr + sections[i].sh_offset);
    const char* const names = entry.symfile_addr + sections[sections[i].sh_link].sh_offset;
    return std::string(names + symbols[1].st_name) + "@" +
           std::to_string(sections[symbols[1].st_shndx].sh_addr) + "+" + std::to_string(symbols[1].st_size);
  }
  return "no symbols";
}

std::vector<std::string> listed() {
  std::vector<std::string> found;
  const jit_code_entry* before = nullptr;
  for (const jit_code_entry* entry = __jit_debug_descriptor.first_entry; entry; entry = entry->next_entry) {
    EXPECT_EQ(entry->prev_entry, before);
    before = entry;
    found.push_back(symbol_of(*entry));
  }
  return found;
}

using Names = std::vector<std::string>;

TEST(GdbNameTest, NamesOfAnyLength) {
  for (size_t size = 0; size < 20; ++size) {
    const std::string text(size, 'n');
    const GdbName name(text, 4096, 16);
    EXPECT_EQ(symbol_of(*__jit_debug_descriptor.relevant_entry), text + "@4096+16");
  }
}

TEST(GdbNameTest, TheListHasThoseThatLive) {
  ASSERT_EQ(listed(), Names{});
  auto first = std::make_unique<GdbName>("m.first", 4096, 16);
  EXPECT_EQ(__jit_debug_descriptor.action_flag, 1u);
  EXPECT_EQ(symbol_of(*__jit_debug_descriptor.relevant_entry), "m.first@4096+16");
  auto second = std::make_unique<GdbName>("m.second", 8192, 32);
  auto third = std::make_unique<GdbName>("m.third", 12288, 48);
  EXPECT_EQ(listed(), (Names{"m.third@12288+48", "m.second@8192+32", "m.first@4096+16"}));
  second.reset();  // from the middle
  EXPECT_EQ(__jit_debug_descriptor.action_flag, 2u);
  EXPECT_EQ(listed(), (Names{"m.third@12288+48", "m.first@4096+16"}));
  first.reset();  // the last
  EXPECT_EQ(listed(), Names{"m.third@12288+48"});
  third.reset();
  EXPECT_EQ(listed(), Names{});
}

// The file that perf reads, made or laid out by the test in a child process, because its name has the
// process's number.
class PerfNameTest : public testing::Test {
 public:
  static std::string path() { return "/tmp/perf-" + std::to_string(::getpid()) + ".map"; }
  static std::string other() { return path() + ".other"; }

  // Announces in a process of its own in which `prepare` has run, and ends it with 0 if the file is then as
  // expected.
  template <typename Prepare>
  static void announce_in_child(const char* whom, Prepare prepare, const std::string& expected) {
    ::setenv("HALYARD_JIT_NAMES", whom, 1);
    ::unlink(path().c_str());
    prepare();
    const auto name = announce("m.f", 0x1000, 0x20);
    const bool is_known_to_gdb = std::string(whom).find("gdb") != std::string::npos;
    const std::string found = std::filesystem::is_fifo(path()) ? "a pipe" : file_text(path());
    ::unlink(path().c_str());
    ::unlink(other().c_str());
    std::exit(found != expected ? 1 : (name != nullptr) != is_known_to_gdb ? 2 : 0);
  }
};

TEST_F(PerfNameTest, EveryFunctionIsALine) {
  EXPECT_EXIT(announce_in_child(
                  "perf", [] { announce("m.a", 0x800, 8); }, "800 8 m.a\n1000 20 m.f\n"),
              testing::ExitedWithCode(0), "");
}

TEST_F(PerfNameTest, OnlyThoseNamedAreTold) {
  EXPECT_EXIT(announce_in_child("gdb", [] {}, ""), testing::ExitedWithCode(0), "");
  EXPECT_EXIT(announce_in_child("gdb,perf", [] {}, "1000 20 m.f\n"), testing::ExitedWithCode(0), "");
  EXPECT_EXIT(announce_in_child("perfect", [] {}, ""), testing::ExitedWithCode(0), "");
  EXPECT_EXIT(announce_in_child("", [] {}, ""), testing::ExitedWithCode(0), "");
}

TEST_F(PerfNameTest, FilesOfOthersAreNotWritten) {
  const auto link = [] {
    if (::symlink(other().c_str(), path().c_str()) != 0) std::exit(3);
  };
  EXPECT_EXIT(announce_in_child("perf", link, ""), testing::ExitedWithCode(0), "") << "a link";
  const auto pipe = [] {
    if (::mkfifo(path().c_str(), 0600) != 0) std::exit(3);
  };
  EXPECT_EXIT(announce_in_child("perf", pipe, "a pipe"), testing::ExitedWithCode(0), "")
      << "a pipe without a reader";
  const auto writable = [] {
    const std::filesystem::path file = path();
    std::ofstream(file) << "";
    if (::chmod(path().c_str(), 0666) != 0) std::exit(3);
  };
  EXPECT_EXIT(announce_in_child("perf", writable, ""), testing::ExitedWithCode(0), "")
      << "one that all may write to";
}

}  // namespace
}  // namespace halyard::jit
