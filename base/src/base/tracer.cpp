// Records events in per-thread buffers, and encodes them as packets.
#include "base/tracer.h"

#include <fmt/format.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <numeric>

#include "base/c_boundary.h"
#include "base/system_error.h"

namespace halyard {

const ObjectType Tracer::kType = object_type<Tracer>("halyard.trace");

namespace {

constexpr size_t kBufferBytes = 1 << 16;
constexpr size_t kMaxName = 255;
constexpr size_t kMaxFlows = 255;
constexpr size_t kMaxArguments = 255;

constexpr std::array<std::string_view, kTraceCategories> kCategoryNames = {
    "phase", "machine", "import", "queue", "device", "wait", "memory"};

// Held for a few stores and rarely contended, because only the buffer's own thread and finish() take it.
class Spinlock {
 public:
  void lock() {
    while (held_.exchange(true, std::memory_order_acquire)) ::sched_yield();
  }
  void unlock() { held_.store(false, std::memory_order_release); }

 private:
  std::atomic<bool> held_{false};
};

// Converts errno.
Status cannot_write(const std::string& path) {
  return Status(Code::UNAVAILABLE,
                fmt::format("could not write all of the trace to '{}': {}", path, std::strerror(errno)));
}

uintptr_t this_thread() { return reinterpret_cast<uintptr_t>(__builtin_thread_pointer()); }

}  // namespace

// The facts of a dispatch, and their texts.
struct Tracer::Details {
  TracedDispatch dispatch;
  std::array<std::string_view, kDispatchTexts> texts;
};

// The header of an event in a buffer. The flows, the arguments, the facts of a dispatch, the name and the
// dispatch's texts follow, padded to a multiple of eight bytes.
struct Tracer::Record {
  enum class Kind : uint8_t { begin, end, span, instant, count };

  uint64_t time = 0;
  uint64_t more = 0;  // span: its end time; count: the value
  Track track = 0;    // 0: the thread's track
  Kind kind = Kind::begin;
  TraceCategory category = TraceCategory::phase;
  uint8_t flows = 0;
  uint8_t name_size = 0;
  uint8_t arguments = 0;
  bool is_dispatch = false;
  std::array<uint8_t, kDispatchTexts> text_sizes = {};

  size_t bytes() const {
    return (sizeof(Record) + flows * sizeof(uint64_t) + arguments * sizeof(TraceArgument) +
            (is_dispatch ? sizeof(TracedDispatch) : 0) + name_size +
            std::accumulate(text_sizes.begin(), text_sizes.end(), size_t{0}) + 7) &
           ~size_t{7};
  }
};

struct Tracer::ThreadBuffer {
  Spinlock lock;
  size_t used = 0;
  Track track = 0;
  // The open slices at the last encoded record; guarded by the tracer's mutex.
  struct Open {
    TraceCategory category;
    uint64_t begin;
    uint64_t within;   // total time of the slices nested in it
    std::string name;  // only with an observer
  };
  std::vector<Open> open;
  alignas(Record) std::array<std::byte, kBufferBytes> bytes;
};

// Maps threads to buffers without a lock, by the thread pointer. A new thread may reuse the thread pointer of
// an ended one, and then also reuses its buffer.
struct Tracer::Slots {
  struct Slot {
    std::atomic<uintptr_t> thread{0};
    std::atomic<ThreadBuffer*> buffer{nullptr};
  };
  std::array<Slot, 64> slots;
  std::atomic<Slots*> next{nullptr};  // used when all slots are taken

  Slots() = default;
  Slots(const Slots&) = delete;
  Slots& operator=(const Slots&) = delete;
  ~Slots() { delete next.load(); }

