// Bytes of a mapped file that the server has as well are not sent; those of other files are.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "device.h"
#include "fake_host.h"
#include "file_place.h"
#include "server/server.h"

namespace halyard::remote {
namespace {

namespace fs = std::filesystem;

const halyard_host_services_t kServicesOfFiles = fake_services();

struct Mapping {
  explicit Mapping(const fs::path& file) : size(fs::file_size(file)) {
    const int descriptor = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
    bytes = static_cast<uint8_t*>(::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor, 0));
    ::close(descriptor);
  }
  ~Mapping() { ::munmap(bytes, size); }
  size_t size;
  uint8_t* bytes;
};

class FilesOfBoth : public testing::Test {
 protected:
  FilesOfBoth() {
    char name[] = "/tmp/halyard-files-XXXXXX";
    root_ = ::mkdtemp(name);
    for (const char* const side : {"here", "there"}) fs::create_directories(root_ / side / "inner");
  }
  ~FilesOfBoth() override { fs::remove_all(root_); }
  void write(const std::string& file, uint8_t first) {
    std::string text(300000, 0);
    for (size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>(first + i * 7);
    std::ofstream(root_ / file) << text;
  }

  fs::path root_;
};

TEST_F(FilesOfBoth, PlacesOfBytes) {
  write("here/inner/a b.bin", 1);
  const Mapping mapping(root_ / "here/inner/a b.bin");
  const auto place = file_place_of({mapping.bytes + 4096, 1000}, (root_ / "here").string());
  ASSERT_TRUE(place);
  EXPECT_EQ(place->path, "inner/a b.bin");
  EXPECT_EQ(place->offset, 4096u);
  EXPECT_FALSE(file_place_of({mapping.bytes, 1 << 30}, (root_ / "here").string()));
  EXPECT_FALSE(file_place_of({mapping.bytes, 8}, (root_ / "he").string()));
  EXPECT_FALSE(file_place_of({mapping.bytes, 8}, (root_ / "there").string()));
  const std::string heap(64, 'x');
  EXPECT_FALSE(file_place_of({reinterpret_cast<const uint8_t*>(heap.data()), heap.size()}, root_.string()));
}

TEST_F(FilesOfBoth, TheServerReadsItsOwn) {
  write("here/inner/same.bin", 1);
  write("there/inner/same.bin", 1);
  write("here/differs.bin", 2);
  write("there/differs.bin", 3);
  device_server::ServerOptions options;
  options.devices = {"null"};
  options.driver_files = {HALYARD_BUILD_DIR "/lib/halyard/drivers/halyard-driver-null.so"};
  options.file_folders = {(root_ / "there").string()};
  auto made = device_server::Server::create(std::move(options));
  ASSERT_TRUE(made) << made.error().message;
  std::unique_ptr<device_server::Server> server = std::move(*made);
  std::thread thread([&] { server->run(2); });
  {
    int ends[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
    server->take(Descriptor(ends[1]), nullptr);
    Runtime runtime;
    Place place;
    place.transport = Transport::unix_socket;
    place.patience = std::chrono::seconds(120);
    place.files = (root_ / "here").string();
    auto opened = Connection::over(kServicesOfFiles, runtime, std::move(place), Descriptor(ends[0]));
    ASSERT_TRUE(opened) << opened.failure().message;
    Device device(*opened);
    for (const char* const file : {"here/inner/same.bin", "here/differs.bin"}) {
      const Mapping mapping(root_ / file);
      halyard_memory_request_t request = {};
      request.struct_size = sizeof request;
      request.memory_type = HALYARD_MEMORY_OPTIMAL;
      request.affinity = UINT64_MAX;
      request.size = mapping.size;
      halyard_external_memory_t external = {};
      external.struct_size = sizeof external;
      external.kind = HALYARD_EXTERNAL_HOST_ALLOCATION;
      external.pointer = mapping.bytes;
      external.access = HALYARD_MAP_READ;
      external.size = mapping.size;
      halyard_memory_info_t info = {};
      info.struct_size = sizeof info;
      auto memory = device.import_memory(request, external, info);
      ASSERT_TRUE(memory) << memory.failure().message;
      auto mapped = (*memory)->map(HALYARD_MAP_READ, 0, mapping.size);
      ASSERT_TRUE(mapped) << mapped.failure().message;
      EXPECT_EQ(std::memcmp(*mapped, mapping.bytes, mapping.size), 0) << file;
      (*memory)->unmap();
    }
    EXPECT_NE(server->metrics().find("\nhalyard_device_file_bytes_total 300000\n"), std::string::npos);
  }
  server->stop();
  thread.join();
}

}  // namespace
}  // namespace halyard::remote
