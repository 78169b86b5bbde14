// Memory: allocated, imported, written, read and watched.
#include <algorithm>

#include "hal/device/external_memory.h"
#include "hal/queue/host_copy.h"
#include "hal/queue/wait.h"
#include "server/failures.h"
#include "server/session.h"

namespace halyard::device_server {

namespace {

constexpr uint64_t kAlwaysCleared = 64 << 10;  // bytes
constexpr uint32_t kCopyTimeout = 60000;       // milliseconds, of a copy by a device without mappable memory

// The bits that this version of the protocol knows; others are not passed on [R14].
constexpr uint32_t kUsages =
    HALYARD_USAGE_DEFAULT | HALYARD_USAGE_INDIRECT_PARAMETERS | HALYARD_USAGE_UNIFORM_READ;
constexpr uint32_t kTypes = HALYARD_MEMORY_OPTIMAL | HALYARD_MEMORY_HOST_LOCAL | HALYARD_MEMORY_HOST_CACHED |
                            HALYARD_MEMORY_DEVICE_LOCAL;

Result<> await(const Result<Ref<hal::Fence>>& begun) {
  if (!begun) return std::unexpected(begun.error());
  if (!*begun) return {};
  hal::Fence* const fences[] = {begun->get()};
  return to_result(hal::await(fences, kCopyTimeout));
}

}  // namespace

Result<> Session::check_request(const wire::Request* request) const {
  if (!request) return fail(Code::INVALID_ARGUMENT, "a memory has no description");
  return {};
}

Session::Wishes Session::wishes_of(const wire::Request& request) {
  Wishes wishes = {};
  wishes.memory_type = request.memory_type() & kTypes;
  // The client's host maps all memory; where that is impossible here, bytes are copied.
  wishes.usage = (request.usage() & kUsages) | HALYARD_USAGE_DEFAULT;
  if ((wishes.memory_type & HALYARD_MEMORY_HOST_VISIBLE) ||
      (device_->properties().capabilities & HALYARD_DEVICE_UNIFIED_MEMORY))
    wishes.usage |= HALYARD_USAGE_MAPPING_SCOPED;
  // Memory is passed on uncleared only to the owner of before, so no owner of one client is that of another
  // one. HALYARD_OWNER_WRITES_ALL would show the bytes of others: see MemoryObject::unwritten.
  if (request.owner() == HALYARD_OWNER_WRITES_ALL || request.owner() == 0) return wishes;
  constexpr size_t kOwners = 4096;
  if (owners_.size() >= kOwners && !owners_.contains(request.owner())) return wishes;
  uint64_t& owner = owners_[request.owner()];
  if (owner == 0) owner = shared_.next_owner.fetch_add(1, std::memory_order_relaxed);
  wishes.owner = owner;
  return wishes;
}

Result<> Session::on(const wire::MemoryCreate& asked) {
  HALYARD_TRY(check_request(asked.memory()));
  const wire::Request& request = *asked.memory();
  const Wishes wishes = wishes_of(request);
  MemoryObject memory;
  const auto allocate = [&](uint64_t owner) {
    return hal::Buffer::allocate(*device_, request.affinity(), wishes.memory_type, wishes.usage,
                                 request.size(), client_->memory.get(), owner);
  };
  // Clearing takes as long as copying. So large memory that the client fills at once is not cleared before.
  const bool is_filled = request.owner() == HALYARD_OWNER_WRITES_ALL && request.size() > kAlwaysCleared;
  Result<Ref<hal::Buffer>> made = allocate(is_filled ? HALYARD_OWNER_WRITES_ALL : wishes.owner);
  if (made && is_filled) {
    if ((*made)->is_mappable()) {
      memory.unwritten = 0;
    } else {
      made = allocate(wishes.owner);
    }
  }
  if (made) {
    memory.buffer = *std::move(made);
  } else {
    memory.failure = std::move(made.error());
  }
  const Status failure = memory.failure;
  if (memory.unwritten != UINT64_MAX) {
    if (unwritten_.size() >= 2 * shared_.limits.handles)
      std::erase_if(unwritten_, [this](uint64_t number) { return !is_unwritten(number); });
    unwritten_.push_back(asked.id());
  }
  // With a request the client knows whether there is a memory, and destroys it in both cases.
  HALYARD_TRY(objects_.memories.add(asked.id(), std::move(memory)));
  if (asked.request() != 0) done(asked.request(), failure);
  return {};
}

Result<Ref<hal::Buffer>> Session::import_blob(const wire::Request& request, const Ref<Bytes>& blob) {
  const Wishes wishes = wishes_of(request);
  // Kernels that write to the bytes get a copy, so that the blob never changes.
  if (device_->properties().capabilities & HALYARD_DEVICE_WRITES_CONSTANTS) {
    Result<Ref<hal::Buffer>> imported =
        hal::import_host(*device_, request.affinity(), wishes.memory_type, wishes.usage, hal::kRead,
                         const_cast<uint8_t*>(blob->data()), blob->size(), blob, client_->memory.get());
    if (imported) return imported;
  }
  Ref<hal::Buffer> copy =
      HALYARD_TRY(hal::Buffer::allocate(*device_, request.affinity(), wishes.memory_type, wishes.usage,
                                        request.size(), client_->memory.get(), wishes.owner));
  if (blob->size() > 0) HALYARD_TRY(await(hal::begin_write(blob->span(), *copy, 0)));
  return copy;
}

// Why there is no such file is not told, because a client must not learn more about files than their digests.
Ref<Bytes> Session::find_in_files(const wire::MemoryImport& asked) {
  if (shared_.files.empty()) return {};
  const uint64_t size = asked.memory()->size();
  Result<BlobUpload> upload = client_->blobs->begin(size);
  if (!upload) return {};
  const Result<> read =
      shared_.files.read(remote::view(asked.file()), asked.file_offset(), size,
                         [&](std::span<const uint8_t> piece) { return upload->append(piece); });
  if (!read) return {};
  Result<Ref<Bytes>> blob = upload->finish(remote::from_wire(*asked.digest()));
  if (!blob) return {};
  shared_.counts.file_bytes.fetch_add(size, std::memory_order_relaxed);
  return *std::move(blob);
}

Result<> Session::on(const wire::MemoryImport& asked) {
  HALYARD_TRY(check_request(asked.memory()));
  if (!asked.digest()) return fail(Code::INVALID_ARGUMENT, "an import has no digest");
  const uint64_t size = asked.memory()->size();
  const remote::Sha256 digest = remote::from_wire(*asked.digest());
  Ref<Bytes> blob = size == 0 ? Bytes::own({}) : client_->blobs->find(digest);
  if (const auto wanted = wanted_.find(digest); !blob && wanted != wanted_.end()) blob = wanted->second;
  if (!blob && asked.file()) blob = find_in_files(asked);
  if (!blob && asked.request() == 0)
    return fail(Code::INVALID_ARGUMENT, "an import without an answer names a blob that was not wanted, {}",
                remote::hex(digest));
  if (!blob) {
    send([&](remote::Message& message) { return wire::CreateNeed(message.builder(), asked.request()); });
    return {};
  }
  if (blob->size() != size)
    return fail(Code::INVALID_ARGUMENT, "an import of {} bytes names a blob of {}", size, blob->size());
  MemoryObject memory;
  Result<Ref<hal::Buffer>> made = import_blob(*asked.memory(), blob);
  if (made) {
    memory.buffer = *std::move(made);
  } else {
    memory.failure = std::move(made.error());
  }
  const Status failure = memory.failure;
  HALYARD_TRY(objects_.memories.add(asked.id(), std::move(memory)));
  if (asked.request() != 0) done(asked.request(), failure);
  return {};
}

Result<> Session::on(const wire::BlobsWanted& asked) {
  constexpr size_t kMost = 1 << 16;
  const size_t count = asked.digests() ? asked.digests()->size() : 0;
  if (count > kMost - std::min(kMost, wanted_.size()))
    return fail(Code::RESOURCE_EXHAUSTED, "expected at most {} blobs that are wanted on a connection", kMost);
  std::vector<remote::Sha256> digests(count);
  for (size_t i = 0; i < count; ++i)
    digests[i] = remote::from_wire(*asked.digests()->Get(static_cast<flatbuffers::uoffset_t>(i)));
  std::vector<Ref<Bytes>> blobs = client_->blobs->find(digests);
  std::vector<uint8_t> known(count);
  for (size_t i = 0; i < count; ++i) {
    if (!blobs[i]) continue;
    known[i] = 1;
    wanted_.insert_or_assign(digests[i], std::move(blobs[i]));
  }
  send([&](remote::Message& message) {
    const auto list = message.builder().CreateVector(known);
    return wire::CreateBlobsKnown(message.builder(), asked.request(), list);
  });
  return {};
}

Result<> Session::on(const wire::MemoryDestroy& asked) { return destroy_memory(asked.id()); }

Result<> Session::destroy_memory(uint64_t number) {
  {
    const std::lock_guard lock(mutex_);
    watched_.erase(number);
  }
  return objects_.memories.destroy(number);
}

// Work that uses the memory fails if the bytes could not be written.
Result<> Session::on(const wire::MemoryWrite& asked, remote::Bytes data) {
  MemoryObject* const memory = HALYARD_TRY(objects_.memories.find(asked.id()));
  if (!memory->failure.ok()) return {};
  HALYARD_TRY(memory->buffer->check_range(asked.offset(), data.size()));
  if (data.empty()) return {};
  if (asked.offset() != memory->unwritten) settle(*memory);
  Result<> written = await(hal::begin_write(data, *memory->buffer, asked.offset()));
  advance_written(*memory, asked.offset(), data.size());
  if (!written)
    memory->failure = std::move(written.error()).note("while writing bytes of the client to memory");
  return {};
}

void advance_written(MemoryObject& memory, uint64_t offset, uint64_t size) {
  if (memory.unwritten != offset) return;
  memory.unwritten += size;
  if (memory.unwritten == memory.buffer->length()) memory.unwritten = UINT64_MAX;
}

void settle(MemoryObject& memory) {
  if (memory.unwritten == UINT64_MAX || !memory.buffer) return;
  const std::vector<uint8_t> zeros(std::min<uint64_t>(kAlwaysCleared, memory.buffer->length()));
  for (uint64_t at = std::exchange(memory.unwritten, UINT64_MAX); at < memory.buffer->length();
       at += zeros.size()) {
    const uint64_t size = std::min<uint64_t>(zeros.size(), memory.buffer->length() - at);
    if (Result<> cleared = memory.buffer->write(at, zeros.data(), size); !cleared) {
      memory.failure = std::move(cleared.error()).note("while clearing memory");
      return;
    }
  }
}

Result<> Session::read(hal::Buffer& buffer, uint64_t offset, std::span<uint8_t> target) {
  if (buffer.is_mappable()) return buffer.read(offset, target.data(), target.size());
  const Ref<Bytes> bytes = Bytes::own(std::vector<uint8_t>(target.size()));
  const std::span<uint8_t> staging(const_cast<uint8_t*>(bytes->data()), bytes->size());
  HALYARD_TRY(await(hal::begin_read(buffer, offset, staging, bytes)));
  std::ranges::copy(staging, target.begin());
  return {};
}

Result<> Session::on(const wire::MemoryRead& asked) {
  MemoryObject* const memory = HALYARD_TRY(objects_.memories.find(asked.id()));
  settle(*memory);
  if (!memory->failure.ok()) {
    done(asked.request(), memory->failure);
    return {};
  }
  HALYARD_TRY(memory->buffer->check_range(asked.offset(), asked.length()));
  constexpr size_t kReadings = 64;
  if (readings_.size() >= kReadings || readings_.contains(asked.request()))
    return fail(Code::RESOURCE_EXHAUSTED, "expected at most {} reads under way, each with its number",
                kReadings);
  if (asked.watch()) {
    const std::lock_guard lock(mutex_);
    watched_.insert_or_assign(asked.id(), memory->buffer);
  }
  if (asked.length() == 0) {
    done(asked.request(), {});
    return {};
  }
  if (asked.credit() == 0) {
    if (asked.request() == 0) return fail(Code::INVALID_ARGUMENT, "a read has no number");
    News news;
    news.contents.push_back({asked.id(), asked.offset(), asked.length()});
    news.is_long = !memory->buffer->is_mappable() || asked.length() > remote::kPiece;
    news.request = asked.request();
    std::unique_lock lock(mutex_);
    HALYARD_TRY(check_room_for_work());
    add_news(std::move(news), std::move(lock));
    return {};
  }
  Reading reading = {memory->buffer, asked.offset(), asked.length(), 0, asked.credit()};
  go_on(asked.request(), reading);
  if (reading.sent < reading.length) readings_.emplace(asked.request(), std::move(reading));
  return {};
}

Result<> Session::on(const wire::Credit& asked) {
  const auto found = readings_.find(asked.request());
  if (found == readings_.end()) return {};  // all bytes were sent
  found->second.credit = saturating_add(found->second.credit, asked.bytes());
  go_on(asked.request(), found->second);
  if (found->second.sent == found->second.length) readings_.erase(found);
  return {};
}

namespace {

// Keeps a memory mapped.
struct Mapped {
  explicit Mapped(Ref<hal::Allocation> memory) : allocation(std::move(memory)) {}
  Mapped(const Mapped&) = delete;
  Mapped& operator=(const Mapped&) = delete;
  ~Mapped() { allocation->unmap(); }
  const Ref<hal::Allocation> allocation;
};

}  // namespace

// Bytes that can be mapped are sent from where they are. While they wait to be sent, work may change them;
// then the client gets the later ones, and again those of watched memory.
void Session::go_on(uint64_t request, Reading& reading) {
  const auto send_piece = [&](std::span<const uint8_t> bytes, const std::shared_ptr<void>& keep) {
    send([&](remote::Message& message) { return wire::CreateData(message.builder(), request, reading.sent); },
         bytes, keep);
    reading.sent += bytes.size();
    reading.credit -= bytes.size();
  };
  const auto next = [&] {
    return std::min<uint64_t>({remote::kPiece, reading.length - reading.sent, reading.credit});
  };
  if (reading.buffer->is_mappable() && reading.length >= remote::kPiece) {
    Result<std::span<uint8_t>> mapped = reading.buffer->map();
    if (mapped) {
      const auto keep = std::make_shared<Mapped>(Ref<hal::Allocation>::share(&reading.buffer->allocation()));
      while (reading.sent < reading.length && reading.credit > 0)
        send_piece(mapped->subspan(reading.offset + reading.sent, next()), keep);
      return;
    }
  }
  const auto piece =
      std::make_unique_for_overwrite<uint8_t[]>(std::min<uint64_t>(remote::kPiece, reading.length));
  while (reading.sent < reading.length && reading.credit > 0) {
    if (!await_receiver()) return;
    const std::span<uint8_t> target(piece.get(), next());
    const std::lock_guard in_order(contents_mutex_);
    if (Result<> copied = read(*reading.buffer, reading.offset + reading.sent, target); !copied) {
      reading.sent = reading.length;
      return done(request, copied.error());
    }
    send_piece(target, nullptr);
  }
}

Result<> Session::on(const wire::MemoryWatch& asked) {
  MemoryObject* const memory = HALYARD_TRY(objects_.memories.find(asked.id()));
  settle(*memory);
  const std::lock_guard lock(mutex_);
  if (asked.watch() && memory->failure.ok()) {
    watched_.insert_or_assign(asked.id(), memory->buffer);
  } else {
    watched_.erase(asked.id());
  }
  return {};
}

bool Session::send_contents(const std::vector<Changed>& changes) {
  for (const Changed& changed : changes) {
    Ref<hal::Buffer> buffer;
    {
      const std::lock_guard lock(mutex_);
      const auto found = watched_.find(changed.memory);
      if (found == watched_.end()) continue;
      buffer = found->second;
    }
    const uint64_t end = changed.offset + std::min(changed.length, buffer->length() - changed.offset);
    std::vector<uint8_t> piece(std::min<uint64_t>(remote::kPiece, end - changed.offset));
    for (uint64_t offset = changed.offset; offset < end; offset += piece.size()) {
      const std::span<uint8_t> target(piece.data(), std::min<uint64_t>(piece.size(), end - offset));
      if (!await_receiver()) return false;
      const std::lock_guard in_order(contents_mutex_);
      if (!read(*buffer, offset, target)) break;  // bytes of an alloca that do not exist any more
      send(
          [&](remote::Message& message) {
            return wire::CreateContents(message.builder(), changed.memory, offset);
          },
          target);
    }
  }
  return true;
}

}  // namespace halyard::device_server
