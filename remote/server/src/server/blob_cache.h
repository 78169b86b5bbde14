// BlobCache: constants and code of one client, by their digests. What is not in use may be dropped when there
// is no room. Thread-safe.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <mutex>
#include <new>
#include <vector>

#include "base/budget.h"
#include "base/bytes.h"
#include "base/status.h"
#include "remote/digest.h"

namespace halyard::device_server {

// For bytes that a device can import where they are: at a cache line, or at a page if there are many.
template <typename T>
struct ImportableAllocator {
  using value_type = T;
  ImportableAllocator() = default;
  template <typename U>
  ImportableAllocator(const ImportableAllocator<U>&) {}
  static constexpr size_t alignment(size_t count) { return count * sizeof(T) < (64 << 10) ? 64 : 4096; }
  T* allocate(size_t count) {
    return static_cast<T*>(::operator new(count * sizeof(T), std::align_val_t(alignment(count))));
  }
  void deallocate(T* bytes, size_t count) { ::operator delete(bytes, std::align_val_t(alignment(count))); }
  bool operator==(const ImportableAllocator&) const = default;
};
using ImportableBytes = std::vector<uint8_t, ImportableAllocator<uint8_t>>;

class BlobCache {
 public:
  BlobCache(uint64_t limit, Ref<Budget> memory) : limit_(limit), memory_(std::move(memory)) {}

  uint64_t limit() const { return limit_; }
  uint64_t used() const;
  Ref<Bytes> find(const remote::Sha256& digest);  // null: not there
  // The bytes are charged to the client's memory as long as they live. RESOURCE_EXHAUSTED: more than the
  // limit, or no memory.
  Result<Charge> reserve(uint64_t size);
  // DATA_LOSS: the digest is another one.
  Result<> add(const remote::Sha256& digest, ImportableBytes bytes, Charge charge);

 private:
  struct Entry {
    remote::Sha256 digest;
    Ref<Bytes> bytes;
  };
  void drop_oldest();  // under mutex_

  const uint64_t limit_;
  const Ref<Budget> memory_;
  mutable std::mutex mutex_;  // guards the members below
  std::list<Entry> entries_;  // the most recently used one first
  std::map<remote::Sha256, std::list<Entry>::iterator> places_;
  uint64_t used_ = 0;
};

}  // namespace halyard::device_server
