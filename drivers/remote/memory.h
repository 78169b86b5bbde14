// Memory: bytes at the server. The host sees them through mappings, for which there is room in this process.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <span>
#include <vector>

#include "connection.h"
#include "halyard/driver.hpp"
#include "mapped_bytes.h"

namespace halyard::remote {

class Memory {
 public:
  // The size counts in the statistics once exists() was called.
  Memory(std::shared_ptr<Connection> server, kit::MemoryTally& tally, uint64_t size);
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory();

  // The number of this memory at a server. Work of another server uses a memory there with the same bytes:
  // what each side writes is passed on, through this process, when work begins and ends.
  kit::Result<uint64_t> number_at(const std::shared_ptr<Connection>& server);
  uint64_t number() const { return number_; }  // at its own server
  uint64_t size() const { return size_; }

  // The bytes exist from now on: they were allocated, or their alloca has run.
  void exists();
  void ends();  // their dealloca has run
  // Bytes of the host that work reads and writes, for as long as the memory lives. The server has them.
  void share(uint8_t* bytes);
  void is_import() { counts_ = false; }

  // FAILED_PRECONDITION: the bytes do not exist yet.
  kit::Result<uint8_t*> map(uint32_t access, uint64_t offset, uint64_t length);
  void unmap();
  // Without a mapping: straight from and into the host's bytes.
  kit::Result<> read_now(uint64_t offset, std::span<uint8_t> target);
  kit::Result<> write_now(uint64_t offset, Bytes source);
  // Sends bytes to the server.
  void write(uint64_t offset, Bytes bytes);

 private:
  kit::Result<> fetch(uint8_t* bytes, uint64_t offset, uint64_t length);
  kit::Result<> check_existence();
  uint8_t* make_room();
  void open_bytes(uint8_t* bytes);
  void close_bytes();

  const std::shared_ptr<Connection> server_;
  kit::MemoryTally& tally_;
  const uint64_t size_;
  const uint64_t number_;
  bool counts_ = true;
  std::atomic<bool> exists_{false};
  std::atomic<bool> is_counted_{false};

  std::mutex mutex_;  // guards the members below; held while bytes are fetched
  struct FreeRoom {
    void operator()(uint8_t* room) const { ::operator delete[](room, std::align_val_t(64)); }
  };
  std::unique_ptr<uint8_t[], FreeRoom> room_;
  uint8_t* shared_ = nullptr;
  std::unique_ptr<MappedBytes> mapped_;
  uint32_t mappings_ = 0;
  bool is_watched_ = false;
  std::vector<std::unique_ptr<Memory>> mirrors_;  // at other servers
};

}  // namespace halyard::remote
