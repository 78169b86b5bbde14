// BlobStore: where the constants and the code of one client are, by their digests: ranges of a file in
// memory, which all processes that serve the client can map. What nobody uses is dropped when there is no
// room.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "base/budget.h"
#include "base/status.h"
#include "remote/address.h"
#include "remote/digest.h"

namespace halyard::device_server {

// The store as those see it that use blobs, in its process or in another one. Thread-safe.
class BlobPlaces {
 public:
  struct Place {
    uint64_t offset = 0;
    uint64_t size = 0;  // 0: there is no such blob
  };
  virtual ~BlobPlaces() = default;
  // Room for new bytes, which is in use until release(). RESOURCE_EXHAUSTED: more than the limit of the
  // store, or of the client's memory.
  virtual Result<uint64_t> reserve(uint64_t size) = 0;
  // The room has the bytes of the digest, so that others can find them.
  virtual void publish(uint64_t offset, const remote::Sha256& digest) = 0;
  // A place for each digest. Each that is found is in use until release().
  virtual std::vector<Place> find(std::span<const remote::Sha256> digests) = 0;
  virtual void release(uint64_t offset) = 0;
};

class BlobStore final : public BlobPlaces {
 public:
  // `limit`: bytes that are kept for later. All bytes are charged to the memory. RESOURCE_EXHAUSTED: the
  // system gives no file.
  static Result<std::shared_ptr<BlobStore>> create(uint64_t limit, Ref<Budget> memory);
  BlobStore(uint64_t limit, Ref<Budget> memory, remote::Descriptor file, uint64_t capacity)
      : limit_(limit), capacity_(capacity), memory_(std::move(memory)), file_(std::move(file)) {}

  int file() const { return file_.get(); }
  uint64_t capacity() const { return capacity_; }  // the size of the file, most of which has no memory
  uint64_t used() const;                           // bytes of blobs that can be found

  Result<uint64_t> reserve(uint64_t size) override;
  void publish(uint64_t offset, const remote::Sha256& digest) override;
  std::vector<Place> find(std::span<const remote::Sha256> digests) override;
  void release(uint64_t offset) override;

 private:
  struct Entry {
    uint64_t size = 0;
    uint64_t room = 0;  // whole pages
    uint64_t uses = 0;
    std::optional<remote::Sha256> digest;  // none: not published
    std::list<uint64_t>::iterator unused;  // in unused_, if `uses` is 0
    Charge charge;
  };
  using Entries = std::map<uint64_t, Entry>;

  // Under mutex_:
  void erase(Entries::iterator entry);
  bool drop_unused(size_t count);  // the least recently used ones; false: there is none
  std::optional<uint64_t> find_gap(uint64_t room) const;

  const uint64_t limit_;
  const uint64_t capacity_;
  const Ref<Budget> memory_;
  const remote::Descriptor file_;
  mutable std::mutex mutex_;    // guards the members below
  Entries entries_;             // by their offsets
  std::list<uint64_t> unused_;  // offsets of published entries, the most recently used one first
  std::map<remote::Sha256, uint64_t> offsets_;
  uint64_t published_ = 0;  // bytes
};

}  // namespace halyard::device_server
