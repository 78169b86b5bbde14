// File: bytes that queue work reads or writes, in host memory or in a file of the system. Specified by
// hal-module.md, "hal.ex.file.from_memory", "hal.device.queue.read" and "hal.device.queue.write".
// Thread-safe.
#pragma once

#include <cstdint>
#include <span>

#include "base/budget.h"
#include "base/object.h"
#include "base/status.h"
#include "hal/device/types.h"

namespace halyard::hal {

class File final : public ObjectOf<File> {
 public:
  static const ObjectType kType;  // "hal.file"

  // A file over bytes that `keep` owns.
  static Ref<File> from_memory(std::span<uint8_t> bytes, uint32_t access, Ref<Object> keep);
  // Also charges `memory` (may be null), including `kept` bytes owned by `keep`. RESOURCE_EXHAUSTED.
  static Result<Ref<File>> from_memory(std::span<uint8_t> bytes, uint32_t access, Ref<Object> keep,
                                       Budget* memory, uint64_t kept = 0);

  uint64_t length() const { return bytes_.size(); }
  uint32_t access() const { return access_; }  // kRead, kWrite
  std::span<uint8_t> bytes() const { return bytes_; }

  File(std::span<uint8_t> bytes, uint32_t access, Ref<Object> keep)
      : bytes_(bytes), access_(access), keep_(std::move(keep)) {}

 private:
  std::span<uint8_t> bytes_;
  uint32_t access_;
  Ref<Object> keep_;
  Charge charge_;
};

}  // namespace halyard::hal
