// The bytes of bindings that a dispatch reads, and those that it certainly writes.
#pragma once

#include <cstdint>
#include <vector>

#include "range_set.h"

namespace halyard::local {

struct DispatchAccesses {
  struct Access {
    uint32_t binding = 0;
    ByteRange range;  // of the binding
  };
  std::vector<Access> reads;       // all bytes that may be read, and perhaps others
  std::vector<Access> overwrites;  // bytes that are written unless the dispatch fails; there may be others
};

}  // namespace halyard::local
