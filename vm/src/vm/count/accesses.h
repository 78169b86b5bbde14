// The bytes of bindings that the instructions of a counted kernel access.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "vm/count/kernel_counts.h"

namespace halyard::vm {

class CountedAccesses {
 public:
  void clear();

  // Instruction `step` accesses [begin, end) of a binding in all iterations, `each` bytes (0: of various
  // sizes) in each execution.
  void add(uint32_t step, uint32_t binding, bool writes, uint64_t begin, uint64_t end, uint64_t each);
  // An access whose binding or size is not known: the sums are absent.
  void add_unknown() { has_unknown_ = true; }

  // How often an instruction was executed.
  using Executions = std::function<uint64_t(uint32_t step)>;
  // Sets `bytes` and `ranges` of the counts, if all accesses are known.
  void sum(KernelCounts& counts, size_t bindings, const Executions& executions) const;
  // By binding, then reads before writes, then by offset. Ranges that meet are one.
  std::vector<BindingRange> ranges() const;

 private:
  struct Site {
    uint32_t step;
    uint32_t binding;
    bool writes;
    auto operator<=>(const Site&) const = default;
  };
  struct Extent {
    uint64_t begin = UINT64_MAX;
    uint64_t end = 0;
    uint64_t each = 0;
  };
  uint64_t bytes_of(uint32_t binding, bool writes, const Executions& executions) const;

  std::map<Site, Extent> extents_;
  bool has_unknown_ = false;
};

}  // namespace halyard::vm
