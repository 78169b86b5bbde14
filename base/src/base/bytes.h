// Bytes with an owner (a mapped file, a vector, memory of the embedder): shared, at a stable address. Only
// work on a device writes to them, and only if they are private (is_private).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/object.h"
#include "base/status.h"

namespace halyard {

// Tells a version of a file from others: stat(2), before the file was mapped.
struct FileVersion {
  uint64_t device = 0;
  uint64_t inode = 0;
  uint64_t size = 0;
  int64_t modified_ns = 0;
  int64_t changed_ns = 0;
};

class Bytes final : public ObjectOf<Bytes> {
 public:
  static const ObjectType kType;

  // Maps the file privately: writes to the memory never reach the file. The file must not change while it is
  // mapped, because reading past the end of a truncated file ends the process. "-" and files that are not
  // regular are read into memory, up to 1 GiB (RESOURCE_EXHAUSTED). NOT_FOUND, PERMISSION_DENIED,
  // INVALID_ARGUMENT (a folder or an impossible path), UNAVAILABLE (any other failure); the message has the
  // path and the system's reason.
  static Result<Ref<Bytes>> map_file(const std::string& path);
  static Ref<Bytes> copy(std::span<const uint8_t> bytes);  // 64-byte aligned
  // Copies in pieces. `copied` gets the number of bytes after each piece, and can fail the copy.
  static Result<Ref<Bytes>> copy(std::span<const uint8_t> bytes,
                                 const std::function<Result<>(size_t)>& copied);
  static Ref<Bytes> own(std::vector<uint8_t> bytes);
  // Borrows bytes that nobody may write to. `released` (may be empty) runs when the last reference is
  // dropped.
  static Ref<Bytes> borrow(std::span<const uint8_t> bytes, std::function<void()> released);

  std::span<const uint8_t> span() const { return bytes_; }
  const uint8_t* data() const { return bytes_.data(); }
  size_t size() const { return bytes_.size(); }
  // Whether the memory is writable and private to this process, so that kernels may write to constants.
  bool is_private() const { return private_; }
  const std::optional<FileVersion>& file() const { return file_; }  // that is mapped

  Bytes(std::span<const uint8_t> bytes, std::function<void()> released, bool is_private,
        const std::optional<FileVersion>& file = std::nullopt)
      : bytes_(bytes), released_(std::move(released)), private_(is_private), file_(file) {}
  ~Bytes() {
    if (released_) released_();
  }

 private:
  std::span<const uint8_t> bytes_;
  std::function<void()> released_;
  const bool private_;
  const std::optional<FileVersion> file_;
};

}  // namespace halyard
