// SHA-256: the name of a blob.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>

namespace halyard::remote {

using Sha256 = std::array<uint8_t, 32>;

Sha256 sha256(std::span<const uint8_t> bytes);
std::string hex(const Sha256& digest);

}  // namespace halyard::remote
