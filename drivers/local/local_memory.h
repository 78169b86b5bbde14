// LocalMemory: what a worker's kernels use between them and nobody else sees; as large as the largest asked
// for.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>

#include "base/block_cache.h"

namespace halyard::local {

class LocalMemory {
 public:
  // At least that many bytes, contents undefined, aligned to BlockCache::kAlignment. False: no memory.
  bool reserve(uint64_t size) {
    if (size <= size_) return true;
    size_ = 0;
    bytes_.reset(static_cast<uint8_t*>(std::aligned_alloc(BlockCache::kAlignment, size)));
    if (!bytes_) return false;
    size_ = size;
    return true;
  }
  uint8_t* bytes() const { return bytes_.get(); }

 private:
  struct Free {
    void operator()(uint8_t* bytes) const { std::free(bytes); }
  };
  std::unique_ptr<uint8_t[], Free> bytes_;
  uint64_t size_ = 0;
};

}  // namespace halyard::local
