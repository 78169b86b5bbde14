// The three steps of a transfer; the first and the last may be empty.
#include "hal/queue/transfer.h"

#include <memory>
#include <new>
#include <span>

#include "base/c_boundary.h"
#include "hal/driver/driver_memory.h"
#include "hal/queue/bridge.h"
#include "hal/queue/wait.h"

namespace halyard::hal {

namespace {

constexpr uint64_t kHeld = 2 * driver_memory::kSubscription;

// The host's step: copies the bytes of the source, as they are now, to the target.
Result<> pass_on(const QueuePoint& point, const Buffer& source, uint64_t source_offset, Buffer& target,
                 uint64_t target_offset, uint64_t length) {
  const std::unique_ptr<uint8_t[]> bytes(new (std::nothrow) uint8_t[length]);
  if (!bytes)
    return fail(Code::RESOURCE_EXHAUSTED, "no memory to copy {} bytes from device '{}' to device '{}'",
                length, source.device().uri(), target.device().uri());
  HALYARD_TRY(source.read(source_offset, bytes.get(), length));
  if (!target.is_mappable())
    return queue_update(point, std::span(bytes.get(), length), target, target_offset);
  HALYARD_TRY(target.write(target_offset, bytes.get(), length));
  make_signals(point.signal, point.device, HostSignals::all, {});
  return {};
}

}  // namespace

Result<> transfer(const QueuePoint& point, const Copy& copy) {
  const auto [source, source_offset, target, target_offset, length] = copy;
  Ref<Buffer> readable = Ref<Buffer>::share(&source);
  uint64_t readable_offset = source_offset;
  Ref<Fence> wait = Ref<Fence>::share(point.wait);
  Charge charge;  // for the staging memory (up to two copies) and its wait
  HALYARD_TRY(charge.start(point.memory,
                           saturating_add(2 * std::min(block_bytes(length), UINT64_MAX / 2), kHeld),
                           "a copy through the host"));
  if (!source.is_mappable()) {
    Device& owner = source.device();
    readable = HALYARD_TRY(Buffer::allocate(owner, kAnyQueue,
                                            HALYARD_MEMORY_HOST_LOCAL | HALYARD_MEMORY_DEVICE_VISIBLE,
                                            HALYARD_USAGE_TRANSFER | HALYARD_USAGE_MAPPING_SCOPED, length,
                                            point.memory, HALYARD_OWNER_WRITES_ALL));
    Ref<Fence> copied = HALYARD_TRY(Fence::create(Ref<Device>::share(&owner), point.memory));
    HALYARD_TRY(copy_on_device({owner, kAnyQueue, point.wait, copied.get(), point.memory},
                               {source, source_offset, *readable, 0, length}));
    readable_offset = 0;
    wait = std::move(copied);
  }
  return when_reached(
      wait.get(), [readable, readable_offset, to = Ref<Buffer>::share(&target), target_offset, length,
                   device = Ref<Device>::share(&target.device()), signal = Ref<Fence>::share(point.signal),
                   charge = std::move(charge)](Status status) {
        if (status.ok())
          status = outcome_of([&] {
            return pass_on({*device, kAnyQueue, nullptr, signal.get()}, *readable, readable_offset, *to,
                           target_offset, length);
          });
        if (!status.ok()) make_signals(signal.get(), *device, HostSignals::all, status);
      });
}

}  // namespace halyard::hal
