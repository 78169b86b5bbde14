// operator new and delete over malloc, with a count.
#include "allocations.h"

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace faults {

namespace {

std::atomic<int64_t> live = 0;
thread_local int armed = 0;
int64_t countdown = 0;
bool for_good = false;
bool failed = false;

bool has_run_out() {
  if (armed == 0 || countdown == 0) return false;
  if (countdown > 1) {
    --countdown;
    return false;
  }
  if (!for_good) countdown = 0;
  failed = true;
  return true;
}

void* allocate(std::size_t size, std::size_t alignment) noexcept {
  if (has_run_out()) return nullptr;
  const std::size_t whole = (size + alignment - 1) / alignment * alignment;
  void* memory = alignment <= alignof(std::max_align_t)
                     ? std::malloc(size ? size : 1)
                     : std::aligned_alloc(alignment, whole ? whole : alignment);
  if (memory) live.fetch_add(1, std::memory_order_relaxed);
  return memory;
}

void* allocate_or_throw(std::size_t size, std::size_t alignment) {
  if (void* memory = allocate(size, alignment)) return memory;
  throw std::bad_alloc();
}

void give_back(void* memory) noexcept {
  if (memory) live.fetch_sub(1, std::memory_order_relaxed);
  std::free(memory);
}

constexpr std::size_t kPlain = alignof(std::max_align_t);

}  // namespace

Armed::Armed() { ++armed; }
Armed::~Armed() { --armed; }

void fail_allocation(int64_t number, Lasting lasting) {
  countdown = number;
  for_good = lasting == Lasting::for_good;
  failed = false;
}

bool has_failed() { return failed; }
int64_t live_allocations() { return live.load(std::memory_order_relaxed); }

}  // namespace faults

using faults::allocate;
using faults::allocate_or_throw;
using faults::give_back;
using faults::kPlain;

// All variants: otherwise a sanitizer's operators would mix with ours.
void* operator new(std::size_t size) { return allocate_or_throw(size, kPlain); }
void* operator new[](std::size_t size) { return allocate_or_throw(size, kPlain); }
void* operator new(std::size_t size, const std::nothrow_t&) noexcept { return allocate(size, kPlain); }
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept { return allocate(size, kPlain); }
void* operator new(std::size_t size, std::align_val_t to) {
  return allocate_or_throw(size, static_cast<std::size_t>(to));
}
void* operator new[](std::size_t size, std::align_val_t to) {
  return allocate_or_throw(size, static_cast<std::size_t>(to));
}
void* operator new(std::size_t size, std::align_val_t to, const std::nothrow_t&) noexcept {
  return allocate(size, static_cast<std::size_t>(to));
}
void* operator new[](std::size_t size, std::align_val_t to, const std::nothrow_t&) noexcept {
  return allocate(size, static_cast<std::size_t>(to));
}
void operator delete(void* memory) noexcept { give_back(memory); }
void operator delete[](void* memory) noexcept { give_back(memory); }
void operator delete(void* memory, std::size_t) noexcept { give_back(memory); }
void operator delete[](void* memory, std::size_t) noexcept { give_back(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { give_back(memory); }
void operator delete[](void* memory, const std::nothrow_t&) noexcept { give_back(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { give_back(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { give_back(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { give_back(memory); }
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept { give_back(memory); }
void operator delete(void* memory, std::align_val_t, const std::nothrow_t&) noexcept { give_back(memory); }
void operator delete[](void* memory, std::align_val_t, const std::nothrow_t&) noexcept { give_back(memory); }
