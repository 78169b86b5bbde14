// A range of bytes of a binding that a kernel accesses.
#pragma once

#include <compare>
#include <cstdint>

namespace halyard::vm {

struct BindingRange {
  uint32_t binding = 0;
  bool writes = false;
  uint64_t begin = 0;  // bytes
  uint64_t end = 0;
  auto operator<=>(const BindingRange&) const = default;
};

}  // namespace halyard::vm
