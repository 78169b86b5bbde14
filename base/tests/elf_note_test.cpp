// The build id of a file, whatever its bytes; features of the processor by name and as a word.
#include "base/elf_note.h"

#include <elf.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "base/cpu_features.h"

namespace halyard {
namespace {

template <typename T>
void append(std::vector<uint8_t>& to, const T& value) {
  const auto* const bytes = reinterpret_cast<const uint8_t*>(&value);
  to.insert(to.end(), bytes, bytes + sizeof value);
}

// A header, two segments of which the second has notes, and two notes: another's, then the build id "abcd".
std::vector<uint8_t> file_with_build_id() {
  std::vector<uint8_t> notes;
  append(notes, Elf64_Nhdr{4, 4, 7});
  notes.insert(notes.end(), {'G', 'N', 'U', 0, 1, 2, 3, 4});
  append(notes, Elf64_Nhdr{4, 4, NT_GNU_BUILD_ID});
  notes.insert(notes.end(), {'G', 'N', 'U', 0, 'a', 'b', 'c', 'd'});
  Elf64_Ehdr header = {};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_phoff = sizeof header;
  header.e_phnum = 2;
  header.e_phentsize = sizeof(Elf64_Phdr);
  Elf64_Phdr load = {}, note = {};
  load.p_type = PT_LOAD;
  note.p_type = PT_NOTE;
  note.p_offset = sizeof header + 2 * sizeof(Elf64_Phdr);
  note.p_filesz = notes.size();
  std::vector<uint8_t> file;
  append(file, header);
  append(file, load);
  append(file, note);
  file.insert(file.end(), notes.begin(), notes.end());
  return file;
}

TEST(BuildId, IsThatOfTheFilesNote) { EXPECT_EQ(find_build_id(file_with_build_id()), "abcd"); }

TEST(BuildId, FilesThatEndAnywhereHaveNone) {
  const std::vector<uint8_t> whole = file_with_build_id();
  for (size_t size = 0; size < whole.size(); ++size) {
    const std::vector<uint8_t> part(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(size));
    EXPECT_EQ(find_build_id(part), "") << size;
  }
}

TEST(BuildId, NumbersThatLieReachNoFurtherThanTheFile) {
  const std::vector<uint8_t> whole = file_with_build_id();
  for (size_t at = 0; at < whole.size(); ++at) {
    for (const uint8_t byte : {0, 1, 0x7F, 0xFF}) {
      std::vector<uint8_t> changed = whole;
      changed[at] = byte;
      EXPECT_LE(find_build_id(changed).size(), whole.size());
    }
  }
}

TEST(CpuFeatures, AWordHasABitForEachThatIsThere) {
  const ProcessorData data = processor_data();
  EXPECT_EQ(cpu_feature("no-such-feature"), std::nullopt);
  EXPECT_EQ(cpu_feature(""), std::nullopt);
#if defined(__x86_64__)
  const std::pair<std::string_view, unsigned> features[] = {
      {"sse3", 0}, {"avx", 10}, {"avx2", 15}, {"avx512f", 20}, {"amx-tile", 50}};
  for (const auto& [name, bit] : features) {
    ASSERT_TRUE(cpu_feature(name).has_value()) << name;
    EXPECT_EQ(*cpu_feature(name), (data[0] >> bit & 1) != 0) << name;
  }
#endif
}

}  // namespace
}  // namespace halyard
