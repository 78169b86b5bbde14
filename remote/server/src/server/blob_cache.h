// BlobCache: constants and code of one client, by their digests. What is not in use may be dropped when there
// is no room. Thread-safe.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <mutex>

#include "base/budget.h"
#include "base/bytes.h"
#include "base/status.h"
#include "remote/digest.h"

namespace halyard::device_server {

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
  Result<> add(const remote::Sha256& digest, std::vector<uint8_t> bytes, Charge charge);

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
