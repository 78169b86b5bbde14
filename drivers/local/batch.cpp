// Shares commands among threads. The reported failure is the one that a single thread would have met first.
#include "batch.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <utility>

#include "base/c_boundary.h"
#include "bytes.h"
#include "estimate.h"
#include "halyard/driver/trace.hpp"
#include "partial_fills.h"
#include "perform.h"
#include "team.h"

namespace halyard::local {

namespace {

// Nanoseconds.
constexpr uint64_t kMeasured = 5'000;            // of a loop, before its cost is estimated
constexpr uint64_t kAsksAgain = 2'000;           // at the earliest, if no thread is idle,
constexpr uint64_t kAsksAgainAtMost = 10'000;    // and at the latest, if one should be
constexpr uint64_t kMostBetweenStops = 200'000;  // of a tile of a loop, which a stop request does not end

uint64_t nanoseconds_now() {
  return static_cast<uint64_t>(std::chrono::nanoseconds(Clock::now().time_since_epoch()).count());
}

// The end of a part from which a thread takes tiles.
enum class Side : uint8_t { front, back };

// One command of a batch, or a loop. The first tiles are large and later ones smaller, so that all threads
// end at about the same time, and neighbouring workgroups, which often read the same bytes, mostly run on one
// thread. The owner takes workgroups from the front, and helpers take them from the back: the same half of
// each dispatch, which often reads what the same half of the one before has written, runs on the same
// threads. The pieces of a loop are all taken from the front.
struct Part {
  const halyard_command_t* command = nullptr;  // null: a loop
  const LoopSharing::Loop* loop = nullptr;
  WorkgroupCount count = {1, 1, 1};
  bool is_counted = false;          // a dispatch whose workgroups are known
  WorkgroupCosts* costs = nullptr;  // of its workgroups; null: only their mean is known
  uint64_t total = 1;               // workgroups, or pieces of a fill or a loop
  uint64_t most = UINT64_MAX;       // of them in a tile
  std::atomic<uint64_t> left = 1;   // how many of them are not taken
  std::atomic<uint64_t> front = 0;  // the first of these
  std::atomic<uint64_t> back = 1;   // the one after the last of these
  std::atomic<uint64_t> end = 1;    // `total`, or the first of them that has failed
  std::atomic<uint64_t> spent = 0;  // nanoseconds, summed over all threads
  // Of the last tiles that were taken, when their threads will probably have run them.
  std::array<std::atomic<uint64_t>, 8> busy_until = {};
  std::atomic<uint32_t> tiles = 0;  // that were taken

