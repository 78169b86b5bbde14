// The file is larger than all that a client may have, so room is found although it is in pieces.
#include "server/blob_store.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace halyard::device_server {

namespace {

constexpr uint64_t kPage = 4096;
constexpr uint64_t kMostCapacity = sizeof(void*) == 8 ? uint64_t{64} << 30 : uint64_t{256} << 20;
constexpr size_t kMostEntries = 16384;  // of a client

uint64_t whole_pages(uint64_t size) { return (size + kPage - 1) / kPage * kPage; }

}  // namespace

Result<std::shared_ptr<BlobStore>> BlobStore::create(uint64_t limit, Ref<Budget> memory) {
  const uint64_t most = memory->limit();
  const uint64_t capacity = whole_pages(std::min(most, kMostCapacity / 2)) * 2;
  remote::Descriptor file(::memfd_create("halyard-blobs", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (file.get() < 0 || ::ftruncate(file.get(), static_cast<off_t>(capacity)) != 0)
    return fail(Code::RESOURCE_EXHAUSTED, "the system gives no file in memory for constants and code: {}",
                std::strerror(errno));
  // Nobody can make bytes that are mapped disappear.
  ::fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
  return std::make_shared<BlobStore>(limit, std::move(memory), std::move(file), capacity);
}

uint64_t BlobStore::used() const {
  const std::lock_guard lock(mutex_);
  return published_;
}

void BlobStore::erase(Entries::iterator entry) {
  if (entry->second.digest) {
    published_ -= entry->second.room;
    offsets_.erase(*entry->second.digest);
  }
  // The memory goes back to the machine.
  ::fallocate(file_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(entry->first),
              static_cast<off_t>(entry->second.room));
  entries_.erase(entry);
}

bool BlobStore::drop_unused(size_t count) {
  if (unused_.empty()) return false;
  for (; count > 0 && !unused_.empty(); --count) {
    const uint64_t oldest = unused_.back();
    unused_.pop_back();
    erase(entries_.find(oldest));
  }
  return true;
}

std::optional<uint64_t> BlobStore::find_gap(uint64_t room) const {
  uint64_t begin = 0;
  for (const auto& [offset, entry] : entries_) {
    if (offset - begin >= room) return begin;
    begin = offset + entry.room;
  }
  if (capacity_ - begin >= room) return begin;
  return std::nullopt;
}

Result<uint64_t> BlobStore::reserve(uint64_t size) {
  if (size > limit_)
    return fail(
        Code::RESOURCE_EXHAUSTED,
        "constants or code of {} bytes do not fit the {} bytes that the server keeps for a client; raise "
        "--max_cache of vm-device",
        size, limit_);
  const uint64_t room = whole_pages(std::max<uint64_t>(size, 1));
  const std::lock_guard lock(mutex_);
  while (entries_.size() >= kMostEntries)
    if (!drop_unused(1))
      return fail(Code::RESOURCE_EXHAUSTED, "the client uses {} constants and codes, the most there may be",
                  entries_.size());
  Result<Charge> charge = Charge::take(memory_, room, "constants or code of a client");
  while (!charge && drop_unused(1)) charge = Charge::take(memory_, room, "constants or code of a client");
  if (!charge) return std::unexpected(charge.error());
  std::optional<uint64_t> offset = find_gap(room);
  // Looking for a gap takes long if there are many entries, so not after each of them.
  while (!offset && drop_unused(unused_.size() / 4 + 1)) offset = find_gap(room);
  if (!offset)
    return fail(Code::RESOURCE_EXHAUSTED, "there is no room of {} bytes for constants or code of a client",
                size);
  Entry entry;
  entry.size = size;
  entry.room = room;
  entry.uses = 1;
  entry.charge = *std::move(charge);
  entries_.emplace(*offset, std::move(entry));
  return *offset;
}

void BlobStore::publish(uint64_t offset, const remote::Sha256& digest) {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(offset);
  // Another connection of the client may have been faster.
  if (found == entries_.end() || found->second.digest || !offsets_.emplace(digest, offset).second) return;
  found->second.digest = digest;
  published_ += found->second.room;
  while (published_ > limit_ && drop_unused(1)) {
  }
}

std::vector<BlobPlaces::Place> BlobStore::find(std::span<const remote::Sha256> digests) {
  const std::lock_guard lock(mutex_);
  std::vector<Place> places(digests.size());
  for (size_t i = 0; i < digests.size(); ++i) {
    const auto found = offsets_.find(digests[i]);
    if (found == offsets_.end()) continue;
    Entry& entry = entries_.at(found->second);
    if (entry.uses++ == 0) unused_.erase(entry.unused);
    places[i] = {found->second, entry.size};
  }
  return places;
}

void BlobStore::release(uint64_t offset) {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(offset);
  if (found == entries_.end() || found->second.uses == 0 || --found->second.uses > 0) return;
  if (!found->second.digest) return erase(found);
  unused_.push_front(offset);
  found->second.unused = unused_.begin();
  while (published_ > limit_ && drop_unused(1)) {
  }
}

}  // namespace halyard::device_server
