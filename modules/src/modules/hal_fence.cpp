// hal.fence.*. Specified by hal-module.md, "Fence", and rulings 9 to 12.
#include "hal/fence.h"
#include "modules/hal_functions.h"

namespace halyard::modules::hal_functions {
namespace {

constexpr uint32_t kCodeBits = 31;  // of a status number that count

}  // namespace

Result<Ref<hal::Fence>> fence_create(hal::Device& device, uint64_t) {
  return hal::Fence::create(Ref<hal::Device>::share(&device));
}

Result<Ref<hal::Fence>> fence_join(uint64_t, Span<hal::Fence*> fences) {
  hal::InlineVector<hal::Fence*, 8> joined;
  collect(fences, joined);
  return hal::Fence::join(joined);
}

Result<int32_t> fence_query(hal::Fence& fence) { return static_cast<int32_t>(fence.query().code()); }

Result<> fence_signal(hal::Fence& fence) { return fence.signal(); }

Result<> fence_fail(hal::Fence& fence, uint32_t code) {
  fence.fail(
      Status(failure_code(code & kCodeBits), fmt::format("fence failed by the program with code {}", code)));
  return {};
}

// A call that can wait gives its thread back meanwhile, and its time limit ends the wait; others block for as
// long as they are told.
Result<int32_t> fence_await(vm::CallContext& call, uint32_t timeout_milliseconds, uint64_t,
                            Span<hal::Fence*> fences) {
  if (fences.size() > hal::kMaximumAwaitedFences)
    return fail(Code::OUT_OF_RANGE, "count {} of fences > {}", fences.size(), hal::kMaximumAwaitedFences);
  hal::InlineVector<hal::Fence*, hal::kMaximumAwaitedFences> awaited;
  collect(fences, awaited);
  const bool waits = timeout_milliseconds != 0 && call.may_defer();
  bool timed_out = false;
  Status status = hal::await(awaited, waits ? 0 : timeout_milliseconds, &timed_out);
  if (!timed_out) {
    HALYARD_TRY(to_result(std::move(status)));
    return 0;
  }
  if (!waits) return static_cast<int32_t>(Code::DEADLINE_EXCEEDED);
  vm::Invocation& invocation = call.invocation();
  const bool forever = timeout_milliseconds == hal::kWaitForever;
  const bool again = call.resumed();
  if (again && !forever && vm::Clock::now() >= *invocation.wait_deadline())
    return static_cast<int32_t>(Code::DEADLINE_EXCEEDED);
  if (forever && call.caller_blocks()) HALYARD_TRY(to_result(hal::check_reachable(awaited)));
  vm::Deadline deadline;
  if (!forever)
    deadline = again ? invocation.wait_deadline()
                     : vm::Clock::now() + std::chrono::milliseconds(timeout_milliseconds);
  invocation.wait_state() = {};
  const vm::Wakeup wakeup = call.wait(deadline);
  invocation.wait_state() = HALYARD_TRY(hal::watch(awaited, [wakeup] { wakeup.wake(); }));
  return 0;
}

}  // namespace halyard::modules::hal_functions
