// SipHash-2-4 after Aumasson and Bernstein, "SipHash: a fast short-input PRF".
#include "vm/object/siphash.h"

#include <bit>
#include <cstring>

namespace halyard::vm {

namespace {

struct State {
  uint64_t v0, v1, v2, v3;

  void round() {
    v0 += v1;
    v1 = std::rotl(v1, 13) ^ v0;
    v0 = std::rotl(v0, 32);
    v2 += v3;
    v3 = std::rotl(v3, 16) ^ v2;
    v0 += v3;
    v3 = std::rotl(v3, 21) ^ v0;
    v2 += v1;
    v1 = std::rotl(v1, 17) ^ v2;
    v2 = std::rotl(v2, 32);
  }
  void compress(uint64_t word) {
    v3 ^= word;
    round();
    round();
    v0 ^= word;
  }
};

constexpr uint64_t kKey0 = 0x0706050403020100;
constexpr uint64_t kKey1 = 0x0F0E0D0C0B0A0908;

}  // namespace

uint64_t siphash(std::span<const uint8_t> bytes) {
  State state = {kKey0 ^ 0x736F6D6570736575, kKey1 ^ 0x646F72616E646F6D, kKey0 ^ 0x6C7967656E657261,
                 kKey1 ^ 0x7465646279746573};
  const size_t whole = bytes.size() / 8 * 8;
  for (size_t i = 0; i < whole; i += 8) {
    uint64_t word;
    std::memcpy(&word, bytes.data() + i, sizeof word);
    state.compress(word);
  }
  // The last word: the remaining bytes, and the length modulo 256 in the top byte.
  uint64_t last = uint64_t{bytes.size() & 0xFF} << 56;
  for (size_t i = whole; i < bytes.size(); ++i) last |= uint64_t{bytes[i]} << (8 * (i - whole));
  state.compress(last);
  state.v2 ^= 0xFF;
  for (int i = 0; i < 4; ++i) state.round();
  return state.v0 ^ state.v1 ^ state.v2 ^ state.v3;
}

}  // namespace halyard::vm
