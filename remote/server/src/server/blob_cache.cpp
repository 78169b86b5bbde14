// The least recently used bytes are dropped first.
#include "server/blob_cache.h"

#include <memory>

namespace halyard::device_server {

uint64_t BlobCache::used() const {
  const std::lock_guard lock(mutex_);
  return used_;
}

Ref<Bytes> BlobCache::find(const remote::Sha256& digest) {
  const std::lock_guard lock(mutex_);
  const auto found = places_.find(digest);
  if (found == places_.end()) return {};
  entries_.splice(entries_.begin(), entries_, found->second);
  return found->second->bytes;
}

void BlobCache::drop_oldest() {
  Entry& oldest = entries_.back();
  used_ -= oldest.bytes->size();
  places_.erase(oldest.digest);
  entries_.pop_back();
}

Result<Charge> BlobCache::reserve(uint64_t size) {
  if (size > limit_)
    return fail(
        Code::RESOURCE_EXHAUSTED,
        "constants or code of {} bytes do not fit the {} bytes that the server keeps for a client; raise "
        "--max_cache of vm-device",
        size, limit_);
  for (;;) {
    Result<Charge> charge = Charge::take(memory_, size, "constants or code of a client");
    if (charge) return charge;
    const std::lock_guard lock(mutex_);
    if (entries_.empty()) return charge;
    drop_oldest();
  }
}

Result<> BlobCache::add(const remote::Sha256& digest, ImportableBytes bytes, Charge charge) {
  if (remote::sha256(bytes) != digest)
    return fail(Code::DATA_LOSS, "{} bytes have another SHA-256 than the client says, {}", bytes.size(),
                remote::hex(digest));
  const uint64_t size = bytes.size();
  // Shared with other connections of this client: nobody may write to them, and kernels get copies.
  auto kept = std::make_shared<std::pair<ImportableBytes, Charge>>(std::move(bytes), std::move(charge));
  const std::span<const uint8_t> span = kept->first;
  Ref<Bytes> shared = Bytes::borrow(span, [kept = std::move(kept)]() mutable { kept.reset(); });
  const std::lock_guard lock(mutex_);
  if (places_.contains(digest)) return {};
  while (!entries_.empty() && used_ + size > limit_) drop_oldest();
  entries_.push_front({digest, std::move(shared)});
  places_.emplace(digest, entries_.begin());
  used_ += size;
  return {};
}

}  // namespace halyard::device_server
