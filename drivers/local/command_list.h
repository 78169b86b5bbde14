// Command lists. Each layer calls only the next one: lists (this file), dispatches (dispatch.h), batches
// (batch.h), single commands on one thread (perform.h), kernels and byte operations (kernel_call.h, bytes.h),
// Execution (execution.h).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>

#include "estimate.h"
#include "execution.h"
#include "partial_fills.h"

namespace halyard::local {

// A finished recording. The host owns the commands and keeps them unchanged until the list is destroyed.
class CommandList {
 public:
  // UNIMPLEMENTED: a command kind that the device does not support.
  static Result<std::unique_ptr<halyard_driver_command_list>> create(const halyard_command_list_args_t& args);
  explicit CommandList(const halyard_command_list_args_t& args)
      : commands_(reinterpret_cast<const uint8_t*>(args.commands), args.commands_size),
        is_one_shot_(args.one_shot != 0) {}

  // The expected duration in nanoseconds: that of the last execution, or the sum over the commands if there
  // was none.
  uint64_t expected_cost() const;
  // On a device with workers, commands without a barrier between them may run in parallel.
  Result<> execute(const Execution& execution) const;

 private:
  // Calls `visit` with each batch: commands without a barrier between them, up to a maximum number. Stops if
  // `visit` returns false.
  template <typename Visit>
  bool visit_batches(Visit&& visit) const;
  bool is_worth_sharing(unsigned threads, const PartialFills* fills) const;
  // Those that hold for the table; null: none.
  const PartialFills* partial_fills(const BindingTable& table, const uint32_t* stop) const;
  // Announces the dispatches whose workgroups are known to their executables.
  void foresee() const;

  std::span<const uint8_t> commands_;
  const bool is_one_shot_;
  mutable Cost cost_;  // of the last execution
  enum class FillState : uint8_t { unknown, looking, known };
  mutable std::atomic<FillState> fill_state_ = FillState::unknown;
  mutable std::atomic<uint32_t> executions_ = 0;       // until then
  mutable std::unique_ptr<const PartialFills> fills_;  // set once it is known; may be null
};

}  // namespace halyard::local

struct halyard_driver_command_list final : halyard::local::CommandList {
  using CommandList::CommandList;
};