  const halyard_command_dispatch_t& dispatch() const {
    return *reinterpret_cast<const halyard_command_dispatch_t*>(command);
  }
  void divide(const WorkgroupCount& workgroups, uint64_t first) {
    is_counted = true;
    count = workgroups;
    costs = dispatch().executable->workgroup_costs(dispatch().function, local::total(workgroups));
    divide(local::total(workgroups), first);
  }
  void divide(uint64_t pieces, uint64_t first) {
    total = pieces;
    left.store(total - first, std::memory_order_relaxed);
    front.store(first, std::memory_order_relaxed);
    back.store(total, std::memory_order_relaxed);
    end.store(total, std::memory_order_relaxed);
  }
  bool is_taken() const {
    return left.load(std::memory_order_relaxed) == 0 ||
           front.load(std::memory_order_relaxed) >= end.load(std::memory_order_relaxed);
  }
  // Takes a tile. Returns false if none is left.
  bool take(Tile& tile, uint32_t threads, Side side) {
    do {
      uint64_t size = 0, before = left.load(std::memory_order_relaxed);
      do {
        if (is_taken()) return false;
        size = std::clamp<uint64_t>(before / (2 * uint64_t{threads}), 1, most);
      } while (!left.compare_exchange_weak(before, before - size, std::memory_order_relaxed));
      tile.first = side == Side::front ? front.fetch_add(size, std::memory_order_relaxed)
                                       : back.fetch_sub(size, std::memory_order_relaxed) - size;
      tile.last = tile.first + size;
    } while (tile.first >= end.load(std::memory_order_relaxed));
    return true;
  }
  // The expected duration of workgroups [first, last), if the kernel has run before.
  uint64_t duration(uint64_t first, uint64_t last, uint64_t mean) const {
    if (!costs) return cost_of(mean, last - first);
    uint64_t sum = 0;
    for (; first < last; ++first)
      sum += std::min(costs->of(first).is_known() ? costs->of(first).value() : mean, kMaxCost);
    return sum;
  }
  // Called before a tile runs. Returns what LoopSharing expects: the first of the other threads runs the tile
  // that was taken before those of all others, then its share of those that are left.
  LoopSharing::Expected begin_tile(const Tile& tile, const Cost& mean, uint32_t threads) {
    const uint64_t now = nanoseconds_now();
    const uint64_t own = mean.is_known() ? duration(tile.first, tile.last, mean.value()) : 0;
    const uint32_t number = tiles.fetch_add(1, std::memory_order_relaxed);
    const uint32_t before = std::min<uint32_t>(threads - 1, busy_until.size());
    const auto at = [&](uint32_t of) -> std::atomic<uint64_t>& { return busy_until[of % busy_until.size()]; };
    const uint64_t others = at(number - before).load(std::memory_order_relaxed);
    at(number).store(own != 0 ? now + own : LoopSharing::kNow, std::memory_order_relaxed);
    LoopSharing::Expected expected = {.workgroup = own / (tile.last - tile.first), .help_at = others};
    const uint64_t first_left = front.load(std::memory_order_relaxed);
    const uint64_t end_left =
        std::min(back.load(std::memory_order_relaxed), end.load(std::memory_order_relaxed));
    if (first_left >= end_left) return expected;
    expected.help_at = LoopSharing::kNever;
    if (own != 0)
      expected.help_at = std::max(now, others) + duration(first_left, end_left, mean.value()) / (threads - 1);
    return expected;
  }
  // Called after a tile has run. `help`: the time of other threads. Pieces of loops that threads share take
  // longer together than alone, so what is known of such a tile stays.
  void end_tile(const Tile& tile, uint64_t nanoseconds, uint64_t help) {
    const uint64_t workgroups = tile.last - tile.first;
    if (help != 0) nanoseconds = duration(tile.first, tile.last, (nanoseconds + help) / workgroups);
    spent.fetch_add(nanoseconds, std::memory_order_relaxed);
    if (!costs || help != 0) return;
    for (uint64_t i = tile.first; i < tile.last; ++i) costs->of(i).learn(nanoseconds / workgroups + 1);
  }
};

// One block of memory contains the object, then its parts.
class Batch {
 public:
  struct Destroy {
    void operator()(Batch* batch) const noexcept {
      NodeCache& nodes = *batch->execution_.nodes;
      const size_t size = sizeof(Batch) + batch->parts_.size_bytes();
      batch->~Batch();
      nodes.give(batch, size);
    }
  };
  using Owned = std::unique_ptr<Batch, Destroy>;
  // `cost` is the cost of the whole batch. Throws std::bad_alloc.
  static Owned create(size_t parts, uint32_t helpers, uint64_t cost, const Execution& execution) {
    Team::Owned team;
    if (!execution.team) team = Team::create(*execution.thread_pool, *execution.nodes, cost);
    const size_t size = sizeof(Batch) + parts * sizeof(Part);
    return Owned(new (execution.nodes->take(size)) Batch(parts, helpers, std::move(team), execution));
  }

  std::span<Part> parts() { return parts_; }

  Result<> run() {
    run_parts();
    if (!failure_.ok()) return std::unexpected(std::move(failure_));
    for (const Part& part : parts_)
      if (part.is_counted)
        part.dispatch()
            .executable->workgroup_cost(part.dispatch().function)
            .learn(part.spent / part.total + 1);
    return {};
  }
  // For a batch that is a loop. Returns the number of pieces that have run, the first ones. Adds the time of
  // the helpers to `help`, in nanoseconds.
  uint64_t run_loop(uint64_t& help) {
    run_parts();
    help += parts_[0].spent.load(std::memory_order_relaxed);
    return parts_[0].front.load(std::memory_order_relaxed);
  }

 private:
  Batch(size_t parts, uint32_t helpers, Team::Owned team, const Execution& execution)
      : execution_(execution),
        team_(std::move(team)),
        helpers_(helpers),
        parts_(reinterpret_cast<Part*>(this + 1), parts),
        failed_part_(parts) {
    if (team_) execution_.team = team_.get();
    std::uninitialized_default_construct(parts_.begin(), parts_.end());
  }

