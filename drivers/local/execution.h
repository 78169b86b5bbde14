// Execution: the context in which commands run. Also resolves ranges to bytes.
#pragma once

#include <cstdint>
#include <span>

#include "device_memory.h"
#include "node_cache.h"
#include "status.h"
#include "thread_pool.h"

namespace halyard::local {

using BindingTable = std::span<const halyard_binding_t>;

class PartialFills;
class Team;

struct Execution {
  BindingTable table;                 // ranges without memory refer to its entries
  ThreadPool* thread_pool = nullptr;  // threads that may help with a dispatch; null: none
  NodeCache* nodes = nullptr;
  const Services* services = nullptr;  // traces the commands of a list
  Team* team = nullptr;                // the threads that help with a list that is shared; null: none
  const PartialFills* partial_fills = nullptr;  // of the list, if they hold for the table
  const uint32_t* stop = nullptr;               // the word that stops the work; may be null
  bool foresees = false;                        // the device compiles hot kernels
  void* submission = nullptr;                   // for traces: its completed_user
};

// The bytes of a range; see bytes_at().
Result<std::span<uint8_t>> resolve(const halyard_range_t& range, const Execution& execution);

// Like resolve(), for work that may write to the bytes. PERMISSION_DENIED: constants on a validating device.
Result<std::span<uint8_t>> resolve_to_write(const halyard_range_t& range, const Execution& execution);

inline Memory& memory_of(const halyard_range_t& range, const Execution& execution) {
  return range.memory ? *range.memory : *execution.table[range.slot].memory;
}
// The offset of the range's first byte in its memory.
inline uint64_t offset_of(const halyard_range_t& range, const Execution& execution) {
  return range.memory ? range.offset : execution.table[range.slot].offset + range.offset;
}

}  // namespace halyard::local
