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

Result<int32_t> fence_await(uint32_t timeout_milliseconds, uint64_t, Span<hal::Fence*> fences) {
  if (fences.size() > hal::kMaximumAwaitedFences)
    return fail(Code::OUT_OF_RANGE, "count {} of fences > {}", fences.size(), hal::kMaximumAwaitedFences);
  hal::InlineVector<hal::Fence*, hal::kMaximumAwaitedFences> awaited;
  collect(fences, awaited);
  bool timed_out = false;
  Status status = hal::await(awaited, timeout_milliseconds, &timed_out);
  if (timed_out) return static_cast<int32_t>(Code::DEADLINE_EXCEEDED);
  HALYARD_TRY(to_result(std::move(status)));
  return 0;
}

}  // namespace halyard::modules::hal_functions
