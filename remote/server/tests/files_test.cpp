// Which files the server reads for clients, and which it does not.
#include "server/files.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "raw_client.h"
#include "remote/digest.h"

namespace halyard::device_server {
namespace {

namespace fs = std::filesystem;

// A folder `offered` with files, beside a secret.
class FilesTest : public testing::Test {
 protected:
  FilesTest() {
    char name[] = "/tmp/halyard-files-XXXXXX";
    root_ = ::mkdtemp(name);
    fs::create_directories(root_ / "offered/inner");
    write("offered/model.bin", "weights");
    write("offered/inner/part.bin", "more weights");
    write("secret.bin", "a secret");
  }
  ~FilesTest() override { fs::remove_all(root_); }
  void write(const std::string& name, const std::string& text) { std::ofstream(root_ / name) << text; }
  Files files() {
    Result<Files> made = Files::create({(root_ / "offered").string()});
    EXPECT_TRUE(made);
    return *std::move(made);
  }
  // The bytes, or the name of the failure.
  static std::string read(const Files& files, std::string_view path, uint64_t offset, uint64_t size) {
    std::string text;
    const Result<> done = files.read(path, offset, size, [&](std::span<const uint8_t> piece) -> Result<> {
      text.append(piece.begin(), piece.end());
      return {};
    });
    return done ? text : std::string(name(done.error().code()));
  }

  fs::path root_;
};

TEST_F(FilesTest, RangesOfFiles) {
  const Files files = this->files();
  EXPECT_EQ(read(files, "model.bin", 0, 7), "weights");
  EXPECT_EQ(read(files, "inner/part.bin", 5, 7), "weights");
  EXPECT_EQ(read(files, "model.bin", 7, 0), "");
  EXPECT_EQ(read(files, "model.bin", 0, 8), "OUT_OF_RANGE");
  EXPECT_EQ(read(files, "model.bin", 8, 0), "OUT_OF_RANGE");
  EXPECT_EQ(read(files, "model.bin", UINT64_MAX, 1), "OUT_OF_RANGE");
  EXPECT_EQ(read(files, "model.bin", 1, UINT64_MAX), "OUT_OF_RANGE");
  EXPECT_EQ(read(files, "none.bin", 0, 1), "NOT_FOUND");
}

TEST_F(FilesTest, PathsThatLeadOutside) {
  const Files files = this->files();
  for (const std::string& path :
       {std::string("../secret.bin"), std::string("inner/../../secret.bin"), (root_ / "secret.bin").string(),
        std::string("/etc/passwd"), std::string("./model.bin"), std::string("inner//part.bin"),
        std::string("inner/"), std::string(""), std::string("model.bin\0x", 11), std::string(5000, 'a')})
    EXPECT_EQ(read(files, path, 0, 1), "INVALID_ARGUMENT") << path;
}

TEST_F(FilesTest, OtherKindsOfFiles) {
  fs::create_symlink(root_ / "secret.bin", root_ / "offered/link.bin");
  fs::create_symlink("model.bin", root_ / "offered/near.bin");
  fs::create_directory_symlink(root_, root_ / "offered/up");
  ASSERT_EQ(::mkfifo((root_ / "offered/pipe").c_str(), 0600), 0);
  const Files files = this->files();
  for (const char* const path : {"link.bin", "near.bin", "up/secret.bin", "pipe", "inner", "model.bin/x"})
    EXPECT_EQ(read(files, path, 0, 1), "NOT_FOUND") << path;
}

// Somebody exchanges a folder and a link to another one, again and again.
TEST_F(FilesTest, Races) {
  fs::create_directory(root_ / "hidden");
  write("hidden/part.bin", "not weights!");
  const Files files = this->files();
  std::atomic<bool> is_over = false;
  std::thread other([&] {
    const fs::path inner = root_ / "offered/inner", aside = root_ / "aside";
    while (!is_over.load()) {
      fs::rename(inner, aside);
      fs::create_directory_symlink(root_ / "hidden", inner);
      fs::remove(inner);
      fs::rename(aside, inner);
    }
  });
  int found = 0;
  // The other thread may not run for a while, with the link in place.
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  for (int i = 0; i < 20000 || (found == 0 && std::chrono::steady_clock::now() < end); ++i) {
    const std::string bytes = read(files, "inner/part.bin", 0, 12);
    EXPECT_TRUE(bytes == "NOT_FOUND" || bytes == "more weights") << bytes;
    found += bytes == "more weights";
  }
  is_over.store(true);
  other.join();
  EXPECT_GT(found, 0);
}

TEST_F(FilesTest, FoldersThatAreNone) {
  for (const char* const name : {"none", "secret.bin"}) {
    const Result<Files> made = Files::create({(root_ / name).string()});
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().code(), Code::NOT_FOUND);
  }
}

// A client gets bytes of a file only if it knows their digest.
TEST_F(FilesTest, ImportsByDigest) {
  ServerOptions options;
  options.file_folders = {(root_ / "offered").string()};
  ServerOfTest server(options);
  RawClient client(server);
  const auto import = [&](const std::string& path, const std::string& bytes, uint64_t id) {
    const wire::Digest digest =
        remote::to_wire(remote::sha256({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}));
    client.send([&](remote::Message& message) {
      const auto request = wire::CreateRequest(message.builder(), 0x30, 0xC03, UINT64_MAX, bytes.size());
      return wire::CreateMemoryImport(message.builder(), id, id, request, &digest, message.text(path), 0);
    });
    const wire::ToClient* const answer = client.receive();
    return answer && answer->body_as_Done() &&
           remote::failure_of(answer->body_as_Done()->status()).code == HALYARD_OK;
  };
  EXPECT_FALSE(import("model.bin", "guesses", 1));
  EXPECT_FALSE(import("../secret.bin", "a secret", 2));
  EXPECT_FALSE(import((root_ / "secret.bin").string(), "a secret", 3));
  EXPECT_TRUE(import("model.bin", "weights", 4));
  client.read(5, 4, 0, 7);
  ASSERT_TRUE(client.receive());
  EXPECT_EQ(std::string(client.data().begin(), client.data().end()), "weights");
  EXPECT_EQ(server.metric("file_bytes_total"), 7u);
  // Without --files nothing is read.
  ServerOfTest other;
  RawClient stranger(other);
  const wire::Digest digest = remote::to_wire(remote::Sha256{1});
  stranger.send([&](remote::Message& message) {
    const auto request = wire::CreateRequest(message.builder(), 0x30, 0xC03, UINT64_MAX, 7);
    return wire::CreateMemoryImport(message.builder(), 1, 1, request, &digest, message.text("model.bin"), 0);
  });
  const wire::ToClient* const answer = stranger.receive();
  ASSERT_TRUE(answer);
  EXPECT_TRUE(answer->body_as_Need());
}

}  // namespace
}  // namespace halyard::device_server
