// Device: one logical device of a driver, and Allocator: its memory. Specified by hal-semantics.md, "Objects" and "Device
// queries". Thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/object.h"
#include "base/status.h"
#include "hal/driver_library.h"
#include "hal/types.h"

namespace halyard::hal {

class Buffer;
class Device;

// hal.allocator: identity of a device's memory. Lives in its device; a ref to it keeps the device alive.
class Allocator final : public Object {
 public:
  static const ObjectType kType;
  explicit Allocator(Device* device) : Object(&kType), device_(device) {}
  ~Allocator() = default;
  Device& device() const { return *device_; }

 private:
  friend class Device;
  Device* device_;
};

class Device final : public ObjectOf<Device> {
 public:
  static const ObjectType kType;  // "hal.device"

  static Result<Ref<Device>> open(Ref<DriverLibrary> library, std::string kind, std::string path,
                                  const std::vector<std::pair<std::string, std::string>>& options);

  const std::string& id() const { return kind_; }  // "local-sync": what hal.device.id patterns match
  const std::string& path() const { return path_; }
  const std::string& uri() const { return uri_; }  // "vulkan://0"
  const halyard_device_properties_t& properties() const { return properties_; }
  const DriverLibrary& library() const { return *library_; }
  const halyard_driver_table_t& table() const { return library_->table(); }
  halyard_driver_device_t handle() const { return handle_; }
  Ref<Allocator> allocator();  // the same object every time
  bool has_operation(uint32_t kind) const { return kind < 64 && (properties_.operations >> kind & 1); }
  // The affinity within this device's queues: 0 and -1 mean any.
  uint64_t queues(uint64_t affinity) const;

  // As hal.device.query.i64: {known, value}; unknown is not an error.
  struct Answer {
    bool known = false;
    int64_t value = 0;
  };
  Answer query_i64(std::string_view category, std::string_view key) const;
  struct Grade {
    uint32_t grade = HALYARD_GRADE_NO;
    std::string reason;
  };
  Grade grade_executable(std::string_view format, const void* data, uint64_t size) const;
  Result<> trim();
  Result<halyard_memory_statistics_t> statistics() const;

  // Allocation on the host's timeline (hal.allocator.allocate). Type 0 -> OPTIMAL, usage 0 -> DEFAULT.
  Result<Ref<Buffer>> allocate(uint64_t affinity, uint32_t memory_type, uint32_t usage, uint64_t size);
  // A buffer over host bytes without a copy; `keep` (may be null) is kept alive by the buffer. OUT_OF_RANGE: alignment;
  // UNIMPLEMENTED: the driver cannot import.
  Result<Ref<Buffer>> import_host(uint64_t affinity, uint32_t memory_type, uint32_t usage, uint32_t access, void* pointer,
                                  uint64_t size, Ref<Object> keep);

  Device(Ref<DriverLibrary> library, std::string kind, std::string path);
  ~Device();

 private:
  Ref<DriverLibrary> library_;
  std::string kind_;
  std::string path_;
  std::string uri_ = kind_ + "://" + path_;
  halyard_driver_device_t handle_ = nullptr;
  halyard_device_properties_t properties_ = {};
  Allocator allocator_;
};

// Whether `id` matches `pattern`: '*' any characters, '?' one; more than 16 wildcards never match.
bool matches_pattern(std::string_view pattern, std::string_view id);

}  // namespace halyard::hal
