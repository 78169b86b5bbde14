// Digests multiply and rotate four lanes of 8 bytes.
#include "step.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace halyard::tools {

namespace {

constexpr uint64_t kOdd[] = {0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0xD6E8FEB86659FD93, 0xA0761D6478BD642F};

uint64_t load_word(const uint8_t* bytes, size_t size) {
  uint64_t word = 0;
  std::memcpy(&word, bytes, size);
  return word;
}

uint64_t mixed(uint64_t value) {
  value ^= value >> 32;
  value *= kOdd[1];
  value ^= value >> 29;
  value *= kOdd[2];
  return value ^ value >> 32;
}

}  // namespace

Digest digest_of(std::span<const uint8_t> bytes) {
  uint64_t lanes[4] = {kOdd[0], kOdd[1], kOdd[2], kOdd[3]};
  const auto take = [&](size_t lane, uint64_t word) {
    lanes[lane] = std::rotl(lanes[lane] ^ word, 29) * kOdd[lane];
  };
  size_t at = 0;
  for (; bytes.size() - at >= 32; at += 32)
    for (size_t lane = 0; lane < 4; ++lane) take(lane, load_word(bytes.data() + at + 8 * lane, 8));
  for (size_t lane = 0; at < bytes.size(); ++lane) {
    const size_t size = std::min<size_t>(8, bytes.size() - at);
    take(lane, load_word(bytes.data() + at, size));
    at += size;
  }
  const uint64_t low = mixed(lanes[0] + bytes.size()) + std::rotl(mixed(lanes[1]), 17);
  const uint64_t high = mixed(lanes[2] ^ bytes.size()) + std::rotl(mixed(lanes[3]), 31);
  return {mixed(low + std::rotl(high, 23)), mixed(high ^ mixed(low))};
}

Extent aligned_extent(const StepRange& range, Extent extent, uint64_t alignment) {
  if (extent.empty()) return {};
  const uint64_t head = std::min((range.offset + extent.begin) % alignment, extent.begin);
  const uint64_t tail = (range.offset + extent.end) % alignment;
  return {extent.begin - head, tail == 0 ? extent.end : std::min(extent.end + alignment - tail, range.size)};
}

Extent changed_extent(std::span<const uint8_t> before, std::span<const uint8_t> after) {
  const auto [first, other] = std::ranges::mismatch(before, after);
  if (first == before.end()) return {};
  const auto begin = static_cast<uint64_t>(first - before.begin());
  uint64_t end = before.size();
  while (before[end - 1] == after[end - 1]) --end;
  return {begin, end};
}

}  // namespace halyard::tools
