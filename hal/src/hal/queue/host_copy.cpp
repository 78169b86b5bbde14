// Uses queue_write to copy to host memory, and queue_update to copy from it; queue.cpp stages the bytes.
#include "hal/queue/host_copy.h"

#include <cstring>
#include <vector>

#include "hal/queue/file.h"
#include "hal/queue/queue.h"
#include "hal/queue/wait.h"

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

namespace {

struct Staging final : ObjectOf<Staging> {
  static const ObjectType kType;
  explicit Staging(size_t size) : bytes(size) {}
  std::vector<uint8_t> bytes;
};
const ObjectType Staging::kType = object_type<Staging>("staging");

// `done` may be null.
Result<> finish(const Ref<Fence>& done) {
  Fence* const fences[] = {done.get()};
  return to_result(await(fences, kWaitForever));
}

}  // namespace

// The queue copies into memory of its own, because a failed wait may leave work that still writes.
Result<> read_now(Buffer& source, uint64_t offset, std::span<uint8_t> target) {
  if (source.is_mappable() || target.empty()) return source.read(offset, target.data(), target.size());
  HALYARD_TRY(source.check_range(offset, target.size()));
  const Ref<Staging> staging = make<Staging>(target.size());
  const Ref<Fence> done = HALYARD_TRY(begin_read(source, offset, staging->bytes, staging));
  HALYARD_TRY(finish(done));
  std::memcpy(target.data(), staging->bytes.data(), target.size());
  return {};
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

Result<> write_now(std::span<const uint8_t> source, Buffer& target, uint64_t offset) {
  return finish(HALYARD_TRY(begin_write(source, target, offset)));
}

}  // namespace halyard::hal
