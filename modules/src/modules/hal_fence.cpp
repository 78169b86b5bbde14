// hal.fence.*. Specified by hal-module.md, "Fence", and rulings 9 to 12.
#include "hal/queue/wait.h"
#include "modules/fence_wait.h"
#include "modules/hal_functions.h"

namespace halyard::modules::hal_functions {
namespace {

constexpr uint32_t kCodeBits = 31;  // used bits of a status number

}  // namespace

Result<Ref<hal::Fence>> fence_create(HalOptions& state, hal::Device& device, uint64_t) {
  return hal::Fence::create(Ref<hal::Device>::share(&device), state.memory.get());
}

Result<Ref<hal::Fence>> fence_join(HalOptions& state, uint64_t, Span<hal::Fence*> fences) {
  boost::container::small_vector<hal::Fence*, 8> joined;
  collect(fences, joined);
  return hal::Fence::join(joined, state.memory.get());
}

Result<int32_t> fence_query(hal::Fence& fence) { return static_cast<int32_t>(fence.query().code()); }

Result<> fence_signal(hal::Fence& fence) { return fence.signal(); }

Result<> fence_fail(hal::Fence& fence, uint32_t code) {
  fence.fail(
      Status(failure_code(code & kCodeBits), fmt::format("fence failed by the program with code {}", code)));
  return {};
}

Result<int32_t> fence_await(vm::CallContext& call, HalOptions& state, uint32_t timeout_milliseconds, uint64_t,
                            Span<hal::Fence*> fences) {
  if (fences.size() > hal::kMaxAwaitedFences)
    return fail(Code::OUT_OF_RANGE, "expected at most {} fences in one wait, found {}",
                hal::kMaxAwaitedFences, fences.size());
  boost::container::small_vector<hal::Fence*, hal::kMaxAwaitedFences> awaited;
  collect(fences, awaited);
  if (HALYARD_TRY(hal::are_reached(awaited))) return 0;
  constexpr auto kTimedOut = static_cast<int32_t>(Code::DEADLINE_EXCEEDED);
  vm::Invocation& invocation = call.invocation();
  const bool forever = timeout_milliseconds == hal::kWaitForever;
  const bool again = call.resumed();
  if (timeout_milliseconds == 0) return kTimedOut;
  if (again && !forever && vm::Clock::now() >= *invocation.wait_deadline()) return kTimedOut;
  if (forever && (call.caller_blocks() || !call.may_defer()) && HALYARD_TRY(hal::run_pending_work(awaited)))
    return 0;
  vm::Deadline deadline;
  if (!forever)
    deadline = again ? invocation.wait_deadline()
                     : vm::Clock::now() + std::chrono::milliseconds(timeout_milliseconds);
  if (HALYARD_TRY(wait_for(call, awaited, deadline, state.memory.get(), invocation.wait_state()))) return 0;
  return HALYARD_TRY(hal::are_reached(awaited)) ? 0 : kTimedOut;
}

}  // namespace halyard::modules::hal_functions
