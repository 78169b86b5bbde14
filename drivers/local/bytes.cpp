// Fills, updates, copies and file transfers.
#include "bytes.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <system_error>

namespace halyard::local {

namespace {

enum class Direction { read, write };

Result<> transfer_file(const halyard_operation_transfer_file_t& transfer, Direction direction) {
  const char* const verb = direction == Direction::read ? "read" : "write";
  constexpr uint64_t kMaxOffset = std::numeric_limits<off_t>::max();
  if (transfer.file_offset > kMaxOffset || transfer.range.length > kMaxOffset - transfer.file_offset)
    return fail(Code::OUT_OF_RANGE, "cannot {} {} bytes at offset {} of a file: the largest offset is {}",
                verb, transfer.range.length, transfer.file_offset, kMaxOffset);
  std::span<uint8_t> left = HALYARD_TRY(resolve(transfer.range, {}));
  auto offset = static_cast<off_t>(transfer.file_offset);
  while (!left.empty()) {
    const ssize_t count = direction == Direction::read
                              ? pread(transfer.fd, left.data(), left.size(), offset)
                              : pwrite(transfer.fd, left.data(), left.size(), offset);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0)
      return fail(Code::UNAVAILABLE, "cannot {} {} bytes at offset {} of file descriptor {}: {}", verb,
                  left.size(), offset, transfer.fd, std::generic_category().message(errno));
    if (count == 0)
      return fail(Code::OUT_OF_RANGE,
                  "cannot {} {} bytes at offset {} of file descriptor {}: the file ends at {}", verb,
                  transfer.range.length, transfer.file_offset, transfer.fd, offset);
    left = left.subspan(static_cast<size_t>(count));
    offset += count;
  }
  return {};
}

void fill_bytes(std::span<uint8_t> bytes, uint32_t pattern, uint32_t pattern_size) {
  // Eight bytes that repeat the pattern.
  uint64_t block = pattern;
  if (pattern_size == 1) block = (block & 0xFF) * 0x01010101;
  if (pattern_size == 2) block = (block & 0xFFFF) * 0x00010001;
  block |= block << 32;
  if (block == (block & 0xFF) * 0x0101010101010101) {
    if (!bytes.empty()) std::memset(bytes.data(), static_cast<int>(block & 0xFF), bytes.size());
    return;
  }
  // Each copy doubles the bytes that are filled, up to a size that stays in the cache.
  constexpr size_t kMaxCopy = 16 << 10;
  size_t filled = std::min(bytes.size(), sizeof block);
  if (filled != 0) std::memcpy(bytes.data(), &block, filled);
  while (filled < bytes.size()) {
    const size_t size = std::min({bytes.size() - filled, filled, kMaxCopy});
    std::memcpy(&bytes[filled], bytes.data(), size);
    filled += size;
  }
}

}  // namespace

Result<> fill(const halyard_range_t& target, uint32_t pattern, uint32_t pattern_size,
              const Execution& execution) {
  fill_bytes(HALYARD_TRY(resolve_to_write(target, execution)), pattern, pattern_size);
  return {};
}

Result<> fill_parts(const halyard_command_fill_t& command, std::span<const ByteRange> parts,
                    const Execution& execution) {
  const std::span<uint8_t> bytes = HALYARD_TRY(resolve_to_write(command.target, execution));
  for (const ByteRange& part : parts)
    fill_bytes(bytes.subspan(part.begin, part.size()), command.pattern, command.pattern_size);
  return {};
}

Result<> update(const void* source, const halyard_range_t& target, const Execution& execution) {
  const std::span<uint8_t> bytes = HALYARD_TRY(resolve_to_write(target, execution));
  if (!bytes.empty()) std::memcpy(bytes.data(), source, bytes.size());
  return {};
}

Result<> copy(const halyard_range_t& source, const halyard_range_t& target, const Execution& execution) {
  // Resolve the target first: this may copy constants, and the source must then use the copy.
  const std::span<uint8_t> to = HALYARD_TRY(resolve_to_write(target, execution));
  const std::span<const uint8_t> from = HALYARD_TRY(resolve(source, execution));
  std::memmove(to.data(), from.data(), from.size());  // the ranges of two slots may overlap
  return {};
}

Result<> read_file(const halyard_operation_transfer_file_t& transfer) {
  return transfer_file(transfer, Direction::read);
}

Result<> write_file(const halyard_operation_transfer_file_t& transfer) {
  return transfer_file(transfer, Direction::write);
}

}  // namespace halyard::local
