// Reading an ELF file of which nothing is known: every access is checked, at any alignment.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <type_traits>

#include "status.h"

namespace halyard::local {

using FileBytes = std::span<const uint8_t>;

// `size` bytes at `offset`; nothing where the file has not all of them.
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

// The element of a table whose bytes are known to be there.
template <typename T>
T element(FileBytes table, uint64_t index) {
  T value;
  std::memcpy(&value, table.data() + index * sizeof(T), sizeof value);
  return value;
}

// What a file that fails a check comes to.
template <typename... Args>
std::unexpected<Status> broken_elf(fmt::format_string<Args...> format, Args&&... args) {
  return fail(Code::FAILED_PRECONDITION, "the ELF library is damaged or of another kind: {}",
              fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace halyard::local
