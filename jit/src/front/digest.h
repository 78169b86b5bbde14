// SHA-256, for names and contents of cache entries.
#pragma once

#include <sha2.h>

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>

namespace halyard::jit {

using Digest = std::array<uint8_t, SHA256_DIGEST_LENGTH>;

class Digester {
 public:
  Digester() { ::SHA256Init(&context_); }
  void add(std::span<const uint8_t> bytes) { ::SHA256Update(&context_, bytes.data(), bytes.size()); }
  // Also adds the size, so that two consecutive texts differ from their concatenation.
  void add(std::string_view text) {
    add(text.size());
    add({reinterpret_cast<const uint8_t*>(text.data()), text.size()});
  }
  template <typename T>
    requires std::is_integral_v<T>
  void add(T number) {
    const auto wide = static_cast<uint64_t>(number);
    add({reinterpret_cast<const uint8_t*>(&wide), sizeof wide});
  }
  // Also adds the size.
  template <typename T>
    requires std::has_unique_object_representations_v<T>
  void add_all(std::span<const T> numbers) {
    add(numbers.size());
    add({reinterpret_cast<const uint8_t*>(numbers.data()), numbers.size_bytes()});
  }
  // Returns the digest. Called once, at the end.
  Digest finish() {
    Digest digest;
    ::SHA256Final(digest.data(), &context_);
    return digest;
  }

 private:
  SHA2_CTX context_;
};

}  // namespace halyard::jit
