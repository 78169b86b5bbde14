// The thread that touches pages.
#include "modules/parameter_pages.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <system_error>
#include <utility>

namespace halyard::modules {

namespace {

constexpr size_t kPiece = size_t{2} << 20;  // bytes at a time: other threads that map memory wait for so many

#ifdef MADV_POPULATE_READ
constexpr int kPopulate = MADV_POPULATE_READ;
#else
constexpr int kPopulate = 22;  // Linux 5.14
#endif

}  // namespace

ParameterPages::~ParameterPages() {
  stopping_ = true;
  if (thread_.joinable()) thread_.join();
}

void ParameterPages::prepare(std::vector<Range> ranges) {
  if (std::thread::hardware_concurrency() < 2) return;
  const std::lock_guard lock(mutex_);
  for (Range& range : ranges) {
    total_ += range.bytes.size();
    waiting_.push_back(std::move(range));
  }
  if (is_working_ || waiting_.empty() || total_ < kWorthIt) return;
  if (thread_.joinable()) thread_.join();  // it is over
  sigset_t all;
  sigset_t before;
  sigfillset(&all);  // signals are for the program's own threads
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    thread_ = std::thread([this] { work(); });
    pthread_setname_np(thread_.native_handle(), "halyard-pages");
    is_working_ = true;
  } catch (const std::system_error&) {
    waiting_.clear();
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void ParameterPages::work() {
  while (true) {
    std::vector<Range> ranges;
    {
      const std::lock_guard lock(mutex_);
      ranges.swap(waiting_);
      if (ranges.empty()) is_working_ = false;
    }
    if (ranges.empty()) return;
    for (const Range& range : ranges)
      if (!touch(range)) break;
  }
}

// False where there is no point in going on.
bool ParameterPages::touch(const Range& range) const {
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto address = reinterpret_cast<uintptr_t>(range.bytes.data());
  const uintptr_t end = (address + range.bytes.size() + page - 1) / page * page;
  std::vector<unsigned char> resident(kPiece / page);
  for (uintptr_t at = address / page * page; at < end; at += kPiece) {
    if (stopping_) return false;
    const size_t size = std::min<size_t>(kPiece, end - at);
    auto* const bytes = reinterpret_cast<void*>(at);
    if (mincore(bytes, size, resident.data()) != 0) return false;
    const auto pages = std::span(resident).first(size / page);
    if (!std::ranges::all_of(pages, [](unsigned char bits) { return (bits & 1) != 0; })) continue;
    if (madvise(bytes, size, kPopulate) != 0) return false;
  }
  return true;
}

}  // namespace halyard::modules
