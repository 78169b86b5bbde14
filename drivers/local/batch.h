// Batch: a dispatch, or the commands between two barriers. Idle threads of the device's pool help to run the
// batch. Threads take tiles in the order of the commands; a tile is a few workgroups of a dispatch or a whole
// command of another kind. The thread that owns the batch takes tiles too. At the end the owner waits for the
// tiles in progress, but not for helper threads that have taken no tile.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "command_cost.h"
#include "execution.h"
#include "halyard/driver/trace.hpp"
#include "kernel_call.h"
#include "vm/decode/jit_abi.h"

namespace halyard::local {

// The number of threads that should help, and for traces the reason if there are none.
struct Helpers {
  uint32_t count = 0;
  uint32_t sharing = HALYARD_SHARING_UNKNOWN;  // HALYARD_SHARING_*
};
// Takes no lock if the cost is too low for helpers.
Helpers helpers_for(const Load& load, const Execution& execution);

// Runs all commands with at least one helper thread. Returns the failure of the first command that fails, at
// the command's first failing workgroup in the order of KernelRunner::run.
Result<> share_out(std::span<const halyard_command_t* const> commands, uint64_t cost, uint32_t helpers,
                   const Execution& execution);

// Shares pieces of a kernel's loops among threads while a thread runs workgroups of the kernel.
class LoopSharing : private halyard_jit_sharing_t {
 public:
  // A loop of a kernel, divided into pieces.
  struct Loop {
    std::string_view kernel;
    const std::optional<kit::TraceDispatch>& facts;  // about the dispatch
    void (*body)(uint64_t first, uint64_t last, void* data) = nullptr;
    void* data = nullptr;
  };

  // `facts`: for traces.
  LoopSharing(const halyard_command_dispatch_t& command, const std::optional<kit::TraceDispatch>& facts,
              const Execution& execution);
  // For the workgroups that run next.
  static constexpr uint64_t kNow = 0, kNever = UINT64_MAX;
  struct Expected {
    uint64_t workgroup = 0;  // the duration of one, in nanoseconds; 0: not known
    // When other threads will look for work, and loops ask for help: kNow, kNever (they will take
    // workgroups), or by the clock.
    uint64_t help_at = kNow;
  };
  void expect(const Expected& expected) { expected_ = expected; }
  // The time of other threads in loops, in nanoseconds, since the last call of this.
  uint64_t take_help() { return std::exchange(help_, 0); }
  // Null if the device has one thread.
  const halyard_jit_sharing_t* get() const;
  // Says in the trace how many threads have shared a loop, or why none have. Says nothing if there was no
  // loop.
  void report(kit::TraceSpan& span) const;

 private:
  static uint64_t share(const halyard_jit_sharing_t* sharing, uint64_t pieces, uint64_t most_pieces,
                        void (*body)(uint64_t first, uint64_t last, void* data), void* data,
                        const uint32_t* stop);
  uint64_t pieces_before_help(uint64_t left, uint64_t pieces, uint64_t each) const;
  std::optional<uint64_t> share_rest(const Loop& loop, uint64_t first, uint64_t pieces, uint64_t most,
                                     const Load& rest, const Helpers& helpers, const uint32_t* stop) const;

  const std::string_view kernel_;
  const Cost& workgroup_;
  const std::optional<kit::TraceDispatch>& facts_;
  const Execution& execution_;
  Expected expected_;
  mutable uint64_t help_ = 0;
  mutable uint32_t threads_ = 1;  // the most
  mutable uint32_t sharing_ = HALYARD_SHARING_UNKNOWN;
};

// Runs the workgroups of a dispatch from workgroup `first` on. Each workgroup takes about `each` nanoseconds.
Result<> share_out(const halyard_command_dispatch_t& command, const WorkgroupCount& count, uint64_t first,
                   uint64_t each, uint32_t helpers, const Execution& execution);

}  // namespace halyard::local