  uint32_t threads() const { return helpers_ + 1; }
  static Side side_of(Role role) { return role == Role::owner ? Side::front : Side::back; }

  void run_parts() {
    execution_.team->share(
        helpers_, [](void* data, Role role) noexcept { static_cast<Batch*>(data)->work(role); }, this);
  }

  // Runs tiles until none are left.
  void work(Role role) noexcept {
    for (size_t i = 0; i < parts_.size(); ++i) {
      Part& part = parts_[i];
      if (part.is_taken()) continue;
      if (part.loop) {
        do_loop(part, role);
      } else if (part.total == 1) {
        do_whole(i, role);
      } else if (Status status =
                     outcome_of([&] { return part.is_counted ? do_tiles(i, role, {}) : do_fill(i, role); });
                 !status.ok()) {
        // A helper that fails to prepare the kernel gives up, because other threads do the work.
        if (role == Role::owner) failed(i, 0, std::move(status));
      }
    }
  }

  void do_whole(size_t i, Role role) noexcept {
    Part& part = parts_[i];
    Tile tile;
    if (!part.take(tile, threads(), Side::front)) return;
    if (Status status = outcome_of(
            [&] { return part.is_counted ? do_tiles(i, role, tile) : perform(*part.command, execution_); });
        !status.ok())
      failed(i, 0, std::move(status));
  }

  // Runs the tile that was taken, if any, and all tiles that are left.
  Result<> do_tiles(size_t i, Role role, std::optional<Tile> taken) {
    Part& part = parts_[i];
    const halyard_command_dispatch_t& command = part.dispatch();
    HALYARD_TRY(make_ready(command, execution_));
    const std::optional<kit::TraceDispatch> facts = describe(command, part.count, execution_);
    Stopwatch watch(true);
    kit::TraceSpan span(*execution_.services, command.executable->kernel(command.function).name);
    const bool is_one = part.total == 1;
    span.set_sharing(is_one ? HALYARD_SHARING_ONE_WORKGROUP : HALYARD_SHARING_SHARED, is_one ? 1 : threads());
    span.set_dispatch(facts);
    // A named variable, because otherwise clang's analyzer does not see whether there is a lease to return.
    const Result<Executable::Lease> runner = prepare(command, execution_);
    if (!runner) return std::unexpected(runner.error());
    LoopSharing loops(command, facts, execution_);
    const Cost& cost = command.executable->workgroup_cost(command.function);
    Tile tile = taken.value_or(Tile{});
    while (std::exchange(taken, std::nullopt) || part.take(tile, threads(), side_of(role))) {
      loops.expect(part.begin_tile(tile, cost, threads()));
      const Tile whole = tile;
      Status status = outcome_of([&] {
        return run_tile(**runner, command, part.count, tile, part.end, execution_, loops.get(), span);
      });
      const uint64_t spent = watch.restart();
      const uint64_t help = loops.take_help();
      if (status.ok()) {
        part.end_tile(whole, spent, help);
      } else {
        failed(i, tile.first, std::move(status));
      }
      if (role == Role::owner && !std::exchange(has_asked_again_, true))
        execution_.thread_pool->wake_another();
    }
    if (is_one) loops.report(span);
    return {};
  }

  Result<> do_fill(size_t i, Role role) {
    Part& part = parts_[i];
    const auto& command = *reinterpret_cast<const halyard_command_fill_t*>(part.command);
    const std::optional<kit::TraceDispatch> facts = kit::TraceDispatch{
        .workgroups = part.total, .submission = execution_.submission, .command = part.command};
    kit::TraceSpan span(*execution_.services, "fill");
    span.set_sharing(HALYARD_SHARING_SHARED, threads());
    span.set_dispatch(facts);
    for (Tile tile; part.take(tile, threads(), side_of(role));) {
      span.add_workgroups(tile.last - tile.first);
      halyard_range_t pieces = command.target;
      const uint64_t begin = tile.first * kFillPiece;
      pieces.offset += begin;
      pieces.length = std::min(tile.last * kFillPiece, command.target.length) - begin;
      Result<> filled = go_on_unless_stopped(execution_.stop);
      if (filled) filled = fill(pieces, command.pattern, command.pattern_size, execution_);
      if (!filled) failed(i, tile.first, std::move(filled.error()));
    }
    return {};
  }

