// Counts the float operations and the bytes of a dispatch of a bytecode kernel without running it. Only the
// integers that control flow and addresses depend on are computed. A loop whose iterations are alike is
// entered once and multiplied by its trip count, so the cost does not depend on the sizes of tensors.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "vm/count/binding_range.h"
#include "vm/module/bytecode_module.h"

namespace halyard::vm {

// The arguments of a kernel, a function of convention 0rrriiiiiiiii_v: local memory, constants, a list of
// bindings; workgroup id, size and count.
struct KernelArguments {
  uint64_t local_memory = 0;  // bytes
  std::span<const std::byte> constants;
  std::span<const uint64_t> binding_lengths;  // bytes
  std::array<uint32_t, 3> workgroups = {1, 1, 1};
  // The float operations of a call of an import, if they follow from its integer arguments, in order. An
  // argument is absent if it is unknown.
  std::optional<uint64_t> (*import_operations)(std::string_view name,
                                               std::span<const std::optional<int64_t>> integers) = nullptr;
  // Instructions that are followed at the most: 20 million take a second.
  uint64_t max_steps = 4'000'000;
  bool finds_overwritten = false;  // see KernelCounts
};

// Of all workgroups together.
struct KernelCounts {
  // Sums, products, quotients, minima, maxima, roots and functions such as exp count 1, fma counts 2. Moves,
  // comparisons, conversions, roundings and changes of sign do not count.
  uint64_t operations = 0;
  // The bytes of bindings that loads read and that stores write, each byte once. If an access leaves gaps
  // between its elements, the smaller of its range and the sum of its elements counts. Absent if an import
  // accesses bindings.
  struct Bytes {
    uint64_t read = 0;
    uint64_t written = 0;
  };
  std::optional<Bytes> bytes;
  // If `bytes` is there: the ranges of bindings that are accessed, by binding, then reads before writes, then
  // by offset. Ranges that meet are one; an access that leaves gaps counts with its whole range.
  using Range = BindingRange;
  std::vector<Range> ranges;
  // With KernelArguments::finds_overwritten, and if `bytes` is there: ranges that are not empty and do not
  // meet, by binding, then by offset. A run of all workgroups that does not fail writes each of their bytes.
  // There may be more such bytes.
  std::vector<Range> overwritten;
  // Likewise: all bytes that a workgroup may read before it has written them itself, and perhaps others.
  // `ranges` are for estimates; these are right for registers that wrap, too.
  std::vector<Range> inputs;
};

// The function must have passed the verifier. UNIMPLEMENTED: the counts depend on data or are not known; the
// message has the reason.
Result<KernelCounts> count_kernel(const BytecodeModule& module, uint32_t function,
                                  const KernelArguments& arguments);

}  // namespace halyard::vm
