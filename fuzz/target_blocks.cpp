// Owners take blocks of memory, write to them and give them back, in any order and size. No block contains a
// byte that another owner has written.
#include <algorithm>
#include <array>
#include <cstring>
#include <span>

#include "base/block_cache.h"
#include "fuzzing.h"

namespace {

struct Taken {
  uint8_t* block = nullptr;
  uint64_t size = 0;
  uint64_t owner = 0;
};

constexpr uint64_t kOwners[] = {halyard::BlockCache::kNobody, halyard::BlockCache::kWritesAll, 1, 2};

// The byte that an owner writes: never 0. No owner may see the bytes of kNobody, not even kNobody.
uint8_t mark_of(uint64_t owner) {
  return static_cast<uint8_t>(owner == halyard::BlockCache::kWritesAll ? 0xF0 : 0x51 + owner);
}

}  // namespace

// Four bytes for each step: the slot that takes or gives back, the owner, the size.
int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  halyard::BlockCache cache;
  std::array<Taken, 8> places;
  for (size_t at = 0; at + 4 <= size; at += 4) {
    Taken& place = places[data[at] % places.size()];
    if (place.block) {
      cache.give(place.block, place.size, place.owner);
      place = {};
      continue;
    }
    const uint64_t bytes = data[at + 2] | (data[at + 3] & 0x3Fu) << 8;
    const uint64_t owner = kOwners[data[at + 1] % std::size(kOwners)];
    place = {cache.take(bytes, owner), bytes, owner};
    if (!place.block) halyard::fuzz::finding("no memory for a small block");
    const std::span<uint8_t> found(place.block, bytes);
    const bool has_own = owner != halyard::BlockCache::kNobody;
    if (owner != halyard::BlockCache::kWritesAll && !std::ranges::all_of(found, [&](uint8_t byte) {
          return byte == 0 || (has_own && byte == mark_of(owner));
        }))
      halyard::fuzz::finding("a block shows what somebody else has written");
    std::memset(place.block, mark_of(owner), bytes);
  }
  for (const Taken& place : places)
    if (place.block) cache.give(place.block, place.size, place.owner);
  return 0;
}
