// A folder of compiled images, private to the user, with a digest of the compiler's input as key.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "front/digest.h"
#include "halyard/private_folder.hpp"

namespace halyard::jit {

class Cache {
 public:
  // Size limit of the folder. When it is exceeded, the least recently used entries are deleted.
  static constexpr uint64_t kMaxBytes = uint64_t{64} << 20;

  // Creates the folder if it is missing. The cache is not usable if another user owns the folder or may write
  // to it; refusal() then has the reason.
  explicit Cache(const std::string& folder, uint64_t most_bytes = kMaxBytes);
  Cache(const Cache&) = delete;
  Cache& operator=(const Cache&) = delete;

  const std::string& refusal() const { return refusal_; }  // empty if the cache is usable

  // Returns nothing if there is no entry, or if it is damaged or another user owns it or may write to it.
  // Deletes damaged entries.
  std::optional<std::string> find(const Digest& key) const;
  // Several processes may store the same entry. Failures to store are ignored.
  void store(const Digest& key, std::string_view image) const;

 private:
  void make_room(uint64_t bytes) const;

  const PrivateFolder folder_;
  uint64_t most_bytes_;
  std::string refusal_;
};

}  // namespace halyard::jit
