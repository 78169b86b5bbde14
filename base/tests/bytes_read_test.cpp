// Reading files: irregular files are read completely, in pieces; unreadable paths give the reason.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "base/bytes.h"
#include "fixtures.h"
#include "status_testing.h"

namespace halyard {
namespace {

std::vector<uint8_t> pattern(size_t size) {
  std::vector<uint8_t> bytes(size);
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<uint8_t>(i * 131 + i / 251);
  return bytes;
}

// The bytes read from a pipe to which these bytes are written.
Result<Ref<Bytes>> through_a_pipe(const std::vector<uint8_t>& bytes) {
  int ends[2];
  EXPECT_EQ(::pipe(ends), 0);
  std::jthread writer([&bytes, to = ends[1]] {
    for (size_t at = 0; at < bytes.size();) {
      const ssize_t size = ::write(to, bytes.data() + at, bytes.size() - at);
      if (size <= 0) break;
      at += static_cast<size_t>(size);
    }
    ::close(to);
  });
  Result<Ref<Bytes>> read = Bytes::map_file("/dev/fd/" + std::to_string(ends[0]));
  ::close(ends[0]);
  return read;
}

TEST(Bytes, PipesOfEverySizeAreReadWhole) {
  constexpr size_t kPiece = size_t{1} << 20;
  for (const size_t size :
       {size_t{0}, size_t{1}, kPiece - 1, kPiece, kPiece + 1, 3 * kPiece, 3 * kPiece + 5}) {
    const std::vector<uint8_t> written = pattern(size);
    const auto read = ASSERT_VALUE(through_a_pipe(written));
    EXPECT_EQ(read->size(), size);
    EXPECT_TRUE(std::ranges::equal(read->span(), written)) << size << " bytes";
    EXPECT_EQ(reinterpret_cast<uintptr_t>(read->data()) % 64, 0u);
  }
}

TEST(Bytes, AFileWithoutAnEndIsRefused) {
  EXPECT_FAILS(RESOURCE_EXHAUSTED, "'/dev/zero'", Bytes::map_file("/dev/zero"));
}

TEST(Bytes, PathsThatCannotBeReadSayWhy) {
  const TemporaryFolder folder;
  std::filesystem::create_symlink(folder / "loop", folder / "loop");
  const struct {
    std::string path;
    Code code;
  } paths[] = {
      {folder / "missing", Code::NOT_FOUND},
      {"/dev/null/missing", Code::NOT_FOUND},
      {folder.path(), Code::INVALID_ARGUMENT},
      {folder / "loop", Code::INVALID_ARGUMENT},
      {folder / std::string(5000, 'x'), Code::INVALID_ARGUMENT},
  };
  for (const auto& [path, code] : paths) {
    EXPECT_TRUE(fails_with(Bytes::map_file(path), code, "'" + path + "'")) << path;
  }
}

}  // namespace
}  // namespace halyard
