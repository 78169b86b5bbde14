// Loads drivers from files: every reason for refusing a file, and its error.
#include "hal/driver/driver_library.h"

#include <elf.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>

#include "base/elf_note.h"
#include "hal/queue/queue.h"
#include "sample_drivers.h"

namespace halyard::hal {
namespace {

using FileBytes = std::vector<uint8_t>;

FileBytes sample_bytes() { return file_bytes(sample_path("sample")); }

Elf64_Ehdr header_of(const FileBytes& file) {
  Elf64_Ehdr header;
  std::memcpy(&header, file.data(), sizeof header);
  return header;
}

// The offset of the program header of the segment that holds this project's note, and of the note in it.
struct NotePlace {
  size_t segment = 0;
  size_t record = 0;
};
NotePlace find_note(const FileBytes& file) {
  const Elf64_Ehdr header = header_of(file);
  for (size_t i = 0; i < header.e_phnum; ++i) {
    const size_t at = header.e_phoff + i * header.e_phentsize;
    Elf64_Phdr segment;
    std::memcpy(&segment, file.data() + at, sizeof segment);
    if (segment.p_type != PT_NOTE) continue;
    const uint8_t owner[] = {'H', 'a', 'l', 'y', 'a', 'r', 'd', 0};
    const auto begin = file.begin() + static_cast<ptrdiff_t>(segment.p_offset);
    const auto found = std::search(begin, begin + static_cast<ptrdiff_t>(segment.p_filesz), owner, owner + 8);
    if (found != begin + static_cast<ptrdiff_t>(segment.p_filesz))
      return {at, static_cast<size_t>(found - file.begin()) - sizeof(Elf64_Nhdr)};
  }
  ADD_FAILURE() << "no note in the sample driver";
  return {};
}

template <typename T>
FileBytes patched(FileBytes file, size_t at, T value) {
  EXPECT_LE(at + sizeof value, file.size());
  std::memcpy(file.data() + at, &value, sizeof value);
  return file;
}

Result<std::span<const uint8_t>> note_of(const FileBytes& file) {
  return find_note(file, "FILE", kDriverPlugin);
}

TEST(ElfNote, OfADriver) {
  const halyard_driver_note_t note = ASSERT_VALUE(read_driver_note(sample_path("sample")));
  EXPECT_EQ(note.abi_min, 1u);
  EXPECT_EQ(note.abi_max, 1u);
  EXPECT_EQ(note.sanitizer, HALYARD_SANITIZER_KIND);
  EXPECT_EQ(note_library(note), "sample");
  EXPECT_EQ(note_version(note), "1.2");
  EXPECT_EQ(note_kinds(note), (std::vector<std::string>{"sample", "sample-b"}));
}

TEST(ElfNote, FilesThatAreNoLibraries) {
  EXPECT_FAILS(INVALID_ARGUMENT, "no ELF file", note_of({}));
  EXPECT_FAILS(INVALID_ARGUMENT, "no ELF file", note_of({0x7F, 'E', 'L'}));
  EXPECT_FAILS(INVALID_ARGUMENT, "no ELF file", note_of(FileBytes(4096, 'x')));
  EXPECT_FAILS(INVALID_ARGUMENT, "FILE", note_of(FileBytes(4096, 'x')));
  const FileBytes file = sample_bytes();
  EXPECT_FAILS(INVALID_ARGUMENT, "not a 64-bit library",
               note_of(patched<uint8_t>(file, EI_CLASS, ELFCLASS32)));
  EXPECT_FAILS(INCOMPATIBLE, "big-endian", note_of(patched<uint8_t>(file, EI_DATA, ELFDATA2MSB)));
  EXPECT_FAILS(INVALID_ARGUMENT, "not a shared library",
               note_of(patched<uint16_t>(file, offsetof(Elf64_Ehdr, e_type), ET_REL)));
}

TEST(ElfNote, OtherMachinesAreNamed) {
  const FileBytes file = sample_bytes();
  const size_t at = offsetof(Elf64_Ehdr, e_machine);
  EXPECT_FAILS(INCOMPATIBLE, "is for s390, this machine is", note_of(patched<uint16_t>(file, at, EM_S390)));
  EXPECT_FAILS(INCOMPATIBLE, "is for ELF machine 64000", note_of(patched<uint16_t>(file, at, 64000)));
}

TEST(ElfNote, ProgramHeadersOutsideTheFile) {
  const FileBytes file = sample_bytes();
  for (const uint64_t offset :
       {uint64_t{file.size()}, uint64_t{file.size() - 10}, UINT64_MAX, UINT64_MAX - 55}) {
    EXPECT_FAILS(INVALID_ARGUMENT, "program headers lie outside",
                 note_of(patched<uint64_t>(file, offsetof(Elf64_Ehdr, e_phoff), offset)));
  }
  EXPECT_FAILS(INVALID_ARGUMENT, "program headers are too short",
               note_of(patched<uint16_t>(file, offsetof(Elf64_Ehdr, e_phentsize), 8)));
  EXPECT_FAILS(NOT_FOUND, "no note", note_of(patched<uint16_t>(file, offsetof(Elf64_Ehdr, e_phnum), 0)));
}

TEST(ElfNote, NotesOutsideTheFile) {
  const FileBytes file = sample_bytes();
  const size_t segment = find_note(file).segment;
  for (const uint64_t offset : {uint64_t{file.size()}, uint64_t{file.size() - 3}, UINT64_MAX}) {
    EXPECT_FAILS(INVALID_ARGUMENT, "notes lie outside",
                 note_of(patched<uint64_t>(file, segment + offsetof(Elf64_Phdr, p_offset), offset)));
  }
  for (const uint64_t size : {uint64_t{file.size() + 1}, UINT64_MAX}) {
    EXPECT_FAILS(INVALID_ARGUMENT, "notes lie outside",
                 note_of(patched<uint64_t>(file, segment + offsetof(Elf64_Phdr, p_filesz), size)));
  }
}

TEST(ElfNote, DamagedNotes) {
  const FileBytes file = sample_bytes();
  const size_t record = find_note(file).record;
  const size_t owner_size = record + offsetof(Elf64_Nhdr, n_namesz);
  const size_t size = record + offsetof(Elf64_Nhdr, n_descsz);
  const size_t type = record + offsetof(Elf64_Nhdr, n_type);
  EXPECT_FAILS(INVALID_ARGUMENT, "its note has 271 bytes, expected 272",
               note_of(patched<uint32_t>(file, size, 271)));
  EXPECT_FAILS(INVALID_ARGUMENT, "its note has 0 bytes", note_of(patched<uint32_t>(file, size, 0)));
  EXPECT_FAILS(INVALID_ARGUMENT, "reaches beyond", note_of(patched<uint32_t>(file, size, UINT32_MAX)));
  // A note with an unreadable owner may belong to any project.
  EXPECT_FAILS(NOT_FOUND, "no note of owner 'Halyard'",
               note_of(patched<uint32_t>(file, owner_size, UINT32_MAX)));
  EXPECT_FAILS(INCOMPATIBLE, "a note of type 99, this Halyard supports type 1",
               note_of(patched<uint32_t>(file, type, 99)));
  EXPECT_FAILS(INVALID_ARGUMENT, "'FILE' is a Halyard native module; expected a driver",
               note_of(patched<uint32_t>(file, type, HALYARD_NOTE_TYPE_MODULE)));
  EXPECT_FAILS(NOT_FOUND, "no note of owner 'Halyard'", note_of(patched<uint8_t>(file, record + 12, 'M')));
}

TEST(ElfNote, NotesThatAreTooLong) {
  FileBytes file = sample_bytes();
  const size_t segment = find_note(file).segment;
  const uint64_t begin = file.size();
  file.resize(begin + (2u << 20));
  file = patched<uint64_t>(file, segment + offsetof(Elf64_Phdr, p_offset), begin);
  file = patched<uint64_t>(file, segment + offsetof(Elf64_Phdr, p_filesz), 2u << 20);
  EXPECT_FAILS(INVALID_ARGUMENT, "longer than any driver's", note_of(file));
}

// A file truncated anywhere before the end of its note is refused.
TEST(ElfNote, TruncatedAtEveryLength) {
  const FileBytes file = sample_bytes();
  const size_t end = find_note(file).record + sizeof(halyard_driver_note_record_t);
  for (size_t size = 0; size < end; ++size) {
    const FileBytes part(file.begin(), file.begin() + static_cast<ptrdiff_t>(size));
    ASSERT_TRUE(fails_with(note_of(part), Code::INVALID_ARGUMENT, "")) << size;
  }
  // A library with a complete note but a truncated segment is refused too: mapping it would crash the
  // process.
  EXPECT_TRUE(fails_with(note_of(FileBytes(file.begin(), file.begin() + static_cast<ptrdiff_t>(end))),
                         Code::INVALID_ARGUMENT, "cut short"));
  EXPECT_TRUE(note_of(file));
}

// Whichever byte of headers and notes is wrong, the reader stays within the file (sanitizers check this) and
// returns.
TEST(ElfNote, EveryByteChanged) {
  const FileBytes file = sample_bytes();
  const size_t end = find_note(file).record + sizeof(halyard_driver_note_record_t);
  size_t refused = 0;
  for (size_t at = 0; at < end; ++at) {
    for (const uint8_t mask : {0x01, 0x80, 0xFF}) {
      FileBytes bad = file;
      bad[at] ^= mask;
      if (!note_of(bad)) ++refused;
    }
  }
  EXPECT_GT(refused, 0u);
}

TEST(ElfNote, PathsThatAreNoFiles) {
  const TemporaryFolder folder;
  EXPECT_FAILS(NOT_FOUND, folder.path() + "/none.so", read_driver_note(folder.path() + "/none.so"));
  EXPECT_FAILS(INVALID_ARGUMENT, "is not a file", read_driver_note(folder.path()));
  const std::string pipe = folder.path() + "/halyard-driver-pipe.so";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_FAILS(INVALID_ARGUMENT, "is not a file", read_driver_note(pipe));
  EXPECT_FAILS(INVALID_ARGUMENT, "no ELF file", read_driver_note(folder.write("empty.so", {})));
}

halyard_driver_note_t make_note(uint32_t low, uint32_t high, const char* library, const char* kinds) {
  halyard_driver_note_t note = {};
  note.abi_min = low;
  note.abi_max = high;
  std::memcpy(note.library, library, std::strlen(library));
  std::memcpy(note.kinds, kinds, std::strlen(kinds));
  return note;
}

TEST(DriverNote, IsCheckedBeforeAnythingRuns) {
  const auto check = [](uint32_t low, uint32_t high, const char* library, const char* kinds) {
    return check_driver_note(make_note(low, high, library, kinds), "/x/halyard-driver-a.so");
  };
  EXPECT_OK(check(1, 1, "a", "a,b-c,d_e"));
  EXPECT_OK(check(1, 9, "a", "a"));
  EXPECT_FAILS(INCOMPATIBLE,
               "supports driver ABI 2..3, this Halyard supports 1; install a driver built for this Halyard",
               check(2, 3, "a", "a"));
  EXPECT_FAILS(INCOMPATIBLE, "version 0", check(0, 0, "a", "a"));
  EXPECT_FAILS(INCOMPATIBLE, "version 0", check(0, 1, "a", "a"));
  EXPECT_FAILS(INVALID_ARGUMENT, "is not valid", check(3, 2, "a", "a"));
  for (const char* library : {"", "../a"})
    EXPECT_FAILS(INVALID_ARGUMENT, "is not valid", check(1, 1, library, "a")) << library;
  for (const char* kinds : {"", "a,,b", "a://b"})
    EXPECT_FAILS(INVALID_ARGUMENT, "is not valid", check(1, 1, "a", kinds)) << kinds;
  EXPECT_FAILS(INVALID_ARGUMENT, "calls itself 'b'; expected a file with the name halyard-driver-b.so",
               check(1, 1, "b", "a"));
}

TEST(DriverNote, TextsMayFillTheirFields) {
  halyard_driver_note_t note = make_note(1, 1, "12345678901234567890123456789012", "a");
  std::memset(note.kinds, 'k', sizeof note.kinds);
  EXPECT_EQ(note_library(note), "12345678901234567890123456789012");
  EXPECT_EQ(note_kinds(note), std::vector<std::string>{std::string(192, 'k')});
}

TEST(DriverNote, SanitizersMustMatchTheHost) {
  halyard_driver_note_t note = make_note(1, 1, "a", "a");
  for (uint32_t kind = 0; kind < 6; ++kind) {
    note.sanitizer = kind;
    const bool fits = kind == HALYARD_SANITIZER_NONE || kind == HALYARD_SANITIZER_KIND;
    const Result<> result = check_driver_note(note, "/x/halyard-driver-a.so");
    EXPECT_EQ(result.has_value(), fits) << kind;
    if (!fits) {
      EXPECT_FAILS(INCOMPATIBLE, "was built with", result);
    }
  }
}

TEST(DriverLibrary, OpensADriver) {
  const Ref<DriverLibrary> library = ASSERT_VALUE(DriverLibrary::open(sample_path("sample")));
  EXPECT_EQ(library->path(), sample_path("sample"));
  ASSERT_EQ(library->kinds().size(), 2u);
  EXPECT_EQ(library->kinds()[0].name, "sample");
  EXPECT_EQ(library->kinds()[0].description, "the first sample");
  EXPECT_EQ(library->kinds()[1].name, "sample-b");
  EXPECT_NE(library->instance(), nullptr);
  EXPECT_NE(library->table().queue_submit, nullptr);
  EXPECT_EQ(library->table().queue_flush, nullptr);
}

TEST(DriverLibrary, ListsDevices) {
  auto library = DriverLibrary::open(sample_path("sample")).value();
  auto devices = library->enumerate();
  ASSERT_TRUE(devices);
  ASSERT_EQ(devices->size(), 4u);
  EXPECT_EQ((*devices)[0].kind, "sample");
  EXPECT_EQ((*devices)[0].path, "");
  EXPECT_EQ((*devices)[0].name, "plain sample");
  EXPECT_EQ((*devices)[1].path, "slack");
  EXPECT_EQ((*devices)[1].name, "");
  EXPECT_EQ((*devices)[2].kind, "sample-b");
}

TEST(DriverLibrary, InstancesAreIndependentAndEndOnce) {
  std::vector<std::string> lines;
  const DriverLog log = [&](int32_t severity, std::string_view line) {
    EXPECT_EQ(severity, HALYARD_LOG_INFO);
    lines.emplace_back(line);
  };
  auto first = DriverLibrary::open(sample_path("sample"), log).value();
  auto second = DriverLibrary::open(sample_path("sample"), log).value();
  EXPECT_NE(first->instance(), second->instance());
  EXPECT_EQ(lines, (std::vector<std::string>{"driver sample: ready", "driver sample: ready"}));
  first = nullptr;
  EXPECT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines.back(), "driver sample: gone");
  EXPECT_TRUE(second->enumerate());
  second = nullptr;
  EXPECT_EQ(lines.size(), 4u);
}

TEST(DriverLibrary, RefusesByTheNoteWithoutRunningAnything) {
  // These drivers end the process when they are loaded.
  EXPECT_FAILS(INCOMPATIBLE, "supports driver ABI 2..3", DriverLibrary::open(sample_path("future")));
  EXPECT_FAILS(INCOMPATIBLE, "version 0", DriverLibrary::open(sample_path("zero")));
  EXPECT_FAILS(INCOMPATIBLE, "MemorySanitizer", DriverLibrary::open(sample_path("instrumented")));
  EXPECT_FAILS(NOT_FOUND, "not a Halyard driver", DriverLibrary::open(sample_path("noteless")));
}

TEST(DriverLibrary, RefusesAFileWithAnotherName) {
  const TemporaryFolder folder;
  const std::string path = folder.add("sample", "halyard-driver-other.so");
  EXPECT_FAILS(INVALID_ARGUMENT,
               "calls itself 'sample'; expected a file with the name halyard-driver-sample.so",
               DriverLibrary::open(path));
}

TEST(DriverLibrary, NamesTheFailedStep) {
  EXPECT_FAILS(NOT_FOUND, "/none/halyard-driver-x.so", DriverLibrary::open("/none/halyard-driver-x.so"));
  EXPECT_FAILS(UNAVAILABLE, "function_that_is_nowhere", DriverLibrary::open(sample_path("unresolved")));
  EXPECT_FAILS(INCOMPATIBLE, "does not export halyard_driver_negotiate",
               DriverLibrary::open(sample_path("symbolless")));
  EXPECT_FAILS(INCOMPATIBLE, "only on Sundays", DriverLibrary::open(sample_path("refusing")));
  EXPECT_FAILS(INCOMPATIBLE, "chose driver ABI 7; expected 1", DriverLibrary::open(sample_path("liar")));
  EXPECT_FAILS(INCOMPATIBLE, "negotiated the kinds 'surprise', its note says 'renamed'",
               DriverLibrary::open(sample_path("renamed")));
  EXPECT_FAILS(UNAVAILABLE, "no hardware is plugged in", DriverLibrary::open(sample_path("unavailable")));
  EXPECT_FAILS(UNAVAILABLE, "while initializing driver", DriverLibrary::open(sample_path("unavailable")));
  EXPECT_FAILS(INVALID_ARGUMENT, "", DriverLibrary::open(""));
}

TEST(DriverLibrary, NamesAllMissingFunctions) {
  EXPECT_FAILS(INCOMPATIBLE, "lacks functions that driver ABI 1 demands: memory_allocate, queue_submit",
               DriverLibrary::open(sample_path("older")));
  EXPECT_FAILS(INCOMPATIBLE, "lacks functions that driver ABI 1 demands: initialize, shutdown,",
               DriverLibrary::open(sample_path("empty")));
}

TEST(DriverLibrary, UsesTheKnownPartOfALongerTable) {
  const Ref<DriverLibrary> library = ASSERT_VALUE(DriverLibrary::open(sample_path("newer")));
  EXPECT_NE(library->table().queue_submit, nullptr);
  EXPECT_EQ(library->table().queue_flush, nullptr);  // bytes after the known functions are ignored
}

// The driver fills newer fields if the host's struct has space for them.
TEST(DriverLibrary, PassesItsStructSizesToANewerDriver) {
  const Ref<DriverLibrary> library = ASSERT_VALUE(DriverLibrary::open(sample_path("newer")));
  EXPECT_EQ(library->enumerate().value().size(), 2u);
  const Ref<Device> device = ASSERT_VALUE(Device::open(library, "newer", "", {}));
  EXPECT_EQ(device->properties().queue_count, 4u);
  EXPECT_EQ(device->grade_executable("native", nullptr, 0).grade, 0u + HALYARD_GRADE_NATIVE);
  const Ref<Buffer> buffer = ASSERT_VALUE(Buffer::allocate(*device, 0, 0, 0, 100));
  EXPECT_EQ(device->statistics().value().host_bytes_live, 1u);
}

TEST(DriverLibrary, IgnoresFunctionsPastTheEndOfAShorterTable) {
  const Ref<DriverLibrary> library = ASSERT_VALUE(DriverLibrary::open(sample_path("shorter")));
  EXPECT_EQ(library->table().queue_flush, nullptr);
  EXPECT_NE(library->table().queue_submit, nullptr);
  EXPECT_OK(queue_flush(*ASSERT_VALUE(Device::open(library, "shorter", "", {})), 0));
}

class HostServicesTest : public testing::Test {
 protected:
  const HostServices services_{"d", {}, {}};
  const halyard_host_services_t& table = services_.table();
  void* const host = table.host;
};

TEST_F(HostServicesTest, StatusesAreTheHosts) {
  EXPECT_EQ(table.struct_size, sizeof(halyard_host_services_t));
  halyard_status_t status = table.status_create(host, HALYARD_NOT_FOUND, "nothing here!", 12);
  EXPECT_EQ(table.status_code(host, status), HALYARD_NOT_FOUND);
  EXPECT_STREQ(table.status_message(host, status), "nothing here");
  halyard_status_t other = table.status_retain(host, status);
  EXPECT_EQ(other, status);
  status = table.status_note(host, status, "while looking", 13);
  EXPECT_EQ(Status::adopt(other).text(), "NOT_FOUND; nothing here");
  EXPECT_EQ(Status::adopt(status).text(), "NOT_FOUND; nothing here; while looking");
}

TEST_F(HostServicesTest, NullIsSuccess) {
  EXPECT_EQ(table.status_retain(host, nullptr), nullptr);
  EXPECT_EQ(table.status_note(host, nullptr, "note", 4), nullptr);
  EXPECT_EQ(table.status_code(host, nullptr), HALYARD_OK);
  EXPECT_STREQ(table.status_message(host, nullptr), "");
  table.status_release(host, nullptr);
  table.log(host, HALYARD_LOG_ERROR, "nobody listens", 14);
}

TEST_F(HostServicesTest, InvalidCodesBecomeUnknown) {
  for (const int32_t code : {0, -1, 19, 1000}) {
    const Status status = Status::adopt(table.status_create(table.host, code, nullptr, 0));
    EXPECT_EQ(status.code(), Code::UNKNOWN) << code;
  }
}

}  // namespace
}  // namespace halyard::hal