  // Ends at a stop request, but not within a tile: the pieces that have run are always the first ones.
  void do_loop(Part& part, Role role) noexcept {
    std::optional<kit::TraceSpan> span;  // that of the owner's workgroup contains its pieces
    if (role == Role::helper) {
      span.emplace(*execution_.services, part.loop->kernel);
      span->set_dispatch(part.loop->facts);
      span->set_sharing(HALYARD_SHARING_SHARED, threads());
    }
    const Stopwatch watch(true);
    for (Tile tile; stop_code(execution_.stop) == Code::OK && part.take(tile, threads(), Side::front);)
      part.loop->body(tile.first, tile.last, part.loop->data);
    if (role == Role::helper) part.spent.fetch_add(watch.elapsed(), std::memory_order_relaxed);
  }

  // Records a failure. Later commands and workgroups are cancelled. Earlier ones still run, because they may
  // fail too.
  void failed(size_t part, uint64_t workgroup, Status failure) {
    const std::lock_guard lock(mutex_);
    if (std::pair(part, workgroup) >= std::pair(failed_part_, failed_workgroup_)) return;
    failed_part_ = part;
    failed_workgroup_ = workgroup;
    parts_[part].end.store(workgroup, std::memory_order_relaxed);
    for (Part& later : parts_.subspan(part + 1)) later.end.store(0, std::memory_order_relaxed);
    failure_ = std::move(failure);
  }

  Execution execution_;
  const Team::Owned team_;  // null: that of the list
  const uint32_t helpers_;
  const std::span<Part> parts_;

  bool has_asked_again_ = false;  // used by the owner only

