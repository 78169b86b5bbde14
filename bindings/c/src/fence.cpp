// Fences (halyard/fence.h).
#include "halyard/fence.h"

#include "base/tracer.h"
#include "hal/queue/fence.h"
#include "hal/queue/wait.h"
#include "handles.h"

using namespace halyard;
using namespace halyard::c;

namespace {

// Converts an array of fences, which may contain nulls.
Result<std::vector<hal::Fence*>> fences_of(const halyard_object_t* fences, size_t count) {
  HALYARD_TRY(check_array(fences, count, "fences", "fences"));
  std::vector<hal::Fence*> all;
  for (size_t i = 0; i < count; ++i)
    all.push_back(fences[i] ? HALYARD_TRY(checked<hal::Fence>(fences[i])) : nullptr);
  return all;
}

Result<> wait_for(std::span<hal::Fence* const> fences, uint32_t timeout_ms) {
  const auto first = std::ranges::find_if(fences, [](hal::Fence* fence) { return fence != nullptr; });
  if (first == fences.end()) return {};
  const hal::DeviceTrace* trace = (*first)->device().trace();
  const TraceScope waiting(trace ? &trace->tracer() : nullptr, TraceCategory::wait, "waiting");
  return to_result(hal::await(fences, timeout_ms));
}

}  // namespace

halyard_status_t halyard_fence_create(halyard_device_t device, halyard_object_t* out) {
  return guarded([&]() -> Result<> {
    HALYARD_TRY(check_output(out, "out"));
    if (!device)
      return fail(Code::INVALID_ARGUMENT,
                  "a fence needs a device; open one, such as local-sync, and give it to the program");
    *out = give<halyard_object_t>(
        HALYARD_TRY(hal::Fence::create(Ref<hal::Device>::share(HALYARD_TRY(checked<hal::Device>(device))))));
    return {};
  });
}

halyard_status_t halyard_fence_wait(halyard_object_t fence, uint32_t timeout_ms) {
  return guarded([&]() -> Result<> {
    hal::Fence* const awaited = HALYARD_TRY(checked<hal::Fence>(fence));
    return wait_for({&awaited, 1}, timeout_ms);
  });
}

halyard_status_t halyard_fences_wait(const halyard_object_t* fences, size_t count, uint32_t timeout_ms) {
  return guarded([&]() -> Result<> {
    if (count > hal::kMaxAwaitedFences)
      return fail(Code::INVALID_ARGUMENT,
                  "a wait for {} fences exceeds the limit of {}; join the fences first", count,
                  hal::kMaxAwaitedFences);
    return wait_for(HALYARD_TRY(fences_of(fences, count)), timeout_ms);
  });
}

halyard_status_t halyard_fence_query(halyard_object_t fence, uint32_t* reached) {
  return guarded([&]() -> Result<> {
    HALYARD_TRY(check_output(reached, "reached"));
    Status state = HALYARD_TRY(checked<hal::Fence>(fence))->query();
    const bool is_pending = state.code() == Code::DEFERRED;
    if (!state.ok() && !is_pending) return to_result(std::move(state));
    *reached = is_pending ? 0 : 1;
    return {};
  });
}

halyard_status_t halyard_fence_signal(halyard_object_t fence) {
  return guarded([&]() -> Result<> { return HALYARD_TRY(checked<hal::Fence>(fence))->signal(); });
}

halyard_status_t halyard_fence_fail(halyard_object_t fence, halyard_status_t failure) {
  return guarded([&]() -> Result<> {
    hal::Fence* const failed = HALYARD_TRY(checked<hal::Fence>(fence));
    if (!failure)
      return fail(Code::INVALID_ARGUMENT,
                  "a fence cannot fail with success; pass a failure, or use halyard_fence_signal");
    failed->fail(Status::adopt(halyard_status_retain(failure)));
    return {};
  });
}

halyard_status_t halyard_fence_join(const halyard_object_t* fences, size_t count, halyard_object_t* out) {
  return guarded([&]() -> Result<> {
    HALYARD_TRY(check_output(out, "out"));
    *out = give<halyard_object_t>(HALYARD_TRY(hal::Fence::join(HALYARD_TRY(fences_of(fences, count)))));
    return {};
  });
}

halyard_status_t halyard_fence_on_reached(halyard_object_t fence, halyard_fence_fn reached, void* user) {
  return guarded([&]() -> Result<> {
    const hal::Fence* const awaited = HALYARD_TRY(checked<hal::Fence>(fence));
    if (!reached) return fail(Code::INVALID_ARGUMENT, "expected a function to call as `reached`, found null");
    return hal::when_reached(awaited, [reached, user](Status status) {
      const halyard_status_t handle = std::move(status).release();
      reached(user, handle);
      halyard_status_release(handle);
    });
  });
}
