// The bytes of buffers that calls of imports write. The provider of the imports knows them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace halyard::vm {

// If the call succeeds, it has written these bytes of an argument, whatever they were before.
struct CallWrites {
  size_t ref = 0;  // among the arguments that are refs
  uint64_t begin = 0;
  uint64_t end = 0;
};

// Returns what a call of the import ("vmvx.pack") writes, by its integer arguments (in order; absent:
// unknown); absent if that is not known. Null: of no call is it known. Presumes that the other arguments are
// other buffers.
using CallWritesOf = std::optional<CallWrites> (*)(std::string_view import,
                                                   std::span<const std::optional<int64_t>> integers);

}  // namespace halyard::vm
