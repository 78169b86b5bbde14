// Bytes that somebody owns: a mapped file, a vector, memory of the embedder. Shared, read-only, address
// stable.
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

  // Maps the file read-only. "-" and what is no regular file are read, up to 1 GiB (RESOURCE_EXHAUSTED).
  // NOT_FOUND, PERMISSION_DENIED, INVALID_ARGUMENT (a folder, or a path that can name nothing), UNAVAILABLE
  // (any other failure to read); the message names the path and the system's reason.
  static Result<Ref<Bytes>> map_file(const std::string& path);
  static Ref<Bytes> copy(std::span<const uint8_t> bytes);  // 64-byte aligned
  // The same in pieces: `copied` is told how many bytes are there after each, and ends it by a failure.
  static Result<Ref<Bytes>> copy(std::span<const uint8_t> bytes,
                                 const std::function<Result<>(size_t)>& copied);
  static Ref<Bytes> own(std::vector<uint8_t> bytes);
  // Borrows; `released` (may be empty) runs when the last reference goes.
  static Ref<Bytes> borrow(std::span<const uint8_t> bytes, std::function<void()> released);

  std::span<const uint8_t> span() const { return bytes_; }
  const uint8_t* data() const { return bytes_.data(); }
  size_t size() const { return bytes_.size(); }

  Bytes(std::span<const uint8_t> bytes, std::function<void()> released)
      : bytes_(bytes), released_(std::move(released)) {}
  ~Bytes() {
    if (released_) released_();
  }

 private:
  std::span<const uint8_t> bytes_;
  std::function<void()> released_;
};

}  // namespace halyard
