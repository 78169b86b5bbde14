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

constexpr size_t kPiece = size_t{2} << 20;  // bytes at a time: threads that map memory wait for one chunk
constexpr size_t kInOneStep = kPiece * 4;   // well below a millisecond

#ifdef MADV_POPULATE_READ
constexpr int kPopulate = MADV_POPULATE_READ;
#else
constexpr int kPopulate = 22;  // Linux 5.14
#endif

}  // namespace

struct ParameterPages::Work final : ObjectOf<Work>, Step {
  static const ObjectType kType;

  explicit Work(Loop& on) : loop(on) {
    run = [](Step& self) noexcept { static_cast<Work&>(self).take_step(); };
  }

  Loop& loop;
  std::atomic<bool> stopping = false;
  std::mutex mutex;            // of what follows
  std::vector<Range> waiting;  // the last one is next
  uint64_t total = 0;          // requested bytes
  bool is_posted = false;      // true: the loop has a reference

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

  // False if continuing is pointless.
  static bool touch(const Range& range) {
    const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
    const auto address = reinterpret_cast<uintptr_t>(range.bytes.data());
    const uintptr_t end = (address + range.bytes.size() + page - 1) / page * page;
    unsigned char resident[kPiece / 4096];
    for (uintptr_t at = address / page * page; at < end; at += kPiece) {
      const size_t size = std::min<size_t>(kPiece, end - at);
      auto* const bytes = reinterpret_cast<void*>(at);
      if (mincore(bytes, size, resident) != 0) return false;
      const auto pages = std::span(resident).first(size / page);
      if (!std::ranges::all_of(pages, [](unsigned char bits) { return (bits & 1) != 0; })) continue;
      if (madvise(bytes, size, kPopulate) != 0) return false;
    }
    return true;
  }
};

const ObjectType ParameterPages::Work::kType = object_type<Work>("parameter_pages");

ParameterPages::ParameterPages(Ref<Loop> loop) : loop_(std::move(loop)) {
  if (loop_ && std::thread::hardware_concurrency() >= 2) work_ = make<Work>(*loop_);
}

ParameterPages::~ParameterPages() {
  if (work_) work_->stopping = true;
}

void ParameterPages::prepare(std::vector<Range> ranges) {
  if (!work_) return;
  const std::lock_guard lock(work_->mutex);
  if (work_->stopping) return;
  for (Range& range : ranges) {
    work_->total += range.bytes.size();
    if (!range.bytes.empty()) work_->waiting.push_back(std::move(range));
  }
  if (work_->is_posted || work_->waiting.empty() || work_->total < kWorthIt) return;
  std::ranges::reverse(work_->waiting);  // in the order in which the program asked
  work_->is_posted = true;
  work_->retain();
  loop_->post(*work_);
}

}  // namespace halyard::modules
