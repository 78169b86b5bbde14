// OpenSSL's SHA-256, which uses the instructions of the processor.
#include "remote/digest.h"

#include <fmt/format.h>
#include <openssl/evp.h>

namespace halyard::remote {

Sha256 sha256(std::span<const uint8_t> bytes) {
  Sha256 digest = {};
  EVP_Digest(bytes.data(), bytes.size(), digest.data(), nullptr, EVP_sha256(), nullptr);
  return digest;
}

std::string hex(const Sha256& digest) {
  std::string text;
  for (const uint8_t byte : digest) text += fmt::format("{:02x}", byte);
  return text;
}

}  // namespace halyard::remote
