// The note of a plugin, in files with one property changed each; versions, sanitizers and paths of plugins.
#include <elf.h>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <limits>

#include "base/elf_note.h"
#include "base/plugin.h"
#include "fixtures.h"
#include "halyard/abi.h"
#include "status_testing.h"

namespace halyard {
namespace {

constexpr PluginKind kKindWithNote = {"driver",    "driver ABI",  HALYARD_NOTE_TYPE_DRIVER, 8, "NOTE_MACRO",
                                      "negotiate", "EXPORT_MACRO"};
#if defined(__x86_64__)
constexpr uint16_t kMachineOfNote = EM_X86_64;
#elif defined(__aarch64__)
constexpr uint16_t kMachineOfNote = EM_AARCH64;
#else
constexpr uint16_t kMachineOfNote = EM_RISCV;
#endif

template <typename T>
void put_bytes(std::vector<uint8_t>& to, const T& value) {
  const auto* const bytes = reinterpret_cast<const uint8_t*>(&value);
  to.insert(to.end(), bytes, bytes + sizeof value);
}

std::vector<uint8_t> note(std::string_view owner, uint32_t type, std::string_view description,
                          size_t alignment = 4) {
  std::vector<uint8_t> bytes;
  put_bytes(bytes,
            Elf64_Nhdr{static_cast<uint32_t>(owner.size()), static_cast<uint32_t>(description.size()), type});
  bytes.insert(bytes.end(), owner.begin(), owner.end());
  bytes.resize((bytes.size() + alignment - 1) / alignment * alignment);
  bytes.insert(bytes.end(), description.begin(), description.end());
  bytes.resize((bytes.size() + alignment - 1) / alignment * alignment);
  return bytes;
}

constexpr std::string_view kNoteOwner(HALYARD_NOTE_OWNER, sizeof HALYARD_NOTE_OWNER);
constexpr std::string_view kNoteText = "12345678";

std::vector<uint8_t> operator+(std::vector<uint8_t> x, const std::vector<uint8_t>& y) {
  x.insert(x.end(), y.begin(), y.end());
  return x;
}

// A shared library: its header, a segment that is loaded, one with notes, and the notes.
struct LibraryWithNote {
  Elf64_Ehdr header = {};
  Elf64_Phdr load = {}, notes = {};
  std::vector<uint8_t> content = note(kNoteOwner, HALYARD_NOTE_TYPE_DRIVER, kNoteText);

