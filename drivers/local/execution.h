// Execution: what commands are run with, and the bytes that their ranges mean.
#pragma once

#include <cstdint>
#include <span>

#include "device_memory.h"
#include "node_cache.h"
#include "status.h"
#include "workers.h"

namespace halyard::local {

using BindingTable = std::span<const halyard_binding_t>;

struct Execution {
  BindingTable table;          // ranges without memory are its entries
  Workers* workers = nullptr;  // who may help with a dispatch; null: nobody
  NodeCache* nodes = nullptr;
  const Services* services = nullptr;  // who is told of the commands of a list
  bool is_shared = false;              // part of work that is worth sharing: others are awake, or will be
  const uint32_t* stop = nullptr;      // the word that stops the work; may be null
};

// The bytes of a range; see bytes_at().
Result<std::span<uint8_t>> resolve(const halyard_range_t& range, const Execution& execution);

// The same for work that may write to them. PERMISSION_DENIED: constants of a device that validates.
Result<std::span<uint8_t>> resolve_to_write(const halyard_range_t& range, const Execution& execution);

inline Memory& memory_of(const halyard_range_t& range, const Execution& execution) {
  return range.memory ? *range.memory : *execution.table[range.slot].memory;
}
// Of its first byte, within that memory.
inline uint64_t offset_of(const halyard_range_t& range, const Execution& execution) {
  return range.memory ? range.offset : execution.table[range.slot].offset + range.offset;
}

}  // namespace halyard::local
