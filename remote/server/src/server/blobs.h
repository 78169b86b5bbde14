// Blobs: constants and code of one client as sessions use them: bytes that stay where they are as long as
// somebody uses them. They are mapped for reading alone, so nobody changes them by mistake. Thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "remote/digest.h"
#include "server/blob_store.h"

namespace halyard::device_server {

// The mapped file, and the places in it.
class MappedBlobs;

// Bytes that come in pieces. One thread at a time. What is not finished is given up.
class BlobUpload {
 public:
  BlobUpload(std::shared_ptr<MappedBlobs> blobs, uint64_t offset, uint64_t size)
      : blobs_(std::move(blobs)), offset_(offset), size_(size) {}
  BlobUpload(BlobUpload&&) noexcept = default;
  BlobUpload& operator=(BlobUpload&& other) noexcept;
  ~BlobUpload();
  uint64_t size() const { return size_; }
  uint64_t written() const { return written_; }
  // The next bytes, at most those that are missing. RESOURCE_EXHAUSTED: the machine has no memory.
  Result<> append(std::span<const uint8_t> bytes);
  // DATA_LOSS: all bytes have another digest.
  Result<Ref<Bytes>> finish(const remote::Sha256& digest);

 private:
  std::shared_ptr<MappedBlobs> blobs_;  // null: finished
  uint64_t offset_;
  uint64_t size_;
  uint64_t written_ = 0;
};

class Blobs {
 public:
  // RESOURCE_EXHAUSTED: the file cannot be mapped.
  static Result<std::unique_ptr<Blobs>> create(std::shared_ptr<BlobPlaces> places, int file,
                                               uint64_t capacity);
  explicit Blobs(std::shared_ptr<MappedBlobs> mapped) : mapped_(std::move(mapped)) {}

  Ref<Bytes> find(const remote::Sha256& digest);  // null: not there
  std::vector<Ref<Bytes>> find(std::span<const remote::Sha256> digests);
  // As BlobPlaces::reserve().
  Result<BlobUpload> begin(uint64_t size);

 private:
  const std::shared_ptr<MappedBlobs> mapped_;
};

}  // namespace halyard::device_server
