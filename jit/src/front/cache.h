// Images of earlier compilations in a folder of the user's own, found by what they were made of.
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
  // Of all entries in a folder; beyond it those go that were not used for longest.
  static constexpr uint64_t kMostBytes = uint64_t{64} << 20;

  // Makes the folder where it is missing. Not usable where it is not the user's own, or others may write to
  // it: refusal() says so.
  explicit Cache(const std::string& folder, uint64_t most_bytes = kMostBytes);
  Cache(const Cache&) = delete;
  Cache& operator=(const Cache&) = delete;

  const std::string& refusal() const { return refusal_; }  // empty: there is none

  // Nothing where there is no entry, or one that is damaged, or that others own or may write to; damaged ones
  // go.
  std::optional<std::string> find(const Digest& key) const;
  // Several processes may store the same. What fails is not stored.
  void store(const Digest& key, std::string_view image) const;

 private:
  void make_room(uint64_t bytes) const;

  const PrivateFolder folder_;
  uint64_t most_bytes_;
  std::string refusal_;
};

}  // namespace halyard::jit
