// Reads untrusted ELF files: every access is checked and may be unaligned.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <type_traits>

#include "status.h"

namespace halyard::local {

using FileBytes = std::span<const uint8_t>;

// `size` bytes at `offset`; nullopt if the file is too short.
inline std::optional<FileBytes> part(FileBytes file, uint64_t offset, uint64_t size) {
  if (offset > file.size() || size > file.size() - offset) return std::nullopt;
  return file.subspan(static_cast<size_t>(offset), static_cast<size_t>(size));
}

template <typename T>
std::optional<T> read_at(FileBytes file, uint64_t offset) {
  static_assert(std::is_trivially_copyable_v<T>);
  const std::optional<FileBytes> bytes = part(file, offset, sizeof(T));
  if (!bytes) return std::nullopt;
  T value;
  std::memcpy(&value, bytes->data(), sizeof value);
  return value;
}

// An element of a table. The table must contain the element.
template <typename T>
T element(FileBytes table, uint64_t index) {
  T value;
  std::memcpy(&value, table.data() + index * sizeof(T), sizeof value);
  return value;
}

// The failure for a damaged file.
template <typename... Args>
std::unexpected<Status> broken_elf(fmt::format_string<Args...> format, Args&&... args) {
  return fail(Code::FAILED_PRECONDITION, "the ELF library is damaged or of another kind: {}",
              fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace halyard::local
