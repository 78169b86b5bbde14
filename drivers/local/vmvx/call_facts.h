// Facts about a call of a microkernel that follow from its integer arguments (in order; absent: unknown).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "vm/decode/call_writes.h"

namespace halyard::local::vmvx {

// The float operations. Absent if they are not known.
std::optional<uint64_t> operations_of(std::string_view name,
                                      std::span<const std::optional<int64_t>> integers);

// The bytes that the call fills. Absent if they are not known, or are not adjacent.
std::optional<vm::CallWrites> writes_of(std::string_view name,
                                        std::span<const std::optional<int64_t>> integers);

}  // namespace halyard::local::vmvx
