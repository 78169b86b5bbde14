// MemoryLog: a device's memory over time, and what was alive at its peak, by size and by whom it was
// allocated. Exists only while tracing or if objects are counted. Memory of a queue counts from the time when
// its alloca has run until its dealloca has run; other memory from the call that allocates it until it is
// freed.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace halyard::hal {

// Who asks for the memory that the calling thread allocates, for the lifetime of this object: a place in a
// program, or a purpose. Scopes nest; the innermost counts. The text is borrowed.
class MakerScope {
 public:
  explicit MakerScope(std::string_view maker) noexcept;
  MakerScope(const MakerScope&) = delete;
  MakerScope& operator=(const MakerScope&) = delete;
  ~MakerScope();

 private:
  const std::string_view* const before_;
  const std::string_view maker_;
};
std::string_view current_maker() noexcept;  // "the host" without a scope

// An alloca or a dealloca that waits in a queue. The device reports its end some time after its signals, on
// any thread, so reports of two operations may come in the wrong order. The timelines tell the right one.
struct QueuedMemory {
  using Point = std::pair<const void*, uint64_t>;  // a timeline and its value
  std::vector<Point> waits;
  std::vector<Point> signals;
  std::function<bool()> is_done;  // whether the signals are made; may be null: not known

  bool must_follow(const QueuedMemory& other) const;
};

// Thread-safe. The memory that it takes is bounded by what is alive now, what was alive at the peak, and what
// waits.
class MemoryLog {
 public:
  static constexpr size_t kMaxPoints = 16'384;
  static constexpr size_t kMaxMakers = 4'096;  // different ones

  // A change of the memory. `maker` lives as long as the log.
  struct Change {
    uint64_t number = 0;  // of the allocation
    uint64_t bytes = 0;   // of the allocation
    uint64_t live = 0;    // bytes after the change
    bool is_end = false;
    std::string_view maker;
  };
  // Called after each change, in the order of changes, under the log's lock: it must not call the log. Set
  // before the first change.
  void observe(std::function<void(const Change&)> observer) { observer_ = std::move(observer); }

  // Returns the number of the allocation.
  uint64_t allocated(uint64_t bytes, std::string_view maker, uint64_t time);
  void freed(uint64_t number, uint64_t time);

  // An alloca, a dealloca was given to the device. The number of the allocation, which does not count yet.
  uint64_t queue_alloca(uint64_t bytes, std::string_view maker, QueuedMemory operation);
  void queue_dealloca(uint64_t number, QueuedMemory operation);
  // The device reports its end. After a failure the memory is as before.
  void alloca_done(uint64_t number, bool has_run, uint64_t time);
  void dealloca_done(uint64_t number, bool has_run, uint64_t time);

  struct Alive {
    uint64_t bytes = 0;  // of each
    uint64_t count = 0;
    std::string made_by;
  };
  struct Point {
    uint64_t time = 0;
    uint64_t bytes = 0;
  };
  struct Report {
    uint64_t peak_bytes = 0;
    uint64_t peak_time = 0;
    std::vector<Alive> alive;   // at the peak, the largest sum first
    std::vector<Point> points;  // changes in the order of time; each holds until the next
  };
  Report report() const;

 private:
  struct Record {
    uint64_t bytes;
    uint32_t maker;
    uint64_t begin;             // number of the event; 0: does not count yet
    uint64_t end = UINT64_MAX;  // the same
  };
  using Records = std::map<uint64_t, Record>;
  struct Pending {
    uint64_t allocation;
    bool is_end;
    QueuedMemory operation;

    bool must_follow(const Pending& other) const;  // a dealloca also its alloca
  };

  Records::iterator add_record(uint64_t bytes, std::string_view maker);
  void begin(Records::iterator record, uint64_t time);
  void end(Records::iterator record, uint64_t time);
  void operation_done(uint64_t number, bool is_end, bool has_run, uint64_t time);
  void apply(Records::iterator record, bool is_end, uint64_t time);
  void apply_done(const Pending& from, uint64_t request, uint64_t time);
  void add_point(uint64_t time);
  void tell(const Change& change) const;

  std::function<void(const Change&)> observer_;
  mutable std::mutex mutex_;  // guards the members below
  std::map<std::string, uint32_t, std::less<>> numbers_;
  std::vector<std::string_view> makers_;  // keys of numbers_
  Records records_;                       // alive, waiting, or alive at the peak; by number of the allocation
  std::map<uint64_t, Pending> pending_operations_;  // by number of the request
  std::vector<Point> points_;
  uint64_t stride_ = 1;   // changes that make one point
  uint64_t pending_ = 0;  // changes in the last point
  uint64_t live_ = 0;
  uint64_t allocations_ = 0;
  uint64_t requests_ = 0;
  uint64_t events_ = 0;
  uint64_t peak_ = 0;
  uint64_t peak_event_ = 0;
  uint64_t peak_time_ = 0;
};

}  // namespace halyard::hal
