// Copies are ordinary queue work: the call waits for their fences as a program's own await does.
#include "modules/host_view.h"

#include <utility>

#include "hal/queue/queue.h"
#include "modules/fence_wait.h"

namespace halyard::modules {

const ObjectType HostViews::kType = object_type<HostViews>("host_views");

Result<> HostViews::add(hal::Device& device, const Ref<Budget>& memory, hal::BufferView& view) {
  const uint64_t size = HALYARD_TRY(view.byte_count());
  hal::Buffer& buffer = view.buffer();
  if (buffer.is_mappable() || size == 0) {
    views_.push_back(Ref<hal::BufferView>::share(&view));
    return {};
  }
  Ref<hal::Buffer> copy = HALYARD_TRY(hal::Buffer::allocate(
      device, hal::kAnyQueue, HALYARD_MEMORY_HOST_LOCAL | HALYARD_MEMORY_DEVICE_VISIBLE,
      HALYARD_USAGE_TRANSFER | HALYARD_USAGE_MAPPING_SCOPED, size, memory.get(), HALYARD_OWNER_WRITES_ALL));
  Ref<hal::Fence> copied = HALYARD_TRY(hal::Fence::create(Ref<hal::Device>::share(&device)));
  HALYARD_TRY(hal::queue_copy({device, hal::kAnyQueue, nullptr, copied.get(), memory.get()}, buffer, 0, *copy,
                              0, size));
  views_.push_back(
      HALYARD_TRY(hal::BufferView::create(std::move(copy), view.shape(), view.type(), view.encoding())));
  copied_.push_back(std::move(copied));
  return {};
}

Result<bool> HostViews::are_there() const {
  for (const Ref<hal::Fence>& fence : copied_) {
    Status status = fence->query();
    if (status.code() == Code::DEFERRED) return false;
    HALYARD_TRY(to_result(std::move(status)));
  }
  return true;
}

boost::container::small_vector<hal::Fence*, 2> HostViews::fences() const {
  boost::container::small_vector<hal::Fence*, 2> fences;
  for (const Ref<hal::Fence>& fence : copied_) fences.push_back(fence.get());
  return fences;
}

Result<Ref<HostViews>> HostViews::of(vm::CallContext& call, hal::Device& device, const Ref<Budget>& memory,
                                     std::span<hal::BufferView* const> views) {
  vm::Invocation& invocation = call.invocation();
  Ref<HostViews> made;
  if (call.resumed()) {
    const Ref<Object> kept = std::exchange(invocation.wait_state(), {});
    made = Ref<HostViews>::share(cast<HostViews>(kept.get()));
  }
  if (!made) {
    made = make<HostViews>();
    for (hal::BufferView* view : views) HALYARD_TRY(made->add(device, memory, *view));
  }
  while (!HALYARD_TRY(made->are_there())) {
    if (HALYARD_TRY(wait_for(call, made->fences(), {}, nullptr, made->watch_))) {
      invocation.wait_state() = std::move(made);
      return Ref<HostViews>();
    }
  }
  return made;
}

}  // namespace halyard::modules
