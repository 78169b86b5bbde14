// Bytes that somebody owns: a mapped file, a vector, memory of the embedder. Shared, address stable. Nothing
// but a device's work writes to them, and only where they are private (is_private).
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/object.h"
#include "base/status.h"

namespace halyard {

class Bytes final : public ObjectOf<Bytes> {
 public:
  static const ObjectType kType;

  // Maps the file: what is written to the memory stays in this process, the file is never changed. The file
  // must not change while it is mapped; reading past the end of one that was cut off ends the process. "-"
  // and what is no regular file are read into memory, up to 1 GiB (RESOURCE_EXHAUSTED). NOT_FOUND,
  // PERMISSION_DENIED, INVALID_ARGUMENT (a folder, or a path that can name nothing), UNAVAILABLE
  // (any other failure to read); the message names the path and the system's reason.
  static Result<Ref<Bytes>> map_file(const std::string& path);
  static Ref<Bytes> copy(std::span<const uint8_t> bytes);  // 64-byte aligned
  // The same in pieces: `copied` is told how many bytes are there after each, and ends it by a failure.
  static Result<Ref<Bytes>> copy(std::span<const uint8_t> bytes,
                                 const std::function<Result<>(size_t)>& copied);
  static Ref<Bytes> own(std::vector<uint8_t> bytes);
  // Borrows, and nobody may write to them; `released` (may be empty) runs when the last reference goes.
  static Ref<Bytes> borrow(std::span<const uint8_t> bytes, std::function<void()> released);

  std::span<const uint8_t> span() const { return bytes_; }
  const uint8_t* data() const { return bytes_.data(); }
  size_t size() const { return bytes_.size(); }
  // Whether the memory can be written to and belongs to nobody else: for devices, whose kernels may write to
  // constants.
  bool is_private() const { return private_; }

  Bytes(std::span<const uint8_t> bytes, std::function<void()> released, bool is_private)
      : bytes_(bytes), released_(std::move(released)), private_(is_private) {}
  ~Bytes() {
    if (released_) released_();
  }

 private:
  std::span<const uint8_t> bytes_;
  std::function<void()> released_;
  const bool private_;
};

}  // namespace halyard
