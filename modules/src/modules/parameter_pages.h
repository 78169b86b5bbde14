// ParameterPages: pre-faults the pages of mapped parameters while the program runs. The first access to each
// 64 KiB of a mapped file costs 3 to 6 us, even if the file is in the page cache. With 500 MB of parameters,
// the first call takes 30 ms longer than the next ones. The event loop touches the pages before the program
// does.
//
// Only pages in the page cache are touched, because the program may never need the others. Only large sets of
// pages are pre-faulted, because waking the loop costs more than touching a few.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "base/loop.h"

namespace halyard::modules {

class ParameterPages {
 public:
  static constexpr uint64_t kWorthIt = uint64_t{16} << 20;  // total bytes
  static constexpr size_t kMaxRanges = 4096;  // that wait; the program touches further ones itself

  struct Range {
    std::span<const uint8_t> bytes;
    Ref<Bytes> keep;  // owner of the bytes
  };
  // Adds a range to those of one call. Extends the last range if the new one begins within it or just behind
  // it. The range is left out if there are kMaxRanges, so the memory of the list is bounded.
  static void add(std::vector<Range>& ranges, Range range);

  // A null loop: nothing is pre-faulted.
  explicit ParameterPages(Ref<Loop> loop);
  ParameterPages(const ParameterPages&) = delete;
  ParameterPages& operator=(const ParameterPages&) = delete;
  // Drops the remaining pages. Does not wait for the loop.
  ~ParameterPages();

  // Returns at once. Any thread. Ranges are added as by add().
  void prepare(std::vector<Range> ranges);

 private:
  struct Work;
  Ref<Loop> loop_;
  Ref<Work> work_;
};

}  // namespace halyard::modules
