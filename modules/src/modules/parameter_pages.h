// ParameterPages: makes the pages of mapped parameters known to the processor while the program runs. The
// first touch of each 64 KiB of a mapped file costs 3 to 6 us even where the file is in memory, so 500 MB
// make the first call 30 ms longer than the next; a thread of its own touches them ahead of the program.
//
// Only pages that are in memory: nothing is read from the disk that the program might never ask for. Only
// where there are many: a thread for a few milliseconds does not pay.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "base/bytes.h"

namespace halyard::modules {

class ParameterPages {
 public:
  static constexpr uint64_t kWorthIt = uint64_t{64} << 20;  // bytes in all

  struct Range {
    std::span<const uint8_t> bytes;
    Ref<Bytes> keep;  // what they belong to
  };

  ParameterPages() = default;
  ParameterPages(const ParameterPages&) = delete;
  ParameterPages& operator=(const ParameterPages&) = delete;
  // Ends the thread within a millisecond.
  ~ParameterPages();

  // Returns at once. Any thread. What cannot be done (no thread, an old kernel) is left undone: the program
  // touches its pages itself.
  void prepare(std::vector<Range> ranges);

 private:
  void work();
  bool touch(const Range& range) const;

  std::atomic<bool> stopping_ = false;
  std::mutex mutex_;  // of what follows
  std::vector<Range> waiting_;
  uint64_t total_ = 0;  // bytes that were asked for
  bool is_working_ = false;
  std::thread thread_;
};

}  // namespace halyard::modules
