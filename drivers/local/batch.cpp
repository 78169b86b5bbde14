// Sharing out commands, and ending with the failure that a single thread would have ended with.
#include "batch.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "base/c_boundary.h"
#include "halyard/driver/trace.hpp"
#include "perform.h"

namespace halyard::local {

namespace {

// One command. Tiles are taken from the front: many at first, then fewer and fewer, so that all threads end
// at about the same time and neighbouring workgroups, which often read the same bytes, mostly have one
// thread.
struct Part {
  const halyard_command_t* command = nullptr;
  WorkgroupCount count = {1, 1, 1};
  bool is_divisible = false;        // a dispatch that several threads may have a part in
  uint64_t total = 1;               // workgroups
  std::atomic<uint64_t> next = 0;   // the first that nobody has taken
  std::atomic<uint64_t> end = 1;    // `total`, or the first one that failed so far
  std::atomic<uint64_t> spent = 0;  // nanoseconds, by all threads

  const halyard_command_dispatch_t& dispatch() const {
    return *reinterpret_cast<const halyard_command_dispatch_t*>(command);
  }
  void divide(const WorkgroupCount& workgroups, uint64_t first) {
    is_divisible = true;
    count = workgroups;
    total = local::total(workgroups);
    next.store(first, std::memory_order_relaxed);
    end.store(total, std::memory_order_relaxed);
  }
  // False where there is nothing left.
  bool take(Tile& tile, uint32_t threads) {
    tile.first = next.load(std::memory_order_relaxed);
    do {
      if (tile.first >= end.load(std::memory_order_relaxed)) return false;
      tile.last = tile.first + std::max<uint64_t>((total - tile.first) / (2 * uint64_t{threads}), 1);
    } while (!next.compare_exchange_weak(tile.first, tile.last, std::memory_order_relaxed));
    return true;
  }
};

// It lives until the last of its threads has let it go: one may come when all is done, and looks at nothing
// but this. One block of memory: this, then the arrays.
class Batch {
 public:
  // `cost` of all of it.
  static Batch* create(size_t parts, uint32_t helpers, uint64_t cost, const Execution& execution) {
    const size_t size = sizeof(Batch) + parts * sizeof(Part) + helpers * sizeof(Helper);
    return new (execution.nodes->take(size)) Batch(parts, helpers, cost, execution, size);
  }

  std::span<Part> parts() { return parts_; }

  // Does all of it; once. It may be gone then.
  Result<> run() {
    const std::unique_ptr<Batch, Release> released(this);
    for (Helper& helper : helpers_) execution_.workers->post(helper);
    work(Role::owner);
    for (Helper& helper : helpers_)  // others may need who would come too late
      if (execution_.workers->take_back(helper)) references_.fetch_sub(1, std::memory_order_relaxed);
    close();
    if (!failure_.ok()) return std::unexpected(std::move(failure_));
    for (const Part& part : parts_)
      if (part.is_divisible)
        part.dispatch()
            .executable->workgroup_cost(part.dispatch().function)
            .learn(part.spent / part.total + 1);
    return {};
  }

 private:
  // A thread that is asked to help.
  struct Helper : Due {
    Batch* batch = nullptr;
  };
  struct Release {
    void operator()(Batch* batch) const { batch->release(); }
  };

  Batch(size_t parts, uint32_t helpers, uint64_t cost, const Execution& execution, size_t size)
      : execution_(execution),
        nodes_(*execution.nodes),
        size_(size),
        parts_(reinterpret_cast<Part*>(this + 1), parts),
        helpers_(reinterpret_cast<Helper*>(parts_.data() + parts), helpers),
        failed_part_(parts),
        references_(helpers + 1) {
    std::uninitialized_default_construct(parts_.begin(), parts_.end());
    std::uninitialized_default_construct(helpers_.begin(), helpers_.end());
    for (Helper& helper : helpers_) {
      helper.run = help;
      helper.workers = execution.workers;
      helper.is_brief = cost < kBrief;
      helper.batch = this;
    }
  }

  uint32_t threads() const { return static_cast<uint32_t>(helpers_.size()) + 1; }

  enum class Role : uint8_t { owner, helper };

  // Tiles until there are none left.
  void work(Role role) noexcept {
    for (size_t i = 0; i < parts_.size(); ++i) {
      const Part& part = parts_[i];
      if (part.next.load(std::memory_order_relaxed) >= part.end.load(std::memory_order_relaxed)) continue;
      if (!part.is_divisible) {
        do_whole(i);
      } else if (Status status = outcome_of([&] { return do_tiles(i, role); }); !status.ok()) {
        // A helper that cannot begin does not: the work is done without it.
        if (role == Role::owner) failed(i, 0, std::move(status));
      }
    }
  }

  void do_whole(size_t i) noexcept {
    Tile tile;
    if (!parts_[i].take(tile, threads())) return;
    if (Status status = outcome_of([&] { return perform(*parts_[i].command, execution_); }); !status.ok())
      failed(i, 0, std::move(status));
  }

