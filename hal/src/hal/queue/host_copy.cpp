// Uses queue_write to copy to host memory, and queue_update to copy from it; queue.cpp stages the bytes.
#include "hal/queue/host_copy.h"

#include "hal/queue/file.h"
#include "hal/queue/queue.h"

namespace halyard::hal {

Result<Ref<Fence>> begin_read(Buffer& source, uint64_t offset, std::span<uint8_t> target, Ref<Object> keep) {
  if (source.is_mappable()) {
    HALYARD_TRY(source.read(offset, target.data(), target.size()));
    return Ref<Fence>();
  }
  const Ref<File> file = File::from_memory(target, kWrite, std::move(keep));
  Ref<Fence> done = HALYARD_TRY(Fence::create(Ref<Device>::share(&source.device())));
  HALYARD_TRY(queue_write({source.device(), kAnyQueue, nullptr, done.get()}, source, offset, *file, 0,
                          target.size()));
  return done;
}

Result<Ref<Fence>> begin_write(std::span<const uint8_t> source, Buffer& target, uint64_t offset) {
  if (target.is_mappable()) {
    HALYARD_TRY(target.write(offset, source.data(), source.size()));
    return Ref<Fence>();
  }
  Ref<Fence> done = HALYARD_TRY(Fence::create(Ref<Device>::share(&target.device())));
  HALYARD_TRY(queue_update({target.device(), kAnyQueue, nullptr, done.get()}, source, target, offset));
  return done;
}

}  // namespace halyard::hal