  LibraryWithNote() {
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_ident[EI_DATA] = ELFDATA2LSB;
    header.e_machine = kMachineOfNote;
    header.e_type = ET_DYN;
    header.e_phoff = sizeof header;
    header.e_phnum = 2;
    header.e_phentsize = sizeof(Elf64_Phdr);
    load.p_type = PT_LOAD;
    load.p_filesz = sizeof header;
    notes.p_type = PT_NOTE;
    notes.p_align = 4;
    notes.p_offset = sizeof header + 2 * sizeof(Elf64_Phdr);
    has(content);
  }
  LibraryWithNote& has(std::vector<uint8_t> bytes) {
    content = std::move(bytes);
    notes.p_filesz = content.size();
    return *this;
  }
  std::vector<uint8_t> bytes() const {
    std::vector<uint8_t> file;
    put_bytes(file, header);
    put_bytes(file, load);
    put_bytes(file, notes);
    return file + content;
  }
};

Result<std::string> found_note(const std::vector<uint8_t>& file) {
  const std::span<const uint8_t> description = HALYARD_TRY(find_note(file, "the/path", kKindWithNote));
  return std::string(description.begin(), description.end());
}

Result<std::string> note_with(const std::function<void(LibraryWithNote&)>& change) {
  LibraryWithNote library;
  change(library);
  return found_note(library.bytes());
}

TEST(PluginNote, IsThatOfTheOwnerAndTheType) {
  EXPECT_EQ(ASSERT_VALUE(found_note(LibraryWithNote().bytes())), kNoteText);
  // Others are before it, and it may have grown; of several the first counts.
  const std::vector<uint8_t> others =
      note("GNU\0", 3, "abcde") + note("", 1, "") + note("Halyar", 1, kNoteText);
  EXPECT_EQ(ASSERT_VALUE(note_with([&](LibraryWithNote& it) {
              it.has(others + note(kNoteOwner, HALYARD_NOTE_TYPE_MODULE, kNoteText) +
                     note(kNoteOwner, HALYARD_NOTE_TYPE_DRIVER, "first...and more") +
                     note(kNoteOwner, HALYARD_NOTE_TYPE_DRIVER, "second.."));
            })),
            "first...");
  EXPECT_EQ(ASSERT_VALUE(note_with([](LibraryWithNote& it) {
              it.notes.p_align = 8;
              it.has(note("GNU\0", 3, "abcde", 8) + note(kNoteOwner, HALYARD_NOTE_TYPE_DRIVER, kNoteText, 8));
            })),
            kNoteText);
  // A segment behind the note is checked, but not searched.
  EXPECT_EQ(ASSERT_VALUE(note_with([](LibraryWithNote& it) {
              it.load = it.notes;
              it.load.p_filesz = 36;
              std::swap(it.load, it.notes);
            })),
            kNoteText);
}

TEST(PluginNote, OtherFilesAreNoLibraries) {
  const std::string_view none = "'the/path' is not a shared library (no ELF file)";
  EXPECT_FAILS(INVALID_ARGUMENT, none, found_note({}));
  EXPECT_FAILS(INVALID_ARGUMENT, none, found_note({0x7F, 'E', 'L', 'F'}));
  EXPECT_FAILS(INVALID_ARGUMENT, none, note_with([](LibraryWithNote& it) { it.header.e_ident[1] = 'e'; }));
  EXPECT_FAILS(INVALID_ARGUMENT, "is not a 64-bit library",
               note_with([](LibraryWithNote& it) { it.header.e_ident[EI_CLASS] = ELFCLASS32; }));
  EXPECT_FAILS(INCOMPATIBLE, "is for a big-endian machine",
               note_with([](LibraryWithNote& it) { it.header.e_ident[EI_DATA] = ELFDATA2MSB; }));
  EXPECT_FAILS(INVALID_ARGUMENT, "but not a shared library",
               note_with([](LibraryWithNote& it) { it.header.e_type = ET_EXEC; }));
  EXPECT_FAILS(INCOMPATIBLE, "is for s390, this machine is",
               note_with([](LibraryWithNote& it) { it.header.e_machine = EM_S390; }));
  EXPECT_FAILS(INCOMPATIBLE, "is for ELF machine 4711",
               note_with([](LibraryWithNote& it) { it.header.e_machine = 4711; }));
}

TEST(PluginNote, AFileThatEndsEarlyIsDamaged) {
  const std::vector<uint8_t> whole = LibraryWithNote().bytes();
  for (size_t size = 0; size < whole.size(); ++size) {
    SCOPED_TRACE(size);
    const std::vector<uint8_t> part(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(size));
    const Result<std::string> result = found_note(part);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code(), Code::INVALID_ARGUMENT);
    EXPECT_EQ(result.error().text().find("is damaged") != std::string::npos, size >= EI_NIDENT);
  }
}

TEST(PluginNote, NumbersThatReachBeyondTheFileAreDamage) {
  constexpr uint64_t kMost = std::numeric_limits<uint64_t>::max();
  const std::string_view outside = "its program headers lie outside of the file";
  EXPECT_FAILS(INVALID_ARGUMENT, "its program headers are too short",
               note_with([](LibraryWithNote& it) { it.header.e_phentsize = sizeof(Elf64_Phdr) - 1; }));
  EXPECT_FAILS(INVALID_ARGUMENT, outside, note_with([](LibraryWithNote& it) { it.header.e_phnum = 3; }));
  EXPECT_FAILS(INVALID_ARGUMENT, outside, note_with([&](LibraryWithNote& it) { it.header.e_phoff = kMost; }));
  EXPECT_FAILS(INVALID_ARGUMENT, outside,
               note_with([&](LibraryWithNote& it) { it.header.e_phoff = kMost - sizeof(Elf64_Phdr) + 1; }));
  EXPECT_FAILS(INVALID_ARGUMENT, "a segment reaches beyond its end",
               note_with([](LibraryWithNote& it) { it.load.p_filesz = it.bytes().size() + 1; }));
  EXPECT_FAILS(INVALID_ARGUMENT, "a segment reaches beyond its end",
               note_with([&](LibraryWithNote& it) { it.load.p_offset = kMost; }));
  EXPECT_EQ(ASSERT_VALUE(note_with([](LibraryWithNote& it) { it.load.p_filesz = it.bytes().size(); })),
            kNoteText);
  EXPECT_FAILS(INVALID_ARGUMENT, "its notes lie outside of the file",
               note_with([](LibraryWithNote& it) { ++it.notes.p_filesz; }));
  EXPECT_FAILS(INVALID_ARGUMENT, "its note reaches beyond its segment",
               note_with([](LibraryWithNote& it) { --it.notes.p_filesz; }));
  EXPECT_FAILS(INVALID_ARGUMENT, "its note has 7 bytes, expected 8", note_with([](LibraryWithNote& it) {
                 it.has(note(kNoteOwner, HALYARD_NOTE_TYPE_DRIVER, "1234567"));
               }));
  EXPECT_FAILS(INVALID_ARGUMENT, "its notes are longer than any driver's",
               note_with([](LibraryWithNote& it) { it.has(std::vector<uint8_t>((1 << 20) + 1)); }));
}

TEST(PluginNote, ALibraryWithoutItsNoteIsNone) {
  const std::string_view none = "it has no note of owner 'Halyard'; a driver states one with NOTE_MACRO";
  EXPECT_FAILS(NOT_FOUND, none,
               note_with([](LibraryWithNote& it) { it.header.e_phnum = it.header.e_phentsize = 0; }));
  EXPECT_FAILS(NOT_FOUND, none, note_with([](LibraryWithNote& it) { it.has({}); }));
  EXPECT_FAILS(NOT_FOUND, none, note_with([](LibraryWithNote& it) { it.has(note("GNU\0", 1, kNoteText)); }));
  // Behind a damaged note of another owner nothing can be found.
  const std::vector<uint8_t> ours = note(kNoteOwner, HALYARD_NOTE_TYPE_DRIVER, kNoteText);
  for (const Elf64_Nhdr& header : {Elf64_Nhdr{4, 4096, 1}, Elf64_Nhdr{4096, 4, 1}}) {
    std::vector<uint8_t> damaged;
    put_bytes(damaged, header);
    EXPECT_FAILS(NOT_FOUND, none,
                 note_with([&](LibraryWithNote& it) { it.has(damaged + note("GNU\0", 1, "") + ours); }));
  }
  EXPECT_FAILS(
      INVALID_ARGUMENT, "'the/path' is a Halyard native module; expected a driver",
      note_with([](LibraryWithNote& it) { it.has(note(kNoteOwner, HALYARD_NOTE_TYPE_MODULE, kNoteText)); }));
  EXPECT_FAILS(INCOMPATIBLE, "has a note of type 77, this Halyard supports type 1",
               note_with([](LibraryWithNote& it) { it.has(note(kNoteOwner, 77, kNoteText)); }));
}

TEST(PluginNote, AnotherKindNamesADriver) {
  PluginKind module = kKindWithNote;
  module.what = "native module";
  module.note_type = HALYARD_NOTE_TYPE_MODULE;
  EXPECT_FAILS(INVALID_ARGUMENT, "is a Halyard driver; expected a native module",
               find_note(LibraryWithNote().bytes(), "the/path", module));
}

TEST(PluginNote, OfAPath) {
  const TemporaryFolder folder;
  EXPECT_FAILS(NOT_FOUND, "cannot examine driver", read_plugin_note(folder / "none", kKindWithNote));
  EXPECT_FAILS(INVALID_ARGUMENT, "is not a file; expected a Halyard driver",
               read_plugin_note(folder / "", kKindWithNote));
}

TEST(PluginAbi, HasAVersionInCommon) {
  const auto check = [](AbiRange plugin) { return check_abi(kKindWithNote, "p", plugin, {3, 5}); };
  for (const AbiRange& range :
       {AbiRange{3, 3}, AbiRange{1, 3}, AbiRange{5, 9}, AbiRange{1, 9}, AbiRange{4, 4}})
    EXPECT_TRUE(check(range)) << to_text(range);
  EXPECT_FAILS(INCOMPATIBLE, "version 0 marks an unfinished driver ABI", check({0, 4}));
  EXPECT_FAILS(INCOMPATIBLE, "supports driver ABI 6..8, this Halyard supports 3..5", check({6, 8}));
  EXPECT_FAILS(INCOMPATIBLE, "or a newer Halyard", check({6, 8}));
  EXPECT_FAILS(INCOMPATIBLE, "supports driver ABI 2, this", check({2, 2}));
  EXPECT_FAILS(INCOMPATIBLE, "or an older Halyard", check({2, 2}));
}

TEST(PluginSanitizer, IsNoneOrThatOfTheHost) {
  EXPECT_TRUE(check_sanitizer(kKindWithNote, "p", HALYARD_SANITIZER_NONE));
  EXPECT_TRUE(check_sanitizer(kKindWithNote, "p", HALYARD_SANITIZER_KIND));
  const std::pair<uint32_t, std::string_view> others[] = {{HALYARD_SANITIZER_ADDRESS, "AddressSanitizer"},
                                                          {HALYARD_SANITIZER_THREAD, "ThreadSanitizer"},
                                                          {HALYARD_SANITIZER_MEMORY, "MemorySanitizer"},
                                                          {99, "an unknown sanitizer"}};
  for (const auto& [kind, name] : others) {
    EXPECT_EQ(sanitizer_name(kind), name);
    if (kind == HALYARD_SANITIZER_KIND) continue;
    EXPECT_FAILS(INCOMPATIBLE, "was built with " + std::string(name),
                 check_sanitizer(kKindWithNote, "p", kind));
  }
  EXPECT_STREQ(sanitizer_name(HALYARD_SANITIZER_NONE), "no sanitizer");
}

TEST(PluginPath, IsAbsolute) {
  EXPECT_EQ(ASSERT_VALUE(plugin_path("/a/b.so", kKindWithNote)), "/a/b.so");
  EXPECT_TRUE(ASSERT_VALUE(plugin_path("b.so", kKindWithNote)).ends_with("/b.so"));
  EXPECT_FAILS(INVALID_ARGUMENT, "'' is not the path of a driver", plugin_path("", kKindWithNote));
}

}  // namespace
}  // namespace halyard