  Result<> do_tiles(size_t i, Role role) {
    Part& part = parts_[i];
    const halyard_command_dispatch_t& command = part.dispatch();
    const Stopwatch watch(true);
    const kit::TraceSpan span(*execution_.services, command.executable->kernel(command.function).name);
    // Named, so that clang's analyzer sees when there is none to give back.
    const Result<Executable::Lease> worker = prepare(command, execution_);
    if (!worker) return std::unexpected(worker.error());
    for (Tile tile; part.take(tile, threads());) {
      Status status = outcome_of(
          [&] { return (*worker)->run(command.function, part.count, tile, part.end, execution_.stop); });
      if (!status.ok()) failed(i, tile.first, std::move(status));
      if (role == Role::owner && !std::exchange(has_asked_again_, true)) execution_.workers->wake_another();
    }
    part.spent.fetch_add(watch.elapsed(), std::memory_order_relaxed);
    return {};
  }

  static void help(Due& due, DueList&) {
    Batch& batch = *static_cast<Helper&>(due).batch;
    if (batch.enter()) {
      batch.work(Role::helper);
      batch.leave();
    }
    batch.release();
  }

  bool enter() {
    const std::lock_guard lock(mutex_);
    if (closed_) return false;
    active_.fetch_add(1, std::memory_order_relaxed);
    return true;
  }
  void leave() {
    const std::lock_guard lock(mutex_);
    active_.fetch_sub(1, std::memory_order_release);
    changed_.notify_all();
  }
  // Waits for the helpers that have begun. They are at their last tiles: as long as it would take to be
  // woken, it is worth looking again and again.
  void close() {
    std::unique_lock lock(mutex_);
    closed_ = true;
    const auto is_alone = [&] { return active_.load(std::memory_order_acquire) == 0; };
    if (is_alone()) return;
    lock.unlock();
    for (const Stopwatch watch(true); watch.elapsed() < kWorthWaking && !is_alone();)
      std::this_thread::yield();
    lock.lock();
    changed_.wait(lock, is_alone);
  }

  // What comes behind it is not wanted any more; what comes before it is, since that may fail, too.
  void failed(size_t part, uint64_t workgroup, Status failure) {
    const std::lock_guard lock(mutex_);
    if (std::pair(part, workgroup) >= std::pair(failed_part_, failed_workgroup_)) return;
    failed_part_ = part;
    failed_workgroup_ = workgroup;
    parts_[part].end.store(workgroup, std::memory_order_relaxed);
    for (Part& later : parts_.subspan(part + 1)) later.end.store(0, std::memory_order_relaxed);
    failure_ = std::move(failure);
  }

  void release() {
    if (references_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    NodeCache& nodes = nodes_;
    const size_t size = size_;
    this->~Batch();
    nodes.give(this, size);
  }

  const Execution execution_;
  NodeCache& nodes_;
  const size_t size_;  // of the block
  const std::span<Part> parts_;
  const std::span<Helper> helpers_;

  bool has_asked_again_ = false;  // the owner's

  std::mutex mutex_;  // of what follows; `active_` may be read without
  std::condition_variable changed_;
  std::atomic<uint32_t> active_ = 0;  // helpers that have begun and not ended
  bool closed_ = false;               // nobody begins any more
  size_t failed_part_;                // the first; their number while none has
  uint64_t failed_workgroup_ = 0;
  Status failure_;

  std::atomic<uint32_t> references_;
};

}  // namespace

uint32_t helpers_for(const Load& load, const Execution& execution) {
  if (!execution.workers || execution.workers->limit() == 1) return 0;
  const uint64_t worth = std::min<uint64_t>((load.cost - load.longest) / kWorthHelping, load.pieces - 1);
  if (worth == 0) return 0;
  // Somebody may have to be woken, and what one thread has in its caches has to come to the other.
  if (!execution.is_shared && load.saving(execution.workers->limit()) < kWorthSharing) return 0;
  return static_cast<uint32_t>(std::min<uint64_t>(worth, execution.workers->spare()));
}

Result<> share_out(const halyard_command_dispatch_t& command, const WorkgroupCount& count, uint64_t first,
                   uint64_t each, uint32_t helpers, const Execution& execution) {
  Batch* const batch = Batch::create(1, helpers, cost_of(each, total(count) - first), execution);
  Part& part = batch->parts()[0];
  part.command = &command.header;
  part.divide(count, first);
  part.spent = each * first;
  return batch->run();
}

Result<> share_out(std::span<const halyard_command_t* const> commands, uint64_t cost, uint32_t helpers,
                   const Execution& execution) {
  Batch* const batch = Batch::create(commands.size(), helpers, cost, execution);
  for (size_t i = 0; i < commands.size(); ++i) {
    Part& part = batch->parts()[i];
    part.command = commands[i];
    if (commands[i]->kind != HALYARD_COMMAND_DISPATCH || is_sequential(part.dispatch())) continue;
    // Where the bytes are not there the command fails when it is its turn.
    const Result<WorkgroupCount> count = workgroups_now(part.dispatch(), execution);
    if (count && total(*count) > 1) part.divide(*count, 0);
  }
  return batch->run();
}

}  // namespace halyard::local
