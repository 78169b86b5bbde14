// Bytes are written to the file, not through a mapping.
#include "server/blobs.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace halyard::device_server {

class MappedBlobs : public std::enable_shared_from_this<MappedBlobs> {
 public:
  MappedBlobs(std::shared_ptr<BlobPlaces> places, remote::Descriptor file, const uint8_t* begin, size_t size)
      : places_(std::move(places)), file_(std::move(file)), begin_(begin), size_(size) {}
  ~MappedBlobs() { ::munmap(const_cast<uint8_t*>(begin_), size_); }
  BlobPlaces& places() { return *places_; }
  int file() const { return file_.get(); }
  std::span<const uint8_t> span(uint64_t offset, uint64_t size) const { return {begin_ + offset, size}; }
  // Takes over one use of the place.
  Ref<Bytes> bytes(uint64_t offset, uint64_t size) {
    return Bytes::borrow(span(offset, size), [self = shared_from_this(), offset]() mutable {
      self->places_->release(offset);
      self.reset();
    });
  }

 private:
  const std::shared_ptr<BlobPlaces> places_;
  const remote::Descriptor file_;
  const uint8_t* const begin_;
  const size_t size_;
};

BlobUpload& BlobUpload::operator=(BlobUpload&& other) noexcept {
  std::swap(blobs_, other.blobs_);
  std::swap(offset_, other.offset_);
  std::swap(size_, other.size_);
  std::swap(written_, other.written_);
  return *this;
}

BlobUpload::~BlobUpload() {
  if (blobs_) blobs_->places().release(offset_);
}

Result<> BlobUpload::append(std::span<const uint8_t> bytes) {
  while (!bytes.empty()) {
    const ssize_t count =
        ::pwrite(blobs_->file(), bytes.data(), bytes.size(), static_cast<off_t>(offset_ + written_));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0)
      return fail(Code::RESOURCE_EXHAUSTED, "the machine has no memory for constants or code: {}",
                  std::strerror(errno));
    written_ += static_cast<uint64_t>(count);
    bytes = bytes.subspan(static_cast<size_t>(count));
  }
  return {};
}

Result<Ref<Bytes>> BlobUpload::finish(const remote::Sha256& digest) {
  const std::span<const uint8_t> all = blobs_->span(offset_, size_);
  if (remote::sha256(all) != digest)
    return fail(Code::DATA_LOSS, "{} bytes have another SHA-256 than the client says, {}", size_,
                remote::hex(digest));
  blobs_->places().publish(offset_, digest);
  return std::exchange(blobs_, nullptr)->bytes(offset_, size_);
}

Result<std::unique_ptr<Blobs>> Blobs::create(std::shared_ptr<BlobPlaces> places, int file,
                                             uint64_t capacity) {
  remote::Descriptor own(::fcntl(file, F_DUPFD_CLOEXEC, 0));
  void* const begin = ::mmap(nullptr, capacity, PROT_READ, MAP_SHARED | MAP_NORESERVE, own.get(), 0);
  if (begin == MAP_FAILED)
    return fail(Code::RESOURCE_EXHAUSTED, "constants and code of a client cannot be mapped: {}",
                std::strerror(errno));
  return std::make_unique<Blobs>(std::make_shared<MappedBlobs>(std::move(places), std::move(own),
                                                               static_cast<const uint8_t*>(begin), capacity));
}

std::vector<Ref<Bytes>> Blobs::find(std::span<const remote::Sha256> digests) {
  const std::vector<BlobPlaces::Place> places = mapped_->places().find(digests);
  std::vector<Ref<Bytes>> found(places.size());
  for (size_t i = 0; i < places.size(); ++i)
    if (places[i].size > 0) found[i] = mapped_->bytes(places[i].offset, places[i].size);
  return found;
}

Ref<Bytes> Blobs::find(const remote::Sha256& digest) { return std::move(find({&digest, 1})[0]); }

Result<BlobUpload> Blobs::begin(uint64_t size) {
  const uint64_t offset = HALYARD_TRY(mapped_->places().reserve(size));
  return BlobUpload(mapped_, offset, size);
}

}  // namespace halyard::device_server
