// Memory types, usages and accesses as text.
#include "hal/device/types.h"

#include <fmt/format.h>

#include <span>
#include <string_view>

namespace halyard::hal {

namespace {

// Combinations come before their single bits, so that they win.
struct BitName {
  uint32_t bits;
  std::string_view name;
};

constexpr BitName kMemoryTypes[] = {
    {HALYARD_MEMORY_HOST_LOCAL, "HOST_LOCAL"},
    {HALYARD_MEMORY_DEVICE_LOCAL, "DEVICE_LOCAL"},
    {HALYARD_MEMORY_OPTIMAL, "OPTIMAL"},
    {HALYARD_MEMORY_HOST_VISIBLE, "HOST_VISIBLE"},
    {HALYARD_MEMORY_HOST_COHERENT, "HOST_COHERENT"},
    {HALYARD_MEMORY_HOST_CACHED, "HOST_CACHED"},
    {HALYARD_MEMORY_DEVICE_VISIBLE, "DEVICE_VISIBLE"},
};

constexpr BitName kUsages[] = {
    {HALYARD_USAGE_TRANSFER, "TRANSFER"},
    {HALYARD_USAGE_TRANSFER_SOURCE, "TRANSFER_SOURCE"},
    {HALYARD_USAGE_TRANSFER_TARGET, "TRANSFER_TARGET"},
    {HALYARD_USAGE_INDIRECT_PARAMETERS, "DISPATCH_INDIRECT_PARAMETERS"},
    {HALYARD_USAGE_UNIFORM_READ, "DISPATCH_UNIFORM_READ"},
    {HALYARD_USAGE_STORAGE, "DISPATCH_STORAGE"},
    {HALYARD_USAGE_STORAGE_READ, "DISPATCH_STORAGE_READ"},
    {HALYARD_USAGE_STORAGE_WRITE, "DISPATCH_STORAGE_WRITE"},
    {0x1000, "DISPATCH_IMAGE_READ"},
    {0x2000, "DISPATCH_IMAGE_WRITE"},
    {HALYARD_USAGE_SHARING_EXPORT, "SHARING_EXPORT"},
    {HALYARD_USAGE_SHARING_REPLICATE, "SHARING_REPLICATE"},
    {HALYARD_USAGE_SHARING_CONCURRENT, "SHARING_CONCURRENT"},
    {HALYARD_USAGE_SHARING_IMMUTABLE, "SHARING_IMMUTABLE"},
    {HALYARD_USAGE_MAPPING_SCOPED, "MAPPING_SCOPED"},
    {HALYARD_USAGE_MAPPING_PERSISTENT, "MAPPING_PERSISTENT"},
    {HALYARD_USAGE_MAPPING_OPTIONAL, "MAPPING_OPTIONAL"},
    {HALYARD_USAGE_MAPPING_RANDOM, "MAPPING_ACCESS_RANDOM"},
    {HALYARD_USAGE_MAPPING_SEQUENTIAL_WRITE, "MAPPING_ACCESS_SEQUENTIAL_WRITE"},
};

constexpr BitName kAccesses[] = {
    {kAccessAll, "ALL"},   {kDiscardWrite, "DISCARD_WRITE"},
    {kRead, "READ"},       {kWrite, "WRITE"},
    {kDiscard, "DISCARD"}, {0x8, "MAY_ALIAS"},
    {0x10, "UNALIGNED"},   {0x20, "ANY"},
};

std::string bits_text(uint32_t bits, std::span<const BitName> names) {
  std::string text;
  for (const auto& [known, name] : names) {
    if ((bits & known) != known) continue;
    if (!text.empty()) text += '|';
    text += name;
    bits &= ~known;
  }
  if (bits != 0) text += fmt::format("{}0x{:X}", text.empty() ? "" : "|", bits);
  return text.empty() ? "NONE" : text;
}

}  // namespace

std::string memory_type_text(uint32_t bits) { return bits_text(bits, kMemoryTypes); }
std::string usage_text(uint32_t bits) { return bits_text(bits, kUsages); }
std::string access_text(uint32_t bits) { return bits_text(bits, kAccesses); }

}  // namespace halyard::hal
