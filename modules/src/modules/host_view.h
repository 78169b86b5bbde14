// HostViews: views whose contents the host can read, for native functions that look at them. Where it cannot,
// they are copied by a device.
#pragma once

#include <span>

#include "base/budget.h"
#include "base/object.h"
#include "base/status.h"
#include "hal/device/device.h"
#include "hal/queue/fence.h"
#include "hal/queue/inline_vector.h"
#include "hal/view/buffer_view.h"
#include "vm/native/bind.h"

namespace halyard::modules {

class HostViews final : public ObjectOf<HostViews> {
 public:
  static const ObjectType kType;

  // The views as they were given, or with copies made by `device` in the place of their buffers. The call
  // waits for the copies, and defers where it can; then the result is null. To be called again with the same
  // views when the call resumes. INVALID_ARGUMENT: a shape that has no size; OUT_OF_RANGE: a buffer is
  // smaller than its view needs; PERMISSION_DENIED: a buffer that may not be copied; RESOURCE_EXHAUSTED:
  // copies pass the limit of `memory` (may be null).
  static Result<Ref<HostViews>> of(vm::CallContext& call, hal::Device& device, const Ref<Budget>& memory,
                                   std::span<hal::BufferView* const> views);

  const hal::BufferView& operator[](size_t index) const { return *views_[index]; }

 private:
  Result<> add(hal::Device& device, const Ref<Budget>& memory, hal::BufferView& view);
  Result<bool> are_there() const;
  hal::InlineVector<hal::Fence*, 2> fences() const;

  hal::InlineVector<Ref<hal::BufferView>, 2> views_;
  hal::InlineVector<Ref<hal::Fence>, 2> copied_;  // when the copies are done
  Ref<Object> watch_;
};

}  // namespace halyard::modules
