// Recognizable test bytes, and a comparison that finds the first difference.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "session.h"

namespace halyard::cts {

// `size` bytes in which no short sequence repeats soon. Different seeds give different bytes.
inline std::vector<uint8_t> noise(size_t size, uint32_t seed = 1) {
  std::vector<uint8_t> bytes(size);
  uint32_t state = seed * 2654435761u + 1;
  for (uint8_t& byte : bytes) {
    state = state * 1664525u + 1013904223u;
    byte = static_cast<uint8_t>(state >> 24);
  }
  return bytes;
}

template <typename T>
std::vector<uint8_t> bytes_of(const std::vector<T>& values) {
  std::vector<uint8_t> bytes(values.size() * sizeof(T));
  if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

// Reports the first byte that differs.
inline bool same_bytes(Checks& checks, std::string_view rule, std::string_view what,
                       std::span<const uint8_t> expected, std::span<const uint8_t> found) {
  if (!checks.equal(rule, fmt::format("{}: size", what), expected.size(), found.size())) return false;
  for (size_t i = 0; i < expected.size(); ++i)
    if (expected[i] != found[i])
      return checks.check(rule, false, fmt::format("{}: byte {} of {}", what, i, expected.size()),
                          fmt::format("0x{:02x}", expected[i]), fmt::format("0x{:02x}", found[i]));
  return true;
}

}  // namespace halyard::cts
