// Lists of commands. Calls go one way: a list (here) uses dispatches (dispatch.h), which use batches
// (batch.h), which use single commands on one thread (perform.h), which use kernel calls and bytes
// (kernel_call.h, bytes.h), which use Execution (execution.h).
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "estimate.h"
#include "execution.h"

namespace halyard::local {

// A finished recording: the host's, which it keeps unchanged until the list is destroyed.
class CommandList {
 public:
  // UNIMPLEMENTED: a kind of command that the device does not have.
  static Result<std::unique_ptr<halyard_driver_command_list>> create(const halyard_command_list_args_t& args);
  explicit CommandList(const halyard_command_list_args_t& args)
      : commands_(reinterpret_cast<const uint8_t*>(args.commands), args.commands_size) {}

  // What it will take, in nanoseconds: as the last time, or as its commands took.
  uint64_t expected_cost() const;
  // Commands that no barrier parts may run at once, where there are workers.
  Result<> execute(const Execution& execution) const;

 private:
  // What a batch is: commands that no barrier parts, and not too many. False ends it.
  template <typename Visit>
  bool visit_batches(Visit&& visit) const;
  bool is_worth_sharing(unsigned threads) const;

  std::span<const uint8_t> commands_;
  mutable Cost cost_;  // of the last execution
};

}  // namespace halyard::local

struct halyard_driver_command_list final : halyard::local::CommandList {
  using CommandList::CommandList;
};
