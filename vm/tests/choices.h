// Choices for a generator: from a fuzzer's input (zeros after its end), or from an endless sequence with a
// seed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>

namespace halyard::vm::test {

class Choices {
 public:
  explicit Choices(uint64_t seed) : state_(seed), endless_(true) {}
  explicit Choices(std::span<const uint8_t> bytes) : bytes_(bytes) {}

  uint8_t byte() {
    if (!endless_) {
      if (bytes_.empty()) return 0;
      const uint8_t first = bytes_.front();
      bytes_ = bytes_.subspan(1);
      return first;
    }
    // splitmix64
    state_ += 0x9E3779B97F4A7C15;
    uint64_t mixed = state_;
    mixed = (mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9;
    mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB;
    return static_cast<uint8_t>((mixed ^ mixed >> 31) >> 56);
  }
  uint64_t bits(int bytes) {
    uint64_t value = 0;
    for (int i = 0; i < bytes; ++i) value = value << 8 | byte();
    return value;
  }
  // 0 to count - 1; 0 when the input is used up.
  uint32_t below(uint32_t count) {
    return count <= 1 ? 0 : static_cast<uint32_t>(bits(count <= 256 ? 1 : 4) % count);
  }
  bool one_in(uint32_t count) { return below(count) == count - 1; }
  template <typename T>
  T one_of(std::initializer_list<T> values) {
    return values.begin()[below(static_cast<uint32_t>(values.size()))];
  }
  template <typename Container>
  auto pick(const Container& values) {
    return values[below(static_cast<uint32_t>(values.size()))];
  }

 private:
  std::span<const uint8_t> bytes_;
  uint64_t state_ = 0;
  bool endless_ = false;
};

}  // namespace halyard::vm::test
