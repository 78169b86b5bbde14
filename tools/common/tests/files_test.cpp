// Files that tools read: mapped, streamed or refused, with the reason; writing.
#include "common/files.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/byte_stream.h"
#include "fixtures.h"

namespace halyard::tools {
namespace {

template <typename T>
void expect_failure(const Result<T>& result, halyard_status_code_t code, std::string_view part) {
  ASSERT_FALSE(result) << part;
  EXPECT_EQ(result.error().code, code) << result.error().text;
  EXPECT_NE(result.error().text.find(part), std::string::npos)
      << result.error().text << "; expected " << part;
}

// Writes the text to a pipe; the path of the other end is given to `read`.
template <typename Read>
auto from_pipe(const std::string& text, Read read) {
  int ends[2] = {};
  EXPECT_EQ(::pipe(ends), 0);
  std::thread writer([&text, to = ends[1]] {
    for (size_t at = 0; at < text.size();) {
      const ssize_t count = ::write(to, text.data() + at, text.size() - at);
      if (count <= 0) break;
      at += static_cast<size_t>(count);
    }
    ::close(to);
  });
  auto result = read("/dev/fd/" + std::to_string(ends[0]));
  ::close(ends[0]);
  writer.join();
  return result;
}

TEST(Files, CodesOfTheSystemsErrors) {
  const std::pair<int, halyard_status_code_t> cases[] = {{ENOENT, HALYARD_NOT_FOUND},
                                                         {ENOTDIR, HALYARD_NOT_FOUND},
                                                         {EACCES, HALYARD_PERMISSION_DENIED},
                                                         {EPERM, HALYARD_PERMISSION_DENIED},
                                                         {EROFS, HALYARD_PERMISSION_DENIED},
                                                         {EISDIR, HALYARD_INVALID_ARGUMENT},
                                                         {ENAMETOOLONG, HALYARD_INVALID_ARGUMENT},
                                                         {ELOOP, HALYARD_INVALID_ARGUMENT},
                                                         {EIO, HALYARD_UNAVAILABLE}};
  for (const auto& [error, code] : cases) EXPECT_EQ(code_of_errno(error), code) << error;
}

TEST(Files, ContentsAreMappedOrRead) {
  const TemporaryFolder folder;
  const std::string text(200'000, 'x');
  FileContents file = FileContents::open(folder.write("file", text)).value();
  EXPECT_EQ(file.text(), text);
  const FileContents moved = std::move(file);
  EXPECT_EQ(moved.text(), text);
  EXPECT_EQ(FileContents::open(folder.write("empty", "")).value().text(), "");
  const auto piped = from_pipe(text, [](const std::string& path) { return FileContents::open(path); });
  EXPECT_EQ(piped.value().text(), text);
}

TEST(Files, WhatCannotBeReadSaysWhy) {
  const TemporaryFolder folder;
  expect_failure(FileContents::open(folder / "none"), HALYARD_NOT_FOUND, "cannot open '");
  expect_failure(FileContents::open(folder / "none", "flag file "), HALYARD_NOT_FOUND,
                 "cannot open flag file '");
  expect_failure(FileContents::open(folder.path()), HALYARD_INVALID_ARGUMENT, "is a folder");
  expect_failure(FileContents::open("/dev/zero"), HALYARD_RESOURCE_EXHAUSTED, "save it to a regular file");
  expect_failure(open_file(folder / "none"), HALYARD_NOT_FOUND, "cannot open '");
  expect_failure(open_file(folder.path()), HALYARD_INVALID_ARGUMENT, "is a folder");
  EXPECT_TRUE(open_file(folder.write("file", "x")));
}

TEST(Files, WritingReplacesOrAppends) {
  const TemporaryFolder folder;
  const std::string path = folder / "file";
  const std::vector<uint8_t> ab = {'a', 'b'};
  EXPECT_TRUE(write_file(path, false, ab));
  EXPECT_TRUE(write_file(path, true, ab));
  EXPECT_EQ(file_text(path), "abab");
  EXPECT_TRUE(write_file(path, true, {}));
  EXPECT_TRUE(write_file(path, false, ab));
  EXPECT_EQ(file_text(path), "ab");
  EXPECT_TRUE(write_file(path, false, {}));
  EXPECT_EQ(file_text(path), "");
  expect_failure(write_file(folder / "none/file", false, ab), HALYARD_NOT_FOUND, "check the path");
  if (!std::filesystem::exists("/dev/full")) return;
  expect_failure(write_file("/dev/full", false, ab), HALYARD_UNAVAILABLE, "free space there");
  expect_failure(write_file("/dev/full", false, std::vector<uint8_t>(1 << 20)), HALYARD_UNAVAILABLE,
                 "free space there");
}

TEST(ByteStreams, AreReadInPiecesWithLookahead) {
  const TemporaryFolder folder;
  for (const bool piped : {false, true}) {
    const auto read = [](const std::string& path) {
      ByteStream stream = ByteStream::open(path).value();
      EXPECT_EQ(stream.path(), path);
      EXPECT_TRUE(stream.begins_with("ab"));
      EXPECT_FALSE(stream.begins_with("abd"));
      EXPECT_FALSE(stream.at_end());
      EXPECT_EQ(stream.read(1).value(), std::vector<uint8_t>{'a'});
      EXPECT_EQ(stream.position(), 1u);
      EXPECT_TRUE(stream.begins_with("bc"));
      EXPECT_FALSE(stream.begins_with("bcd"));  // the end comes first
      EXPECT_EQ(stream.read(100).value(), (std::vector<uint8_t>{'b', 'c'}));
      EXPECT_TRUE(stream.at_end());
      EXPECT_FALSE(stream.begins_with("x"));
      EXPECT_TRUE(stream.begins_with(""));
      EXPECT_TRUE(stream.read(5).value().empty());
      EXPECT_TRUE(stream.read(0).value().empty());
      EXPECT_EQ(stream.position(), 3u);
      return 0;
    };
    if (piped) from_pipe("abc", read);
    if (!piped) read(folder.write("file", "abc"));
  }
}

TEST(ByteStreams, AHostileSizeTakesOnlyTheBytesThatAreThere) {
  const TemporaryFolder folder;
  ByteStream file = ByteStream::open(folder.write("file", std::string(300'000, 'x'))).value();
  EXPECT_EQ(file.read(UINT64_MAX).value().size(), 300'000u);
  ByteStream zeros = ByteStream::open("/dev/zero").value();
  expect_failure(zeros.read(kMaxStreamBytes + 1), HALYARD_RESOURCE_EXHAUSTED, "is not a regular file");
  EXPECT_EQ(zeros.read(100'000).value().size(), 100'000u);
  expect_failure(ByteStream::open(folder / "none"), HALYARD_NOT_FOUND, "cannot open");
}

TEST(ByteStreams, AFailedReadIsAnError) {
  // Reads of this process's own memory at address 0 fail.
  ByteStream memory = ByteStream::open("/proc/self/mem").value();
  expect_failure(memory.read(1), HALYARD_UNAVAILABLE, "cannot read '/proc/self/mem'");
}

}  // namespace
}  // namespace halyard::tools
