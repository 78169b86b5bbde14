// Team: threads of a pool that help a thread with one piece of work after the other. A helper joins by a task
// of the pool and then looks for work without a lock, because a post to the pool takes as long as a short
// dispatch. It leaves when the team ends, when other tasks wait in the pool, or after so long without work
// that it should sleep.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>

#include "node_cache.h"
#include "thread_pool.h"

namespace halyard::local {

enum class Role : uint8_t { owner, helper };

class Team {
 public:
  struct End {
    void operator()(Team* team) const noexcept { team->end(); }
  };
  using Owned = std::unique_ptr<Team, End>;
  // `cost`: the expected duration of all work, in nanoseconds. Throws std::bad_alloc.
  static Owned create(ThreadPool& thread_pool, NodeCache& nodes, uint64_t cost);

  // The number of threads that would help now. Thread-safe.
  uint32_t spare_threads() const;
  // Calls `work(data, role)` on this thread and on at most `helpers` others at the same time. Returns when
  // all calls that have begun have returned. `work` returns when nothing is left to do. Thread-safe; may be
  // called within `work`.
  void share(uint32_t helpers, void (*work)(void* data, Role role) noexcept, void* data) noexcept;

 private:
  // Work that threads may enter while it is open. `work` and `data` are written while nobody is inside.
  struct alignas(64) Gate {
    std::atomic<uint64_t> state = 0;  // from bit 32 on: the number of the work
    void (*work)(void* data, Role role) noexcept = nullptr;
    void* data = nullptr;
  };
  static constexpr uint64_t kOpen = uint64_t{1} << 31, kTaken = uint64_t{1} << 30;
  static constexpr uint64_t kMost = (1 << 15) - 1;  // helpers
  static constexpr int kSeats = 15;                 // first bit: how many helpers may be inside
  static constexpr uint64_t kInside = kMost;        // bits: how many are inside
  static constexpr size_t kGates = 4;               // one of the owner, and loops within its work
  using Seen = std::array<uint32_t, kGates>;        // the numbers of the work that a thread has taken part in

  struct Helper : Task {
    Team* team = nullptr;
    std::atomic<bool> is_away = true;  // not posted, and not in the team
  };

  Team(ThreadPool& thread_pool, NodeCache& nodes, uint64_t cost, size_t helpers, size_t size);
  void end() noexcept;
  void release() noexcept;
  void call(uint32_t helpers);
  // Takes part in work that is open and began after the work of number `after`. False: there is none that the
  // thread has not seen.
  bool take_part(Seen& seen, uint32_t after) noexcept;
  void leave(Gate& gate) noexcept;
  void close(Gate& gate, uint32_t number) noexcept;
  void stay() noexcept;

  ThreadPool& thread_pool_;
  NodeCache& nodes_;
  const size_t size_;  // of the block of memory, which contains the object and its helpers
  const std::span<Helper> helpers_;
  std::array<Gate, kGates> gates_;
  std::atomic<bool> has_ended_ = false;
  std::atomic<uint32_t> last_ = 0;     // the number of the last work
  std::atomic<uint32_t> coming_ = 0;   // helpers that are posted and have not started
  std::atomic<uint32_t> looking_ = 0;  // threads that look for work
  std::atomic<uint32_t> references_ = 1;
};

}  // namespace halyard::local