  std::mutex mutex_;    // guards the fields below
  size_t failed_part_;  // the first one that failed; the number of parts if none has
  uint64_t failed_workgroup_ = 0;
  Status failure_;
};

}  // namespace

Helpers helpers_for(const Load& load, const Execution& execution) {
  if (!execution.thread_pool || execution.thread_pool->limit() == 1) return {0, HALYARD_SHARING_ONE_THREAD};
  if (load.pieces == 1) return {0, HALYARD_SHARING_ONE_WORKGROUP};
  const uint64_t worth = std::min<uint64_t>((load.cost - load.longest) / kWorthHelping, load.pieces - 1);
  if (worth == 0) return {0, HALYARD_SHARING_TOO_SHORT};
  // Sharing has a cost: threads may have to be woken, and data moves between the caches of threads.
  if (!execution.team && load.saving(execution.thread_pool->limit()) < kWorthSharing)
    return {0, HALYARD_SHARING_TOO_SHORT};
  const uint32_t idle =
      execution.team ? execution.team->spare_threads() : execution.thread_pool->idle_threads();
  if (idle == 0) return {0, HALYARD_SHARING_NO_IDLE_THREAD};
  return {static_cast<uint32_t>(std::min<uint64_t>(worth, idle)), HALYARD_SHARING_SHARED};
}

Result<> share_out(const halyard_command_dispatch_t& command, const WorkgroupCount& count, uint64_t first,
                   uint64_t each, uint32_t helpers, const Execution& execution) {
  const Batch::Owned batch = Batch::create(1, helpers, cost_of(each, total(count) - first), execution);
  Part& part = batch->parts()[0];
  part.command = &command.header;
  part.divide(count, first);
  part.spent = each * first;
  return batch->run();
}

Result<> share_out(std::span<const halyard_command_t* const> commands, uint64_t cost, uint32_t helpers,
                   const Execution& execution) {
  const Batch::Owned batch = Batch::create(commands.size(), helpers, cost, execution);
  for (size_t i = 0; i < commands.size(); ++i) {
    Part& part = batch->parts()[i];
    part.command = commands[i];
    const bool is_partial = execution.partial_fills && execution.partial_fills->of(*commands[i]);
    if (commands[i]->kind == HALYARD_COMMAND_FILL && !is_partial) part.divide(pieces_of(*commands[i]), 0);
    if (commands[i]->kind != HALYARD_COMMAND_DISPATCH || is_sequential(part.dispatch())) continue;
    // If the memory with the count has no bytes, the command reports that when it runs.
    const Result<WorkgroupCount> count = workgroups_now(part.dispatch(), execution);
    if (count && total(*count) != 0) part.divide(*count, 0);
  }
  return batch->run();
}

LoopSharing::LoopSharing(const halyard_command_dispatch_t& command,
                         const std::optional<kit::TraceDispatch>& facts, const Execution& execution)
    : halyard_jit_sharing_t{.share = share, .is_cold = 1},
      kernel_(command.executable->kernel(command.function).name),
      workgroup_(command.executable->workgroup_cost(command.function)),
      facts_(facts),
      execution_(execution) {}

// The number of the next of `left` pieces that this thread runs before it asks for help; 0: help comes before
// a piece could end. All of them if help comes too late to gain much, because each call of the loop's body
// may pack again what it reads.
uint64_t LoopSharing::pieces_before_help(uint64_t left, uint64_t pieces, uint64_t each) const {
  const uint64_t now = nanoseconds_now();
  if (expected_.help_at == kNow || expected_.help_at + each < now)
    return std::clamp(left / 4, kAsksAgain / each, kAsksAgainAtMost / each);
  const uint64_t until_then = expected_.help_at <= now ? 0 : expected_.help_at - now;
  const bool is_too_late = until_then + cost_of(each, pieces) / 4 >= cost_of(each, left);
  return is_too_late ? left : until_then / each;
}

const halyard_jit_sharing_t* LoopSharing::get() const {
  return execution_.thread_pool && execution_.thread_pool->limit() != 1 ? this : nullptr;
}

void LoopSharing::report(kit::TraceSpan& span) const {
  if (sharing_ != HALYARD_SHARING_UNKNOWN) span.set_sharing(sharing_, threads_);
}

// Runs pieces from `first` on with helpers. Returns the number of pieces that have run, the first ones; no
// value if there is no memory: an exception must not leave compiled code.
std::optional<uint64_t> LoopSharing::share_rest(const Loop& loop, uint64_t first, uint64_t pieces,
                                                uint64_t most, const Load& rest, const Helpers& helpers,
                                                const uint32_t* stop) const {
  Execution execution = execution_;
  execution.stop = stop;
  Batch::Owned batch;
  try {
    batch = Batch::create(1, helpers.count, rest.cost, execution);
  } catch (const std::bad_alloc&) {
    return {};
  }
  Part& part = batch->parts()[0];
  part.loop = &loop;
  part.divide(pieces, first);
  part.most = most;
  threads_ = std::max(threads_, helpers.count + 1);
  return batch->run_loop(help_);
}

// The duration of a piece is estimated from that of a workgroup, and measured as soon as pieces have run.
uint64_t LoopSharing::share(const halyard_jit_sharing_t* sharing, uint64_t pieces, uint64_t most_pieces,
                            void (*body)(uint64_t first, uint64_t last, void* data), void* data,
                            const uint32_t* stop) {
  const auto& self = *static_cast<const LoopSharing*>(sharing);
  const Loop loop = {self.kernel_, self.facts_, body, data};
  const Stopwatch watch(true);
  uint64_t done = 0;
  uint64_t each = self.expected_.workgroup / pieces;  // 0: not known
  if (self.expected_.workgroup == 0 && self.workgroup_.is_known())
    each = self.workgroup_.value() / pieces + 1;
  while (done < pieces && stop_code(stop) == Code::OK) {
    uint64_t step = 1;
    if (each != 0) {
      const uint64_t most = std::clamp<uint64_t>(kMostBetweenStops / each, 1, most_pieces);
      const Load rest = {cost_of(each, pieces - done), std::min(each, kMaxCost), pieces - done};
      const bool may_get_help = rest.pieces > 1 && self.expected_.help_at != kNever;
      Helpers helpers = may_get_help ? helpers_for(rest, self.execution_) : Helpers();
      uint64_t next = rest.pieces;
      if (helpers.sharing == HALYARD_SHARING_NO_IDLE_THREAD) {
        next = self.pieces_before_help(rest.pieces, pieces, each);
        if (next == 0) helpers = {1, HALYARD_SHARING_SHARED};
      }
      if (self.threads_ == 1 && may_get_help) self.sharing_ = helpers.sharing;
      if (helpers.count != 0)
        if (const auto run = self.share_rest(loop, done, pieces, most, rest, helpers, stop)) return *run;
      step = std::clamp<uint64_t>(std::min(next, rest.pieces), 1, most);
    }
    body(done, done + step, data);
    done += step;
    if (const uint64_t spent = watch.elapsed(); spent >= kMeasured) each = spent / done + 1;
  }
  return done;
}

}  // namespace halyard::local
