// LocalMemory: the workgroup-local memory of one kernel runner. Its size is that of the largest request.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>

#include "base/block_cache.h"

namespace halyard::local {

class LocalMemory {
 public:
  // Provides at least `size` bytes, aligned to BlockCache::kAlignment, with undefined contents: the caller
  // writes all of them, or clears them. False: out of memory.
  bool reserve(uint64_t size) {
    if (size <= size_) return true;
    size_ = 0;
    // aligned_alloc takes whole multiples of the alignment.
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
