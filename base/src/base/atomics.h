// Atomic operations that avoid atomic instructions while the C library reports a single-threaded process.
// Otherwise each reference taken and dropped would cost a few nanoseconds, which would dominate a small call.
#pragma once

#include <atomic>
#include <type_traits>

#if __has_include(<sys/single_threaded.h>)
#include <sys/single_threaded.h>
#endif

namespace halyard {

// Whether this is the only thread of the process. The answer stays valid until the caller starts a thread.
// After a second thread has existed, the C library may keep answering false.
inline bool single_threaded() {
#if __has_include(<sys/single_threaded.h>)
  return __libc_single_threaded;
#else
  return false;
#endif
}

// Like the members of std::atomic. `is_alone`: no other thread uses the value at the same time.
template <typename T>
T fetch_add(std::atomic<T>& value, std::type_identity_t<T> count, std::memory_order order,
            bool is_alone = single_threaded()) {
  if (!is_alone) return value.fetch_add(count, order);
  const T before = value.load(std::memory_order_relaxed);
  value.store(before + count, std::memory_order_relaxed);
  return before;
}

template <typename T>
T fetch_sub(std::atomic<T>& value, std::type_identity_t<T> count, std::memory_order order,
            bool is_alone = single_threaded()) {
  if (!is_alone) return value.fetch_sub(count, order);
  const T before = value.load(std::memory_order_relaxed);
  value.store(before - count, std::memory_order_relaxed);
  return before;
}

template <typename T>
T exchange(std::atomic<T>& value, std::type_identity_t<T> desired, std::memory_order order) {
  if (!single_threaded()) return value.exchange(desired, order);
  const T before = value.load(std::memory_order_relaxed);
  value.store(desired, std::memory_order_relaxed);
  return before;
}

// Returns false and stores the actual value in `expected` if they differ. The failure order is relaxed.
template <typename T>
bool compare_exchange(std::atomic<T>& value, T& expected, std::type_identity_t<T> desired,
                      std::memory_order order) {
  if (!single_threaded())
    return value.compare_exchange_strong(expected, desired, order, std::memory_order_relaxed);
  const T before = value.load(std::memory_order_relaxed);
  if (before == expected) {
    value.store(desired, std::memory_order_relaxed);
    return true;
  }
  expected = before;
  return false;
}

}  // namespace halyard
