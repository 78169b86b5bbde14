// HostViews: makes the contents of views readable on the host, for native functions. A device copies the
// views that the host cannot read.
#pragma once

#include <boost/container/small_vector.hpp>
#include <span>

#include "base/budget.h"
#include "base/object.h"
#include "base/status.h"
#include "hal/device/device.h"
#include "hal/queue/fence.h"
#include "hal/view/buffer_view.h"
#include "vm/native/bind.h"

namespace halyard::modules {

class HostViews final : public ObjectOf<HostViews> {
 public:
  static const ObjectType kType;

  // Returns the given views, or views of copies made by `device`. The call waits for the copies. A yieldable
  // call defers, and the result is then null: call again with the same views when it resumes.
  // INVALID_ARGUMENT: a shape without a valid size. OUT_OF_RANGE: a buffer smaller than its view.
  // PERMISSION_DENIED: a buffer that may not be copied. RESOURCE_EXHAUSTED: copies exceed the limit of
  // `memory` (may be null).
  static Result<Ref<HostViews>> of(vm::CallContext& call, hal::Device& device, const Ref<Budget>& memory,
                                   std::span<hal::BufferView* const> views);

  const hal::BufferView& operator[](size_t index) const { return *views_[index]; }

 private:
  Result<> add(hal::Device& device, const Ref<Budget>& memory, hal::BufferView& view);
  Result<bool> are_there() const;
  boost::container::small_vector<hal::Fence*, 2> fences() const;

  boost::container::small_vector<Ref<hal::BufferView>, 2> views_;
  boost::container::small_vector<Ref<hal::Fence>, 2> copied_;  // reached when the copies are complete
  Ref<Object> watch_;
};

}  // namespace halyard::modules
