// The step that touches pages: a few at a time, so that the loop can run other work in between.
#include "modules/parameter_pages.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>
#include <utility>

namespace halyard::modules {

namespace {

constexpr size_t kPiece = size_t{2} << 20;          // bytes of one mincore() query
constexpr size_t kInOneStep = kPiece * 4;           // takes less than a millisecond
constexpr size_t kMappedAtOnce = size_t{64} << 10;  // bytes that the kernel maps for each page fault

}  // namespace

struct ParameterPages::Work final : ObjectOf<Work>, Step {
  static const ObjectType kType;

  explicit Work(Loop& on) : loop(on) {
    run = [](Step& self) noexcept { static_cast<Work&>(self).take_step(); };
  }

  Loop& loop;
  std::atomic<bool> stopping = false;
  std::mutex mutex;            // guards the members below
  std::vector<Range> waiting;  // the last element is next
  uint64_t total = 0;          // requested bytes
  bool is_posted = false;      // the loop has a reference

  void take_step() noexcept {
    Range range;
    {
      const std::lock_guard lock(mutex);
      if (stopping || waiting.empty()) {
        is_posted = false;
        waiting.clear();
      } else {
        Range& next = waiting.back();
        const size_t size = std::min(next.bytes.size(), kInOneStep);
        range = {next.bytes.first(size), next.keep};
        next.bytes = next.bytes.subspan(size);
        if (next.bytes.empty()) waiting.pop_back();
      }
    }
    if (!range.keep) return release();
    if (!touch(range)) stopping = true;
    loop.post(*this);
  }

  // Returns false if touching more pages is pointless. Reads bytes instead of calling
  // madvise(MADV_POPULATE_READ): that call holds the lock of the address space until it ends, so each mmap(),
  // and with it malloc(), of the program would wait.
  static bool touch(const Range& range) {
    const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
    auto at = reinterpret_cast<uintptr_t>(range.bytes.data());
    const uintptr_t end = at + range.bytes.size();
    while (at < end) {
      const uintptr_t next = std::min(after(at, kPiece), end);
      const uintptr_t first = at / page * page;
      unsigned char resident[kPiece / 4096];
      if (mincore(reinterpret_cast<void*>(first), next - first, resident) != 0) return false;
      for (; at < next; at = after(at, kMappedAtOnce))
        if ((resident[(at - first) / page] & 1) != 0)
          static_cast<void>(*reinterpret_cast<const volatile uint8_t*>(at));
    }
    return true;
  }

  // The next multiple of `size`.
  static uintptr_t after(uintptr_t address, size_t size) { return (address / size + 1) * size; }
};

const ObjectType ParameterPages::Work::kType = object_type<Work>("parameter_pages");

ParameterPages::ParameterPages(Ref<Loop> loop) : loop_(std::move(loop)) {
  if (loop_ && std::thread::hardware_concurrency() >= 2) work_ = make<Work>(*loop_);
}

ParameterPages::~ParameterPages() {
  if (work_) work_->stopping = true;
}

void ParameterPages::add(std::vector<Range>& ranges, Range range) {
  if (range.bytes.empty()) return;
  if (!ranges.empty() && ranges.back().keep.get() == range.keep.get()) {
    std::span<const uint8_t>& last = ranges.back().bytes;
    const auto begin = reinterpret_cast<uintptr_t>(last.data());
    const auto next = reinterpret_cast<uintptr_t>(range.bytes.data());
    if (next >= begin && next - begin <= last.size() + kMappedAtOnce) {
      last = {last.data(), std::max<size_t>(last.size(), next - begin + range.bytes.size())};
      return;
    }
  }
  if (ranges.size() < kMaxRanges) ranges.push_back(std::move(range));
}

void ParameterPages::prepare(std::vector<Range> ranges) {
  if (!work_) return;
  const std::lock_guard lock(work_->mutex);
  if (work_->stopping) return;
  for (Range& range : ranges) {
    work_->total += range.bytes.size();
    add(work_->waiting, std::move(range));
  }
  if (work_->is_posted || work_->waiting.empty() || work_->total < kWorthIt) return;
  std::ranges::reverse(work_->waiting);  // in the order of the program's requests
  work_->is_posted = true;
  work_->retain();
  loop_->post(*work_);
}

}  // namespace halyard::modules
