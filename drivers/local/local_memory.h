// LocalMemory: the workgroup-local memory of one kernel runner. It grows to the largest request.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>

#include "base/block_cache.h"

namespace halyard::local {

class LocalMemory {
 public:
  // Provides at least `size` bytes, aligned to BlockCache::kAlignment. The contents are undefined: the caller
  // clears or overwrites all of them. False: out of memory.
  bool reserve(uint64_t size) {
    if (size <= size_) return true;
    size_ = 0;
    // aligned_alloc requires a multiple of the alignment.
    if (size > UINT64_MAX - BlockCache::kAlignment) return false;
    size = (size + BlockCache::kAlignment - 1) / BlockCache::kAlignment * BlockCache::kAlignment;
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
