// For gdb, creates a small object file for each function: a section at its address with one symbol. gdb finds
// the files in a list that this library keeps for it.
#include "front/names.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

#include "halyard/private_folder.hpp"

// Specified by gdb's manual, "JIT Compilation Interface".
extern "C" {
struct jit_code_entry {
  jit_code_entry* next_entry;
  jit_code_entry* prev_entry;
  const char* symfile_addr;
  uint64_t symfile_size;
};
struct jit_descriptor {
  uint32_t version;
  uint32_t action_flag;  // 0: nothing, 1: registered, 2: unregistered
  jit_code_entry* relevant_entry;
  jit_code_entry* first_entry;
};
__attribute__((visibility("default"))) jit_descriptor __jit_debug_descriptor = {1, 0, nullptr, nullptr};
// gdb sets a breakpoint here and reads the list.
__attribute__((visibility("default"), noinline)) void __jit_debug_register_code() {
  __asm__ volatile("" ::: "memory");
}
}

namespace halyard::jit {

namespace {

enum Action : uint32_t { kRegister = 1, kUnregister = 2 };

void tell_gdb(jit_code_entry* entry, Action action) {
  __jit_debug_descriptor.relevant_entry = entry;
  __jit_debug_descriptor.action_flag = action;
  __jit_debug_register_code();
}

std::vector<char> object_file(const std::string& name, uintptr_t address, size_t size) {
  enum Section : uint16_t { kNone, kText, kSymbols, kStrings, kSections };
  const std::string strings = '\0' + name + '\0';
  static constexpr char kSectionNames[] = "\0.text\0.symtab\0.strtab";
  const Elf64_Sym symbols[2] = {{}, {1, ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), STV_DEFAULT, kText, 0, size}};
  Elf64_Ehdr header = {};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_VERSION] = EV_CURRENT;
  header.e_type = ET_REL;
#if defined(__x86_64__)
  header.e_machine = EM_X86_64;
#elif defined(__aarch64__)
  header.e_machine = EM_AARCH64;
#endif
  header.e_version = EV_CURRENT;
  header.e_ehsize = sizeof header;
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = kSections;
  header.e_shstrndx = kStrings;
  // Names of sections and of symbols share a table.
  const std::string table(strings + std::string(kSectionNames, sizeof kSectionNames));
  const auto section_name = [&](size_t offset) { return static_cast<uint32_t>(strings.size() + offset); };
  std::array<Elf64_Shdr, kSections> sections = {};
  const size_t symbols_at = sizeof header;
  const size_t strings_at = symbols_at + sizeof symbols;
  const size_t sections_at = (strings_at + table.size() + 7) & ~size_t{7};
  sections[kText] = {section_name(1), SHT_NOBITS, SHF_ALLOC | SHF_EXECINSTR, address, 0, size, 0, 0, 16, 0};
  sections[kSymbols] = {section_name(7), SHT_SYMTAB, 0, 0, symbols_at,
                        sizeof symbols,  kStrings,   1, 8, sizeof symbols[0]};
  sections[kStrings] = {section_name(15), SHT_STRTAB, 0, 0, strings_at, table.size(), 0, 0, 1, 0};
  header.e_shoff = sections_at;
  std::vector<char> file(sections_at + sizeof sections);
  std::memcpy(file.data(), &header, sizeof header);
  std::memcpy(file.data() + symbols_at, symbols, sizeof symbols);
  std::memcpy(file.data() + strings_at, table.data(), table.size());
  std::memcpy(file.data() + sections_at, sections.data(), sizeof sections);
  return file;
}

// perf reads "ADDRESS SIZE NAME", in hexadecimal.
void tell_perf(const std::string& name, uintptr_t address, size_t size) {
  const std::string path = "/tmp/perf-" + std::to_string(::getpid()) + ".map";
  // Any user can create this file. Refuses a pipe, which might have no reader, and files of other users.
  const int file = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC,
                          S_IRUSR | S_IWUSR);
  struct stat info = {};
  if (file < 0) return;
  if (::fstat(file, &info) != 0 || !PrivateFolder::is_private_file(info)) {
    ::close(file);
    return;
  }
  const std::string line = [&] {
    std::array<char, 40> numbers;
    std::snprintf(numbers.data(), numbers.size(), "%zx %zx ", static_cast<size_t>(address), size);
    return numbers.data() + name + '\n';
  }();
  // Writes with one call, so that lines of several threads do not mix. If it fails, perf shows an address.
  [[maybe_unused]] const ssize_t written = ::write(file, line.data(), line.size());
  ::close(file);
}

bool wants(std::string_view whom) {
  const char* const value = std::getenv("HALYARD_JIT_NAMES");
  return value && ("," + std::string(value) + ",").contains("," + std::string(whom) + ",");
}

}  // namespace

struct GdbName::Entry {
  jit_code_entry link = {};
  std::vector<char> file;
};

GdbName::GdbName(const std::string& name, uintptr_t address, size_t size)
    : entry_(std::make_unique<Entry>()) {
  entry_->file = object_file(name, address, size);
  jit_code_entry& link = entry_->link;
  link.symfile_addr = entry_->file.data();
  link.symfile_size = entry_->file.size();
  link.next_entry = __jit_debug_descriptor.first_entry;
  if (link.next_entry) link.next_entry->prev_entry = &link;
  __jit_debug_descriptor.first_entry = &link;
  tell_gdb(&link, kRegister);
}

GdbName::~GdbName() {
  jit_code_entry& link = entry_->link;
  if (link.prev_entry) link.prev_entry->next_entry = link.next_entry;
  if (link.next_entry) link.next_entry->prev_entry = link.prev_entry;
  if (__jit_debug_descriptor.first_entry == &link) __jit_debug_descriptor.first_entry = link.next_entry;
  tell_gdb(&link, kUnregister);
}

std::unique_ptr<GdbName> announce(const std::string& name, uintptr_t address, size_t size) {
  if (wants("perf")) tell_perf(name, address, size);
  return wants("gdb") ? std::make_unique<GdbName>(name, address, size) : nullptr;
}

}  // namespace halyard::jit
