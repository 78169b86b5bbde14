// Tracer: records a timeline of threads, devices and counters in a file for the Perfetto UI. Always compiled
// in; without a tracer, an event costs a null test. Each thread has an event buffer and writes it to the file
// when the buffer is full, so no event is dropped and no extra thread is needed. Thread-safe.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/object.h"
#include "base/perfetto.h"
#include "base/status.h"

namespace halyard {

// The category of a slice; the file contains its name.
enum class TraceCategory : uint8_t {
  phase,    // phases of the embedder: loading, calling
  machine,  // functions of modules
  import,   // native functions that modules call, without work on devices
  queue,    // queue work, from submission to completion
  device,   // operations of a device
  wait,     // blocked threads
  memory,   // allocations
};
inline constexpr size_t kTraceCategories = 7;

// Texts about a dispatch: why it was interpreted, why its operations are not known, where it is in the
// source, which place of the program recorded it.
inline constexpr size_t kDispatchTexts = 4;

// Facts about a dispatch, in addition to its slice. Numbers: halyard_trace_span of driver.h.
struct TracedDispatch {
  uint64_t workgroups = 0;
  uint64_t dispatch_workgroups = 0;
  uint64_t operations = 0;
  uint64_t bytes_read = 0;
  uint64_t bytes_written = 0;
  uint64_t checked_loops = 0;
  uint32_t known = 0;
  uint32_t code = 0;
  uint32_t threads = 0;
  const char* not_shared = nullptr;  // why one thread ran it; static
  uint64_t execution = 0;            // a number that grows with each submission; 0: unknown
  uint64_t command = 0;              // of the execution, from 1; 0: none, or unknown
};

// A finished slice, for observers.
struct TracedSlice {
  TraceCategory category;
  bool is_of_thread;  // on the track of a thread
  uint64_t track;
  uint64_t begin;
  uint64_t end;
  uint64_t self;  // nanoseconds without the slices nested in it
  std::string_view name;
  const TracedDispatch* dispatch;  // null: none
  std::array<std::string_view, kDispatchTexts> texts;
};

class Tracer final : public ObjectOf<Tracer> {
 public:
  static const ObjectType kType;
  using Track = uint64_t;
  static constexpr Track kProcess = 1;  // the root of all tracks

  // Replaces an existing file. If the path is empty, events are counted and dropped. NOT_FOUND,
  // PERMISSION_DENIED, UNAVAILABLE.
  static Result<Ref<Tracer>> create(const std::string& path);

  // Nanoseconds of the clock of all events (CLOCK_MONOTONIC).
  static uint64_t now();

  // Begin and end a slice of the calling thread; slices nest. Names are truncated to 255 bytes.
  void begin(TraceCategory category, std::string_view name, std::span<const uint64_t> flows = {}) noexcept;
  void end() noexcept;
  // Adds a completed slice of the calling thread, within the current slice.
  void span(TraceCategory category, std::string_view name, uint64_t begin, uint64_t end,
            std::span<const TraceArgument> arguments = {}) noexcept;
  // Adds a slice with facts for observers: of the calling thread, or of `track` unless it is 0.
  void dispatch(Track track, std::string_view name, uint64_t begin, uint64_t end,
                const TracedDispatch& dispatch, const std::array<std::string_view, kDispatchTexts>& texts,
                std::span<const TraceArgument> arguments = {}) noexcept;
  void instant(TraceCategory category, std::string_view name, std::span<const uint64_t> flows = {}) noexcept;

  // Adds a track. Slices of one track must not overlap.
  Track add_track(std::string_view name, Track parent = kProcess) noexcept;
  Track add_counter(std::string_view name, Track parent = kProcess) noexcept;
  void span_on(Track track, TraceCategory category, std::string_view name, uint64_t begin, uint64_t end,
               std::span<const uint64_t> flows = {}) noexcept;
  void instant_on(Track track, TraceCategory category, std::string_view name, uint64_t time,
                  std::span<const uint64_t> flows = {},
                  std::span<const TraceArgument> arguments = {}) noexcept;
  void count(Track counter, int64_t value) noexcept;

  // Returns a number that was not returned before.
  uint64_t new_flow() { return next_.fetch_add(1, std::memory_order_relaxed); }

  // The number of events so far, and the self time of thread slices by category. Open slices do not count.
  struct Totals {
    uint64_t events = 0;
    std::array<uint64_t, kTraceCategories> nanoseconds = {};
  };
  Totals totals();

  // Calls `observer` for each slice that ends from now on, when its buffer is written: in order for each
  // thread, one call at a time. It must not use the tracer, nor throw. Empty: none.
  using Observer = std::function<void(const TracedSlice& slice)>;
  void observe(Observer observer);

  // A source of events from other threads. Its functions must not add or end sources; either may be empty.
  struct Source {
    std::function<void()> settle;  // waits, for a bounded time, for events of work that is under way
    std::function<void()> sum_up;  // adds events that sum up what has happened
  };
  // Returns a number for remove_source(), after which the functions are not called.
  uint64_t add_source(Source source);
  void remove_source(uint64_t number) noexcept;
  // Waits for the events of all sources.
  void settle();

  // Settles, sums up and writes all buffers. UNAVAILABLE, RESOURCE_EXHAUSTED: some events were lost, now or
  // before. More events and another finish() may follow.
  Result<> finish();

  explicit Tracer(std::FILE* file, std::string path);
  ~Tracer();

 private:
  struct ThreadBuffer;
  struct Slots;
  struct Record;

  ThreadBuffer* buffer() noexcept;  // buffer of the calling thread; null if out of memory
  struct Details;
  void add(Record record, std::string_view name, std::span<const uint64_t> flows,
           std::span<const TraceArgument> arguments = {}, const Details* details = nullptr) noexcept;
  void observed(const TracedSlice& slice) {
    if (observer_) observer_(slice);
  }
  void flush(ThreadBuffer& buffer) noexcept;  // the caller holds the buffer's lock
  void encode(ThreadBuffer& buffer);
  void flush_all() noexcept;
  void lose(Status why) noexcept;
  template <typename Write>
  void with_writer(Write write) noexcept;

  const std::string path_;
  std::FILE* const file_;  // null: nothing is written
  std::unique_ptr<Slots> slots_;
  std::atomic<uint64_t> next_{kProcess + 1};  // numbers of tracks and flows
  std::mutex mutex_;                          // guards the following
  PerfettoWriter writer_;
  Totals totals_;
  Observer observer_;
  Status lost_;  // why something could not be written
  std::vector<std::unique_ptr<ThreadBuffer>> buffers_;
  std::mutex sources_mutex_;  // guards the following; not taken while mutex_ is held
  std::map<uint64_t, Source> sources_;
  uint64_t last_source_ = 0;
};

// A slice of the calling thread for the lifetime of this object; no effect without a tracer.
class TraceScope {
 public:
  TraceScope(Tracer* tracer, TraceCategory category, std::string_view name) : tracer_(tracer) {
    if (tracer_) [[unlikely]]
      tracer_->begin(category, name);
  }
  TraceScope(const TraceScope&) = delete;
  TraceScope& operator=(const TraceScope&) = delete;
  ~TraceScope() {
    if (tracer_) [[unlikely]]
      tracer_->end();
  }

 private:
  Tracer* const tracer_;
};

}  // namespace halyard
