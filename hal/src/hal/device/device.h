// Device: one logical device of a driver. Allocator: the memory of a device. Specified by hal-semantics.md,
// "Objects" and "Device queries". Thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/budget.h"
#include "base/live_objects.h"
#include "base/loop.h"
#include "base/node_pool.h"
#include "base/object.h"
#include "base/origin.h"
#include "base/status.h"
#include "base/work_scope.h"
#include "hal/device/types.h"
#include "hal/driver/driver_library.h"
#include "hal/driver/inherited_table.h"
#include "hal/trace/device_trace.h"
#include "hal/trace/memory_log.h"

namespace halyard::hal {

class Device;

// hal.allocator: represents a device's memory; a reference to it keeps the device alive. A device has at most
// one allocator at a time.
class Allocator final : public Object {
 public:
  static const ObjectType kType;  // "hal.allocator"
  Device& device() const { return device_; }

 private:
  friend class Device;
  explicit Allocator(Device& device) : Object(&kType, Part()), device_(device) {}
  static void destroy(Object* object);

  Device& device_;
};

class Device final : public ObjectOf<Device>, Step {
 public:
  static const ObjectType kType;  // "hal.device"

  // `loop` closes the device if the last reference is dropped in a callback of the device's driver; null: the
  // device creates a loop. `while_open` is released after the device has been closed and has released its
  // library and loop.
  static Result<Ref<Device>> open(Ref<DriverLibrary> library, std::string kind, std::string path,
                                  const std::vector<std::pair<std::string, std::string>>& options,
                                  bool counts_objects = false, Ref<Loop> loop = {},
                                  std::shared_ptr<void> while_open = {});

  const std::string& id() const { return kind_; }  // "local-sync": matched by the patterns of hal.device.id
  const std::string& path() const { return path_; }
  const std::string& uri() const { return uri_; }  // "vulkan://0"
  const halyard_device_properties_t& properties() const { return properties_; }
  const DriverLibrary& library() const { return *library_; }
  const halyard_driver_table_t& table() const {
    return is_left_behind() ? inherited_table() : library_->table();
  }
  // Whether the device was opened before fork(), this process is the child, and the device's work needs
  // threads.
  bool is_left_behind() const {
    return origin_.is_inherited() && !(properties_.capabilities & HALYARD_DEVICE_RUNS_IN_CALLER);
  }
  halyard_driver_device_t handle() const { return handle_; }
  Ref<Allocator> allocator();  // always the same object
  // INTERNAL: a driver function succeeded but returned null.
  Result<> check_given(const void* given, const char* function) const;
  // Also checks that memory has at least the requested size, type and usage [R70].
  Result<> check_memory(const halyard_memory_request_t& request, halyard_driver_memory_t memory,
                        const halyard_memory_info_t& info, const char* function) const;
  bool has_operation(uint32_t kind) const { return kind < 64 && (properties_.operations >> kind & 1); }
  // The affinity restricted to this device's queues, never 0. 0, -1 and a mask without queues of this device
  // mean any queue, so that a program made for more queues runs on fewer.
  uint64_t queues(uint64_t affinity) const;
  // The pool for short-lived objects of the device's work (hal/device/pooled.h).
  NodePool& nodes() const { return nodes_; }
  DeviceTrace* trace() const { return trace_.get(); }   // null: no trace
  MemoryLog* memory_log() const { return log_.get(); }  // null: neither traced nor counted
  LiveObjects* live() const { return live_.get(); }     // null: objects are not counted

  // A user is an owner that opened the device and holds it. After the last user is gone, nobody else can stop
  // the work of destroyed programs, so the device stops it.
  void add_user();
  void remove_user();
  // Called for a destroyed program with work in flight: stops the work as soon as the device has no users. A
  // device that never had a user lets the work continue.
  void stop_without_users(Ref<WorkScope> scope);

  // Implements hal.device.query.i64: {known, value}. An unknown query is not an error.
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

  // A request for memory of this device. Type 0 means OPTIMAL, usage 0 means DEFAULT.
  halyard_memory_request_t memory_request(uint64_t affinity, uint32_t memory_type, uint32_t usage,
                                          uint64_t size) const;

  Device(Ref<DriverLibrary> library, std::string kind, std::string path, Ref<Loop> loop);
  ~Device();

 private:
  static void destroy(Object* object);

  std::shared_ptr<void> while_open_;  // first, so that it is destroyed last
  Origin origin_;
  Ref<Loop> loop_;
  Ref<DriverLibrary> library_;
  std::string kind_;
  std::string path_;
  std::string uri_ = kind_ + "://" + path_;
  halyard_driver_device_t handle_ = nullptr;
  halyard_device_properties_t properties_ = {};
  Allocator allocator_{*this};
  mutable NodePool nodes_;
  std::unique_ptr<MemoryLog> log_;
  std::unique_ptr<DeviceTrace> trace_;
  std::unique_ptr<LiveObjects> live_;
  std::mutex users_mutex_;  // guards the members below
  uint32_t users_ = 0;
  bool had_users_ = false;
  std::vector<Ref<WorkScope>> left_behind_;  // work scopes of destroyed programs
};

}  // namespace halyard::hal
