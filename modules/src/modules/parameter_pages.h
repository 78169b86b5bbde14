// ParameterPages: makes the pages of mapped parameters known to the processor while the program runs. The
// first touch of each 64 KiB of a mapped file costs 3 to 6 us even where the file is in memory, so 500 MB
// make the first call 30 ms longer than the next; the event loop touches them ahead of the program.
//
// Only pages that are in memory: nothing is read from the disk that the program might never ask for. Only
// where there are many: for a few it does not pay to wake the loop.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "base/loop.h"

namespace halyard::modules {

class ParameterPages {
 public:
  static constexpr uint64_t kWorthIt = uint64_t{16} << 20;  // bytes in all

  struct Range {
    std::span<const uint8_t> bytes;
    Ref<Bytes> keep;  // what they belong to
  };

  // Without a loop nothing is prepared.
  explicit ParameterPages(Ref<Loop> loop);
  ParameterPages(const ParameterPages&) = delete;
  ParameterPages& operator=(const ParameterPages&) = delete;
  // What is not prepared by now stays so. Does not wait for the loop.
  ~ParameterPages();

  // Returns at once. Any thread. What cannot be done (an old kernel) is left undone: the program touches its
  // pages itself.
  void prepare(std::vector<Range> ranges);

 private:
  struct Work;
  Ref<Loop> loop_;
  Ref<Work> work_;
};

}  // namespace halyard::modules
