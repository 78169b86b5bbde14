// Mapping for reading fetches the bytes, and the server then sends what work changes; unmapping sends what
// the host has written.
#include "memory.h"

#include <cstring>

namespace halyard::remote {

Memory::Memory(std::shared_ptr<Connection> server, kit::MemoryTally& tally, uint64_t size)
    : server_(std::move(server)), tally_(tally), size_(size), number_(server_->new_number()) {}

Memory::~Memory() {
  mirrors_.clear();
  if (mapped_) {  // host bytes that are shared, or bytes with mirrors
    if (shared_) mapped_->close_all();
    server_->remove_mapped(number_);
  }
  ends();
  server_->destroy_memory(number_);
}

void Memory::exists() {
  exists_.store(true, std::memory_order_release);
  if (counts_ && !is_counted_.exchange(true)) tally_.count(size_, 0);
}

void Memory::ends() {
  if (is_counted_.exchange(false)) tally_.count(0, size_);
}

void Memory::write(uint64_t offset, Bytes bytes) {
  for (size_t done = 0; done < bytes.size(); done += kMaxData) {
    Message message;
    const auto body = wire::CreateMemoryWrite(message.builder(), number_, offset + done);
    server_->send(message.to_server(body), bytes.subspan(done, std::min(kMaxData, bytes.size() - done)));
  }
}

// While other mappings are open, the bytes are merged with what the host has written, in the order in which
// the server has sent them.
kit::Result<> Memory::fetch(uint8_t* bytes, uint64_t offset, uint64_t length) {
  is_watched_ = true;
  Request request;
  const bool merges = mappings_ > 0 || shared_;
  if (merges) {
    request.merged_memory = number_;
    request.merged = length;
  } else {
    request.target = {bytes + offset, length};
  }
  return server_->request(request, [&](uint64_t number) {
    Message message;
    const auto body = wire::CreateMemoryRead(message.builder(), number, number_, offset, length,
                                             merges ? 0 : kCredit, true);
    server_->send(message.to_server(body), {}, Stream::Urgency::now);
  });
}

void Memory::open_bytes(uint8_t* bytes) {
  mapped_ = std::make_unique<MappedBytes>(bytes, size_,
                                          [this](uint64_t offset, Bytes changed) { write(offset, changed); });
  server_->add_mapped(number_, *mapped_);
}

void Memory::share(uint8_t* bytes) {
  const std::lock_guard lock(mutex_);
  shared_ = bytes;
  open_bytes(bytes);
  mapped_->open(0, size_, false);
  is_watched_ = true;
  Message message;
  server_->send(message.to_server(wire::CreateMemoryWatch(message.builder(), number_, true)));
}

uint8_t* Memory::make_room() {
  if (shared_) return shared_;
  if (!room_)
    room_.reset(static_cast<uint8_t*>(::operator new[](std::max<uint64_t>(size_, 1), std::align_val_t(64))));
  return room_.get();
}

kit::Result<uint64_t> Memory::number_at(const std::shared_ptr<Connection>& server) {
  if (server == server_) return number_;
  const std::lock_guard lock(mutex_);
  for (const std::unique_ptr<Memory>& mirror : mirrors_)
    if (mirror->server_ == server) return mirror->number_;
  uint8_t* const bytes = make_room();
  if (mirrors_.empty() && !shared_) {
    if (!mapped_) open_bytes(bytes);
    // Bytes of an alloca that has not run have no contents yet.
    if (kit::Result<> fetched = fetch(bytes, 0, size_); !fetched) {
      if (fetched.failure().code != HALYARD_FAILED_PRECONDITION) return std::move(fetched.failure());
      if (mappings_ == 0) std::memset(bytes, 0, size_);
    }
    mapped_->open(0, size_, false);
    ++mappings_;  // as long as this memory lives
  }
  auto mirror = std::make_unique<Memory>(server, tally_, size_);
  mirror->is_import();
  Message message;
  const auto request =
      wire::CreateRequest(message.builder(), HALYARD_MEMORY_DEVICE_LOCAL, HALYARD_USAGE_DEFAULT, UINT64_MAX,
                          size_, HALYARD_OWNER_WRITES_ALL);
  server->send(message.to_server(wire::CreateMemoryCreate(message.builder(), 0, mirror->number_, request)));
  mirror->exists();
  // What work changes from now on is sent later as a difference; what it has changed meanwhile, twice.
  mirror->share(bytes);
  mirror->write(0, {bytes, size_});
  mirrors_.push_back(std::move(mirror));
  return mirrors_.back()->number_;
}

// Whether the bytes of an alloca exist is known here when its completion has come. That of work after it may
// come before.
kit::Result<> Memory::check_existence() {
  if (exists_.load(std::memory_order_acquire) || size_ == 0) return {};
  uint8_t first = 0;
  Request request;
  request.target = {&first, 1};
  return server_->request(request, [&](uint64_t number) {
    Message message;
    const auto body = wire::CreateMemoryRead(message.builder(), number, number_, 0, 1, kCredit, false);
    server_->send(message.to_server(body), {}, Stream::Urgency::now);
  });
}

kit::Result<uint8_t*> Memory::map(uint32_t access, uint64_t offset, uint64_t length) {
  HALYARD_KIT_TRY(server_->check());
  HALYARD_KIT_TRY(check_existence());
  const std::lock_guard lock(mutex_);
  uint8_t* const bytes = make_room();
  const bool is_new =
      (access & HALYARD_MAP_WRITE) && (access & HALYARD_MAP_DISCARD) && !(access & HALYARD_MAP_READ);
  if (!mapped_) open_bytes(bytes);
  if (!is_new && length > 0) {
    // What the host has written to other mappings goes first, and comes back with the rest.
    mapped_->send_changes();
    if (kit::Result<> fetched = fetch(bytes, offset, length); !fetched) {
      if (mappings_ == 0 && !shared_) close_bytes();
      return std::move(fetched.failure());
    }
  }
  if (access & HALYARD_MAP_WRITE) mapped_->open(offset, length, is_new);
  ++mappings_;
  return bytes + offset;
}

// Mappings that are open at the same time show what is written, and their bytes may not be at the server yet.
kit::Result<> Memory::read_now(uint64_t offset, std::span<uint8_t> target) {
  bool is_open = false;
  {
    const std::lock_guard lock(mutex_);
    is_open = mapped_ != nullptr;
  }
  if (is_open) {
    const uint8_t* const bytes = HALYARD_KIT_TRY(map(HALYARD_MAP_READ, offset, target.size()));
    std::memcpy(target.data(), bytes, target.size());
    unmap();
    return {};
  }
  HALYARD_KIT_TRY(server_->check());
  server_->send_changes();
  Request request;
  request.target = target;
  return server_->request(request, [&](uint64_t number) {
    Message message;
    const auto body =
        wire::CreateMemoryRead(message.builder(), number, number_, offset, target.size(), kCredit, false);
    server_->send(message.to_server(body), {}, Stream::Urgency::later);
  });
}

kit::Result<> Memory::write_now(uint64_t offset, Bytes source) {
  bool is_open = false;
  {
    const std::lock_guard lock(mutex_);
    is_open = mapped_ != nullptr;
  }
  if (is_open) {
    uint8_t* const bytes =
        HALYARD_KIT_TRY(map(HALYARD_MAP_WRITE | HALYARD_MAP_DISCARD, offset, source.size()));
    std::memcpy(bytes, source.data(), source.size());
    unmap();
    return {};
  }
  HALYARD_KIT_TRY(server_->check());
  HALYARD_KIT_TRY(check_existence());
  write(offset, source);
  return server_->check();
}

void Memory::unmap() {
  const std::lock_guard lock(mutex_);
  if (mappings_ == 0) return;
  if (--mappings_ > 0) return;
  if (shared_) return mapped_->send_changes();
  mapped_->close_all();
  close_bytes();
  if (!std::exchange(is_watched_, false)) return;
  Message message;
  server_->send(message.to_server(wire::CreateMemoryWatch(message.builder(), number_, false)));
}

void Memory::close_bytes() {
  server_->remove_mapped(number_);
  mapped_.reset();
}

}  // namespace halyard::remote
