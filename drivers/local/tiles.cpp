// Sharing out a grid, and ending with the failure that a single thread would have ended with.
#include "tiles.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>

#include "trace.h"

namespace halyard::local {

namespace {

// Many for each thread, so that all end at about the same time.
constexpr uint64_t kTilesPerThread = 8;

// What the threads of one dispatch share. It lives until the last of them has let it go: one may come when
// all is done, and looks at nothing but this.
class Grid {
 public:
  // A thread that is asked to help.
  struct Helper : Due {
    Grid* grid = nullptr;
  };

  static Grid* create(const halyard_command_dispatch_t& command, const Execution& execution,
                      const WorkgroupCount& count, uint64_t total, uint32_t helper_count) {
    const size_t size = sizeof(Grid) + helper_count * sizeof(Helper);
    return new (execution.nodes->take(size)) Grid(command, execution, count, total, helper_count, size);
  }

  void call_helpers() {
    Helper* const helpers = helpers_;
    Workers& workers = *execution_.workers;
    const uint32_t count = helper_count_;
    for (uint32_t i = 0; i < count; ++i) workers.post(helpers[i]);
  }

  // Tiles until there are none left.
  void work(Worker& worker) {
    while (true) {
      Tile tile;
      tile.first = next_.fetch_add(tile_size_, std::memory_order_relaxed);
      if (tile.first >= end_.load(std::memory_order_relaxed)) return;
      tile.last = std::min(tile.first + tile_size_, total_);
      if (Result<> result = worker.run(command_.function, count_, tile, end_); !result)
        failed(tile.first, std::move(result.error()));
    }
  }

  // Once, by the thread that has the dispatch, when it finds no more tiles.
  Result<> finish() {
    Result<> result;
    {
      std::unique_lock lock(mutex_);
      closed_ = true;
      changed_.wait(lock, [&] { return active_ == 0; });
      if (!failure_.ok()) result = std::unexpected(std::move(failure_));
    }
    release();
    return result;
  }

 private:
  Grid(const halyard_command_dispatch_t& command, const Execution& execution, const WorkgroupCount& count,
       uint64_t total, uint32_t helper_count, size_t size)
      : command_(command),
        execution_(execution),
        nodes_(*execution.nodes),
        size_(size),
        count_(count),
        total_(total),
        tile_size_(std::max<uint64_t>(total / ((helper_count + 1) * kTilesPerThread), 1)),
        helpers_(reinterpret_cast<Helper*>(this + 1)),
        helper_count_(helper_count),
        end_(total),
        references_(helper_count + 1) {
    for (uint32_t i = 0; i < helper_count; ++i) {
      auto* helper = new (&helpers_[i]) Helper;
      helper->run = help;
      helper->workers = execution.workers;
      helper->grid = this;
    }
  }

  static void help(Due& due, DueList&) {
    Grid& grid = *static_cast<Helper&>(due).grid;
    if (grid.enter()) {
      // One that cannot help does not: the work is done without it.
      (void)guarded(grid.command_.executable->services(), [&]() -> Result<> {
        const halyard_command_dispatch_t& command = grid.command_;
        const TraceSpan span(command.executable->services(),
                             command.executable->kernel(command.function).name);
        const Executable::Lease worker = HALYARD_TRY(prepare(command, grid.execution_));
        grid.work(*worker);
        return {};
      });
      grid.leave();
    }
    grid.release();
  }

  bool enter() {
    const std::lock_guard lock(mutex_);
    if (closed_) return false;
    ++active_;
    return true;
  }
  void leave() {
    const std::lock_guard lock(mutex_);
    --active_;
    changed_.notify_all();
  }

  // Workgroups behind it are not wanted any more; those before it are, since one of them may fail, too.
  void failed(uint64_t workgroup, Status failure) {
    const std::lock_guard lock(mutex_);
    if (workgroup >= end_.load(std::memory_order_relaxed)) return;
    end_.store(workgroup, std::memory_order_relaxed);
    failure_ = std::move(failure);
  }

  void release() {
    if (references_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    NodeCache& nodes = nodes_;
    const size_t size = size_;
    this->~Grid();
    nodes.give(this, size);
  }

  const halyard_command_dispatch_t& command_;
  const Execution execution_;
  NodeCache& nodes_;
  const size_t size_;  // of the block
  const WorkgroupCount count_;
  const uint64_t total_;
  const uint64_t tile_size_;
  Helper* const helpers_;
  const uint32_t helper_count_;

  std::atomic<uint64_t> next_ = 1;  // the first workgroup that nobody has taken; the very first is done
  std::atomic<uint64_t> end_;       // `total_`, or the first one that failed so far
  std::mutex mutex_;
  std::condition_variable changed_;
  uint32_t active_ = 0;  // helpers that have begun and not ended
  bool closed_ = false;  // nobody begins any more
  Status failure_;
  std::atomic<uint32_t> references_;
};

}  // namespace

Result<> run_tiles(const halyard_command_dispatch_t& command, const Execution& execution,
                   const WorkgroupCount& count, Executable::Lease& worker) {
  const uint64_t total = local::total(count);
  std::atomic<uint64_t> end = total;
  Tile first = {0, total};
  if (!execution.workers || execution.workers->limit() == 1 || total == 1 ||
      command.executable->kernel(command.function).sequential)
    return worker->run(command.function, count, first, end);

  // The first workgroup tells what the others will take, and so how many threads that is worth.
  first.last = 1;
  const Clock::time_point begin = Clock::now();
  HALYARD_TRY(worker->run(command.function, count, first, end));
  const Clock::duration each = std::max<Clock::duration>(Clock::now() - begin, Clock::duration(1));
  const uint64_t worth_a_thread = std::max<uint64_t>(kWorthWaking / each, 1);  // workgroups
  Tile rest = {1, total};
  const auto helpers = static_cast<uint32_t>(std::min<uint64_t>(
      std::min<uint64_t>(execution.workers->spare(), total - 2), (total - 1) / worth_a_thread));
  if (helpers == 0) return worker->run(command.function, count, rest, end);

  Grid* const grid = Grid::create(command, execution, count, total, helpers);
  grid->call_helpers();
  grid->work(*worker);
  return grid->finish();
}

}  // namespace halyard::local
