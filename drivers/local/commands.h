// What the device does: the single commands and operations on bytes, and lists of commands. Ranges,
// alignments and counts have been checked by the host; whether the bytes of queue allocations are there is
// checked here.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "base/work_scope.h"
#include "device_memory.h"
#include "estimate.h"
#include "executable.h"
#include "node_cache.h"
#include "status.h"
#include "workers.h"

namespace halyard::local {

using BindingTable = std::span<const halyard_binding_t>;

// What commands are run with.
struct Execution {
  BindingTable table;          // ranges without memory are its entries
  Workers* workers = nullptr;  // who may help with a dispatch; null: nobody
  NodeCache* nodes = nullptr;
  const Services* services = nullptr;  // who is told of the commands of a list
  bool is_shared = false;              // part of work that is worth sharing: others are awake, or will be
  const uint32_t* stop = nullptr;      // the word that stops the work; may be null
};

// A finished recording: the host's, which it keeps unchanged until the list is destroyed.
class CommandList {
 public:
  // UNIMPLEMENTED: a kind of command that the device does not have.
  static Result<> check(const halyard_command_list_args_t& args);
  explicit CommandList(const halyard_command_list_args_t& args)
      : commands_(reinterpret_cast<const uint8_t*>(args.commands), args.commands_size) {}

  std::span<const uint8_t> commands() const { return commands_; }
  Cost& cost() const { return cost_; }  // of the last execution
  // Commands that no barrier parts may run at once, where there are workers.
  Result<> execute(const Execution& execution) const;

 private:
  // What a batch is: commands that no barrier parts, and not too many. False ends it.
  template <typename Visit>
  bool visit_batches(Visit&& visit) const;
  bool is_worth_sharing(unsigned threads) const;

  std::span<const uint8_t> commands_;
  mutable Cost cost_;
};

Result<> fill(const halyard_range_t& target, uint32_t pattern, uint32_t pattern_size,
              const Execution& execution);
Result<> update(const void* source, const halyard_range_t& target, const Execution& execution);
Result<> copy(const halyard_range_t& source, const halyard_range_t& target, const Execution& execution);

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

// A command of a list, of a kind that check() has let through. Begins nothing where the work is to stop.
Result<> execute(const halyard_command_t& command, const Execution& execution);

// OUT_OF_RANGE: the file ends too early. UNAVAILABLE: the system's reason.
Result<> read_file(const halyard_operation_transfer_file_t& transfer);
Result<> write_file(const halyard_operation_transfer_file_t& transfer);

}  // namespace halyard::local

struct halyard_driver_command_list final : halyard::local::CommandList {
  using CommandList::CommandList;
};
