// LiveObjects: counts the live objects of a device or of programs, by type, to find leaked references. Used
// only if the embedder requests it.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "base/object.h"

namespace halyard {

// Thread-safe.
class LiveObjects {
 public:
  void add(const ObjectType& type, int64_t count) {
    for (Entry& entry : entries_) {
      const ObjectType* there = entry.type.load(std::memory_order_acquire);
      if (!there && entry.type.compare_exchange_strong(there, &type, std::memory_order_acq_rel))
        there = &type;
      if (there != &type) continue;
      entry.live.fetch_add(count, std::memory_order_relaxed);
      if (count > 0) entry.made.fetch_add(static_cast<uint64_t>(count), std::memory_order_relaxed);
      return;
    }
  }
  // Calls visit(const ObjectType&, live, made so far) for each type, in the order in which types first
  // occurred.
  template <typename Visit>
  void each(Visit&& visit) const {
    for (const Entry& entry : entries_)
      if (const ObjectType* type = entry.type.load(std::memory_order_acquire))
        visit(*type, static_cast<uint64_t>(entry.live.load()), entry.made.load());
  }

 private:
  struct Entry {
    std::atomic<const ObjectType*> type{nullptr};
    std::atomic<int64_t> live{0};
    std::atomic<uint64_t> made{0};
  };
  std::array<Entry, 16> entries_;  // more than the number of types
};

}  // namespace halyard