  // Returns the thread's slot; claims one if it has none.
  Slot& of(uintptr_t thread) {
    const size_t first = (thread >> 6) * 0x9E3779B97F4A7C15u >> 58;
    for (size_t i = 0; i < slots.size(); ++i) {
      Slot& slot = slots[(first + i) % slots.size()];
      uintptr_t there = slot.thread.load(std::memory_order_acquire);
      if (there == 0 && slot.thread.compare_exchange_strong(there, thread, std::memory_order_acq_rel))
        return slot;
      if (there == thread) return slot;
    }
    Slots* more = next.load(std::memory_order_acquire);
    if (!more) {
      auto made = std::make_unique<Slots>();
      if (next.compare_exchange_strong(more, made.get(), std::memory_order_acq_rel)) more = made.release();
    }
    return more->of(thread);
  }
};

Result<Ref<Tracer>> Tracer::create(const std::string& path) {
  std::FILE* file = nullptr;
  if (!path.empty() && !(file = std::fopen(path.c_str(), "wb"))) {
    const int number = errno;
    return fail(code_of_errno(number),
                "cannot write the trace to '{}': {}; choose a file in a folder that can be written", path,
                std::strerror(number));
  }
  return make<Tracer>(file, path);
}

Tracer::Tracer(std::FILE* file, std::string path)
    : path_(std::move(path)), file_(file), slots_(std::make_unique<Slots>()) {
  writer_.process_track(kProcess, static_cast<uint32_t>(::getpid()), program_invocation_short_name);
}

Tracer::~Tracer() {
  flush_all();
  if (file_) std::fclose(file_);
}

uint64_t Tracer::now() {
  timespec time = {};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(time.tv_nsec);
}

void Tracer::lose(Status why) noexcept {
  if (lost_.ok()) lost_ = std::move(why);
}

// Events that cannot be stored or written are lost; finish() reports the loss.
template <typename Write>
void Tracer::with_writer(Write write) noexcept {
  const std::lock_guard lock(mutex_);
  try {
    write();
    const std::string bytes = writer_.take();
    if (!file_ || bytes.empty()) return;
    if (std::fwrite(bytes.data(), 1, bytes.size(), file_) != bytes.size()) lose(cannot_write(path_));
  } catch (const std::exception&) {
    lose(caught_exception());
  }
}

Tracer::ThreadBuffer* Tracer::buffer() noexcept {
  try {
    Slots::Slot& slot = slots_->of(this_thread());
    if (ThreadBuffer* there = slot.buffer.load(std::memory_order_acquire)) [[likely]]
      return there;
    auto made = std::make_unique<ThreadBuffer>();
    made->track = new_flow();
    std::array<char, 32> name = {};
    ::pthread_getname_np(::pthread_self(), name.data(), name.size());
    ThreadBuffer* given = made.get();
    with_writer([&] {
      writer_.thread_track(given->track, static_cast<uint32_t>(::getpid()),
                           static_cast<uint32_t>(::syscall(SYS_gettid)), name.data());
      buffers_.push_back(std::move(made));
    });
    if (made) return nullptr;  // out of memory
    slot.buffer.store(given, std::memory_order_release);
    return given;
  } catch (const std::exception&) {
    return nullptr;
  }
}

void Tracer::add(Record record, std::string_view name, std::span<const uint64_t> flows,
                 std::span<const TraceArgument> arguments, const Details* details) noexcept {
  ThreadBuffer* buffer = this->buffer();
  if (!buffer) [[unlikely]] {
    const std::lock_guard lock(mutex_);
    lose(out_of_memory());
    return;
  }
  record.name_size = static_cast<uint8_t>(std::min(name.size(), kMaxName));
  record.flows = static_cast<uint8_t>(std::min(flows.size(), kMaxFlows));
  record.arguments = static_cast<uint8_t>(std::min(arguments.size(), kMaxArguments));
  if (details) {
    record.is_dispatch = true;
    for (size_t i = 0; i < kDispatchTexts; ++i)
      record.text_sizes[i] = static_cast<uint8_t>(std::min(details->texts[i].size(), kMaxName));
  }
  const size_t size = record.bytes();
  const std::lock_guard lock(buffer->lock);
  if (kBufferBytes - buffer->used < size) [[unlikely]]
    flush(*buffer);
  std::byte* to = buffer->bytes.data() + buffer->used;
  const auto append = [&to](const void* from, size_t bytes) {
    if (bytes != 0) std::memcpy(to, from, bytes);
    to += bytes;
  };
  append(&record, sizeof record);
  append(flows.data(), record.flows * sizeof(uint64_t));
  append(arguments.data(), record.arguments * sizeof(TraceArgument));
  if (details) append(&details->dispatch, sizeof details->dispatch);
  append(name.data(), record.name_size);
  for (size_t i = 0; details && i < kDispatchTexts; ++i)
    append(details->texts[i].data(), record.text_sizes[i]);
  buffer->used += size;
}

void Tracer::encode(ThreadBuffer& buffer) {
  const auto close = [&](uint64_t time) {
    if (buffer.open.empty()) return;
    const ThreadBuffer::Open slice = std::move(buffer.open.back());
    buffer.open.pop_back();
    const uint64_t whole = time - slice.begin;
    const uint64_t self = whole - std::min(whole, slice.within);
    totals_.nanoseconds[static_cast<size_t>(slice.category)] += self;
    observed({slice.category, true, buffer.track, slice.begin, time, self, slice.name, nullptr, {}});
    if (!buffer.open.empty()) buffer.open.back().within += whole;
  };
  for (size_t at = 0; at < buffer.used;) {
    Record record;
    std::memcpy(&record, buffer.bytes.data() + at, sizeof record);
    const auto* flow_numbers = reinterpret_cast<const uint64_t*>(buffer.bytes.data() + at + sizeof record);
    const std::span<const uint64_t> flows(flow_numbers, record.flows);
    const auto* first_argument = reinterpret_cast<const TraceArgument*>(flow_numbers + record.flows);
    const std::span<const TraceArgument> arguments(first_argument, record.arguments);
    const auto* rest = reinterpret_cast<const char*>(first_argument + record.arguments);
    TracedDispatch dispatch;
    if (record.is_dispatch) {
      std::memcpy(&dispatch, rest, sizeof dispatch);
      rest += sizeof dispatch;
    }
    const std::string_view name(rest, record.name_size);
    rest += record.name_size;
    std::array<std::string_view, kDispatchTexts> texts;
    for (size_t i = 0; i < kDispatchTexts; ++i) {
      texts[i] = {rest, record.text_sizes[i]};
      rest += record.text_sizes[i];
    }
    at += record.bytes();
    const Track track = record.track ? record.track : buffer.track;
    const std::string_view category = kCategoryNames[static_cast<size_t>(record.category)];
    ++totals_.events;
    switch (record.kind) {
      case Record::Kind::begin:
        buffer.open.push_back(
            {record.category, record.time, 0, observer_ ? std::string(name) : std::string()});
        if (file_) writer_.begin(track, record.time, category, name, flows);
        break;
      case Record::Kind::end:
        close(record.time);
        if (file_) writer_.end(track, record.time);
        break;
      case Record::Kind::span: {
        const uint64_t whole = record.more - record.time;
        totals_.nanoseconds[static_cast<size_t>(record.category)] += whole;
        if (!record.track && !buffer.open.empty()) buffer.open.back().within += whole;
        observed({record.category, record.track == 0, track, record.time, record.more, whole, name,
                  record.is_dispatch ? &dispatch : nullptr, texts});
        if (!file_) break;
        writer_.begin(track, record.time, category, name, flows, arguments);
        writer_.end(track, record.more);
        break;
      }
      case Record::Kind::instant:
        if (file_) writer_.instant(track, record.time, category, name, flows, arguments);
        break;
      case Record::Kind::count:
        if (file_) writer_.count(track, record.time, static_cast<int64_t>(record.more));
        break;
    }
  }
}

void Tracer::flush(ThreadBuffer& buffer) noexcept {
  with_writer([&] { encode(buffer); });
  buffer.used = 0;
}

void Tracer::begin(TraceCategory category, std::string_view name, std::span<const uint64_t> flows) noexcept {
  add({.time = now(), .kind = Record::Kind::begin, .category = category}, name, flows);
}

void Tracer::end() noexcept { add({.time = now(), .kind = Record::Kind::end}, {}, {}); }

void Tracer::span(TraceCategory category, std::string_view name, uint64_t begin, uint64_t end,
                  std::span<const TraceArgument> arguments) noexcept {
  add({.time = begin, .more = std::max(begin, end), .kind = Record::Kind::span, .category = category}, name,
      {}, arguments);
}

void Tracer::dispatch(Track track, std::string_view name, uint64_t begin, uint64_t end,
                      const TracedDispatch& dispatch,
                      const std::array<std::string_view, kDispatchTexts>& texts,
                      std::span<const TraceArgument> arguments) noexcept {
  const Details details = {dispatch, texts};
  add({.time = begin,
       .more = std::max(begin, end),
       .track = track,
       .kind = Record::Kind::span,
       .category = TraceCategory::device},
      name, {}, arguments, &details);
}

void Tracer::instant(TraceCategory category, std::string_view name,
                     std::span<const uint64_t> flows) noexcept {
  instant_on(0, category, name, now(), flows);
}

void Tracer::span_on(Track track, TraceCategory category, std::string_view name, uint64_t begin, uint64_t end,
                     std::span<const uint64_t> flows) noexcept {
  add({.time = begin,
       .more = std::max(begin, end),
       .track = track,
       .kind = Record::Kind::span,
       .category = category},
      name, flows);
}

void Tracer::instant_on(Track track, TraceCategory category, std::string_view name, uint64_t time,
                        std::span<const uint64_t> flows, std::span<const TraceArgument> arguments) noexcept {
  add({.time = time, .track = track, .kind = Record::Kind::instant, .category = category}, name, flows,
      arguments);
}

void Tracer::count(Track counter, int64_t value) noexcept {
  add({.time = now(),
       .more = static_cast<uint64_t>(value),
       .track = counter,
       .kind = Record::Kind::count,
       .category = TraceCategory::memory},
      {}, {});
}

Tracer::Track Tracer::add_track(std::string_view name, Track parent) noexcept {
  const Track track = new_flow();
  with_writer([&] { writer_.track(track, parent, name); });
  return track;
}

Tracer::Track Tracer::add_counter(std::string_view name, Track parent) noexcept {
  const Track track = new_flow();
  with_writer([&] { writer_.counter_track(track, parent, name); });
  return track;
}

void Tracer::flush_all() noexcept {
  // The lock order is buffer, then mutex, as in add(). Buffers are never removed.
  for (size_t i = 0;; ++i) {
    ThreadBuffer* buffer = nullptr;
    {
      const std::lock_guard lock(mutex_);
      if (i >= buffers_.size()) return;
      buffer = buffers_[i].get();
    }
    const std::lock_guard lock(buffer->lock);
    flush(*buffer);
  }
}

Tracer::Totals Tracer::totals() {
  flush_all();
  const std::lock_guard lock(mutex_);
  return totals_;
}

void Tracer::observe(Observer observer) {
  flush_all();
  const std::lock_guard lock(mutex_);
  observer_ = std::move(observer);
}

uint64_t Tracer::add_source(Source source) {
  const std::lock_guard lock(sources_mutex_);
  sources_.emplace(++last_source_, std::move(source));
  return last_source_;
}

void Tracer::remove_source(uint64_t number) noexcept {
  const std::lock_guard lock(sources_mutex_);
  sources_.erase(number);
}

void Tracer::settle() {
  const std::lock_guard lock(sources_mutex_);
  for (const auto& [number, source] : sources_)
    if (source.settle) source.settle();
}

Result<> Tracer::finish() {
  settle();
  {
    const std::lock_guard lock(sources_mutex_);
    for (const auto& [number, source] : sources_)
      if (source.sum_up) source.sum_up();
  }
  flush_all();
  const std::lock_guard lock(mutex_);
  if (file_ && std::fflush(file_) != 0) lose(cannot_write(path_));
  return to_result(lost_);
}

}  // namespace halyard
