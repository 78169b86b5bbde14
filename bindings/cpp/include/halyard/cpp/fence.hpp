// Fences. Asynchronous functions wait for fences and signal fences (halyard/fence.h).
#ifndef HALYARD_CPP_FENCE_HPP_
#define HALYARD_CPP_FENCE_HPP_

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>

#include "halyard/cpp/instance.hpp"
#include "halyard/cpp/value.hpp"
#include "halyard/fence.h"

namespace halyard::inline HALYARD_CPP_FORM {

// A set of timepoints. An empty Fence counts as reached. Any thread, at any time.
class Fence : public Object {
 public:
  using Object::Object;

  // Creates a fence that is not reached.
  static Result<Fence> create(const Device& device) {
    halyard_object_t made = nullptr;
    return detail::finish(halyard_fence_create(device.get(), &made), [&] { return Fence(adopt, made); });
  }
  // Creates a fence that is reached when all of these are reached.
  static Result<Fence> join(std::span<const Fence> fences) {
    halyard_object_t made = nullptr;
    return detail::finish(halyard_fence_join(raw(fences), fences.size(), &made),
                          [&] { return Fence(adopt, made); });
  }

  // Does not block. If the fence has failed, returns its failure.
  Result<bool> is_reached() const {
    uint32_t reached = 1;
    const halyard_status_t status = get() ? halyard_fence_query(get(), &reached) : nullptr;
    return detail::finish(status, [&] { return reached != 0; });
  }
  // INVALID_ARGUMENT: the fence is already reached. If the fence has failed, returns its failure.
  Result<void> signal() const { return detail::finish(halyard_fence_signal(get())); }
  // Fails the fence; everything that waits for it fails with this error.
  Result<void> fail(const Error& error) const {
    return detail::finish(halyard_fence_fail(get(), error.status()));
  }
  // Blocks. DEADLINE_EXCEEDED: timeout. If the fence has failed, returns its failure.
  Result<void> wait(std::chrono::milliseconds limit = std::chrono::milliseconds::max()) const {
    return detail::finish(get() ? halyard_fence_wait(get(), milliseconds_of(limit)) : nullptr);
  }
  // Blocks until all are reached or one has failed; at most 32 fences.
  static Result<void> wait(std::span<const Fence> fences,
                           std::chrono::milliseconds limit = std::chrono::milliseconds::max()) {
    return detail::finish(halyard_fences_wait(raw(fences), fences.size(), milliseconds_of(limit)));
  }

  // Calls `reached` once, with null or with the failure, which is borrowed: on the thread that signals or
  // fails the fence, or before this function returns (halyard_fence_on_reached). It must be quick and must
  // not throw.
  template <std::invocable<halyard_status_t> F>
  Result<void> on_reached(F reached) const {
    auto held = std::make_unique<F>(std::move(reached));
    const halyard_fence_fn call = [](void* user, halyard_status_t status) noexcept {
      const std::unique_ptr<F> mine(static_cast<F*>(user));
      (*mine)(status);
    };
    if (!get()) {
      call(held.release(), nullptr);
      return Result<void>();
    }
    const halyard_status_t status = halyard_fence_on_reached(get(), call, held.get());
    if (!status) static_cast<void>(held.release());
    return detail::finish(status);
  }

 private:
  static const halyard_object_t* raw(std::span<const Fence> fences) noexcept {
    static_assert(sizeof(Fence) == sizeof(halyard_object_t) && std::is_standard_layout_v<Fence>);
    return reinterpret_cast<const halyard_object_t*>(fences.data());
  }
  static uint32_t milliseconds_of(std::chrono::milliseconds limit) noexcept {
    if (limit.count() >= int64_t{UINT32_MAX}) return UINT32_MAX;
    return limit.count() < 0 ? 0 : static_cast<uint32_t>(limit.count());
  }
};

}  // namespace halyard::inline HALYARD_CPP_FORM

#endif  // HALYARD_CPP_FENCE_HPP_
