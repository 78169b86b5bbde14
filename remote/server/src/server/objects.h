// Objects: what a client has made on a connection, by the numbers that the client has chosen. An object whose
// creation has failed stays, with the failure, because the client does not wait for an answer: what uses it
// fails. One thread at a time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <memory_resource>
#include <unordered_map>
#include <vector>

#include "base/budget.h"
#include "base/status.h"
#include "hal/command/command_buffer.h"
#include "hal/device/buffer.h"
#include "hal/device/executable.h"
#include "hal/queue/fence.h"

namespace halyard::device_server {

struct MemoryObject {
  static constexpr const char* kName = "memory";
  Ref<hal::Buffer> buffer;
  Status failure;
  // Bytes from here on may be those of others: the client has promised to write all of them first.
  uint64_t unwritten = UINT64_MAX;
};
// Clears bytes that the client has not written, before anything but its next write can use the memory. A
// failure becomes that of the memory.
void settle(MemoryObject& memory);
// Bytes were written.
void advance_written(MemoryObject& memory, uint64_t offset, uint64_t size);

struct SemaphoreObject {
  static constexpr const char* kName = "semaphore";
  Ref<hal::Semaphore> semaphore;
  Status failure;
  Charge text;  // of the client's failure
};
// Ends what still waits for the semaphore. Clients destroy semaphores after all their work.
inline void abandon(const SemaphoreObject& object) {
  if (object.semaphore)
    object.semaphore->fail(Status(Code::CANCELLED, "the client has destroyed the semaphore, or has gone"));
}
struct ExecutableObject {
  static constexpr const char* kName = "executable";
  Ref<hal::Executable> executable;
  Status failure;
};

// The numbers of memories that work may write to.
class MemoryNumbers {
 public:
  // The same number many times takes the room of a few.
  void add(uint64_t number) {
    numbers_.push_back(number);
    if (numbers_.size() < next_cleaning_) return;
    remove_repeated();
    next_cleaning_ = std::max(kLeast, 2 * numbers_.size());
  }
  // After the last add(): each number is there once, and the block is charged.
  Result<> finish(Budget& memory) {
    if (numbers_.size() <= kUncharged) return {};
    remove_repeated();
    numbers_.shrink_to_fit();
    return charge_.start(&memory, block_bytes(numbers_.capacity() * sizeof(uint64_t)),
                         "the numbers of memories of work");
  }
  auto begin() const { return numbers_.begin(); }
  auto end() const { return numbers_.end(); }

 private:
  static constexpr size_t kLeast = 1024;
  static constexpr size_t kUncharged = 8;
  void remove_repeated() {
    std::ranges::sort(numbers_);
    const auto rest = std::ranges::unique(numbers_);
    numbers_.erase(rest.begin(), rest.end());
  }

  std::vector<uint64_t> numbers_;
  size_t next_cleaning_ = kLeast;
  Charge charge_;
};

struct ListObject {
  static constexpr const char* kName = "command list";
  Ref<hal::CommandBuffer> commands;
  std::shared_ptr<const MemoryNumbers> memories;  // that its commands name; null: it has failed
  Status failure;
};

// The number of all objects of a connection.
class HandleCount {
 public:
  explicit HandleCount(size_t limit) : limit_(limit) {}
  Result<> take() {
    if (used_ >= limit_)
      return fail(
          Code::RESOURCE_EXHAUSTED,
          "the connection has {} objects and submissions; destroy some, or raise --max_handles of vm-device",
          used_);
    ++used_;
    return {};
  }
  void give_back() { --used_; }

 private:
  const size_t limit_;
  size_t used_ = 0;
};

// A failure of these functions is a client that breaks the protocol.
template <typename T>
class Table {
 public:
  explicit Table(HandleCount& count) : count_(count) {}
  Result<> add(uint64_t number, T object) {
    if (number == 0 || objects_.contains(number))
      return fail(Code::INVALID_ARGUMENT, "{} {} exists already, or is no number of an object", T::kName,
                  number);
    HALYARD_TRY(count_.take());
    objects_.emplace(number, std::move(object));
    return {};
  }
  Result<T*> find(uint64_t number) {
    const auto found = objects_.find(number);
    if (found == objects_.end()) return fail(Code::INVALID_ARGUMENT, "there is no {} {}", T::kName, number);
    return &found->second;
  }
  template <typename Visit>
  void for_each(Visit visit) {
    for (auto& [number, object] : objects_) visit(object);
  }
  Result<> destroy(uint64_t number) {
    HALYARD_TRY(find(number));
    objects_.erase(number);
    count_.give_back();
    return {};
  }

 private:
  HandleCount& count_;
  std::pmr::unsynchronized_pool_resource nodes_;
  std::pmr::unordered_map<uint64_t, T> objects_{&nodes_};
};

struct Objects {
  explicit Objects(size_t limit) : count(limit) {}
  HandleCount count;
  Table<MemoryObject> memories{count};
  Table<SemaphoreObject> semaphores{count};
  Table<ExecutableObject> executables{count};
  Table<ListObject> lists{count};
};

}  // namespace halyard::device_server
