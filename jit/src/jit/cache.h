// Objects of earlier compilations in a folder of the user's own, found by what they were made of.
#pragma once

#include <llvm/Support/MemoryBuffer.h>

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace halyard::jit {

using Digest = std::array<uint8_t, 32>;

class Cache {
 public:
  // Of all entries in a folder; beyond it those go that were not used for longest.
  static constexpr uint64_t kMostBytes = uint64_t{64} << 20;

  // Makes the folder where it is missing. Not usable where it is not the user's own, or others may write to
  // it: refusal() says so.
  explicit Cache(const std::string& folder, uint64_t most_bytes = kMostBytes);
  Cache(const Cache&) = delete;
  Cache& operator=(const Cache&) = delete;
  ~Cache();

  const std::string& refusal() const { return refusal_; }  // empty: there is none

  // Null where there is no entry, or one that is damaged, or that others own or may write to; damaged ones
  // go.
  std::unique_ptr<llvm::MemoryBuffer> find(const Digest& key) const;
  // Several processes may store the same. What fails is not stored.
  void store(const Digest& key, std::span<const char> object) const;

 private:
  void make_room(uint64_t bytes) const;

  int folder_ = -1;
  uint64_t most_bytes_;
  std::string refusal_;
};

}  // namespace halyard::jit
