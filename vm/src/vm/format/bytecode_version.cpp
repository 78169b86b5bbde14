// Versions of bytecode.
#include "vm/format/bytecode_version.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>

#include "vm/format/bytecode_reader.h"

namespace halyard::vm {

namespace {

constexpr Release kReleases[] = {{15, "3.1 to 3.9"}, {16, "3.10"}, {17, "3.11 and later"}};

constexpr uint32_t major_of(uint32_t word) { return word >> 16; }
constexpr uint32_t minor_of(uint32_t word) { return word & 0xFFFF; }

// Field numbers of `bytecode_version` in the module's table.
constexpr uint16_t kField = 13;
constexpr uint16_t kOlderFields[] = {12, 8};  // before `requirements`, before versions and dependencies
constexpr uint32_t kNewestOlder = 13, kMaxMinor = 15;

// A 4-byte field of the root table, with every offset checked.
std::optional<uint32_t> root_field(std::span<const uint8_t> flatbuffer, uint16_t field) {
  const auto number = [&]<typename T>(uint64_t at) -> std::optional<T> {
    if (at > flatbuffer.size() || flatbuffer.size() - at < sizeof(T)) return std::nullopt;
    return load_unaligned<T>(flatbuffer.data() + at);
  };
  constexpr uint64_t kRoot = 4;
  const auto root = number.operator()<uint32_t>(kRoot);
  if (!root) return std::nullopt;
  const uint64_t table = kRoot + *root;
  const auto to_vtable = number.operator()<int32_t>(table);
  if (!to_vtable) return std::nullopt;
  const auto vtable = static_cast<uint64_t>(static_cast<int64_t>(table) - *to_vtable);
  const auto size = number.operator()<uint16_t>(vtable);
  const uint64_t entry = 4 + uint64_t{2} * field;
  if (!size || entry + 2 > *size) return std::nullopt;
  const auto offset = number.operator()<uint16_t>(vtable + entry);
  if (!offset || *offset == 0) return std::nullopt;
  return number.operator()<uint32_t>(table + *offset);
}

}  // namespace

const Release* find_release(uint32_t version_word) {
  const auto* found = std::ranges::find(kReleases, major_of(version_word), &Release::bytecode);
  return minor_of(version_word) == 0 && found != std::end(kReleases) ? found : nullptr;
}

std::unexpected<Status> unsupported_version(uint32_t version_word, std::string_view made_by) {
  std::string known;
  for (const Release& entry : kReleases)
    known +=
        fmt::format("{}{}.0 (made by IREE {})", known.empty() ? "" : ", ", entry.bytecode, entry.compilers);
  return fail(Code::INVALID_ARGUMENT,
              "the module has bytecode version {}.{}{}{}; expected one of {}; compile it again with one of "
              "these releases",
              major_of(version_word), minor_of(version_word), made_by.empty() ? "" : ", made by ", made_by,
              known);
}

uint32_t version_of_older_layout(std::span<const uint8_t> flatbuffer) {
  if (find_release(root_field(flatbuffer, kField).value_or(0))) return 0;
  for (const uint16_t field : kOlderFields) {
    const uint32_t word = root_field(flatbuffer, field).value_or(0);
    if (major_of(word) >= 1 && major_of(word) <= kNewestOlder && minor_of(word) <= kMaxMinor) return word;
  }
  return 0;
}

}  // namespace halyard::vm
