// A driver function table inside this library. A memory handle points to a header, and the bytes follow the
// header.
#include "hal/device/host_memory.h"

#include <new>
#include <utility>

#include "base/block_cache.h"
#include "base/c_boundary.h"

namespace halyard::hal {

namespace {

constexpr char kName[] = "host";
constexpr uint64_t kHeader = BlockCache::kAlignment;
constexpr uint32_t kAddedType =
    HALYARD_MEMORY_DEVICE_LOCAL | HALYARD_MEMORY_HOST_VISIBLE | HALYARD_MEMORY_HOST_COHERENT;
constexpr uint32_t kAddedUsage =
    HALYARD_USAGE_MAPPING_SCOPED | HALYARD_USAGE_MAPPING_PERSISTENT | HALYARD_USAGE_MAPPING_RANDOM;

struct HostDevice {
  BlockCache blocks;
};
struct HostMemory {
  uint8_t* bytes;
  uint64_t block_size;  // bytes, including the header
  uint64_t owner;
};
static_assert(sizeof(HostMemory) <= kHeader);

// Each driver defines its own handle types; these are the types of this driver.
HostDevice& device_of(halyard_driver_device_t handle) { return *reinterpret_cast<HostDevice*>(handle); }
HostMemory& memory_of(halyard_driver_memory_t handle) { return *reinterpret_cast<HostMemory*>(handle); }

halyard_status_t refuse(const char* what) noexcept {
  return guarded([&]() -> Result<> {
    return fail(
        Code::UNIMPLEMENTED,
        "memory of the host has no {}; give the program buffers of a device that does its work, such as "
        "local-sync",
        what);
  });
}

// For an import it allocates only a header.
halyard_status_t give_memory(HostDevice& device, const halyard_memory_request_t& request, uint8_t* imported,
                             halyard_driver_memory_t* memory, halyard_memory_info_t* info) noexcept {
  return guarded([&]() -> Result<> {
    const uint64_t size = kHeader + (imported ? 0 : request.size);
    uint8_t* const block = device.blocks.take(size, request.owner);
    if (!block) return fail(Code::RESOURCE_EXHAUSTED, "no memory for {} bytes", request.size);
    *memory = reinterpret_cast<halyard_driver_memory_t>(
        new (block) HostMemory{imported ? imported : block + kHeader, size, request.owner});
    info->memory_type = request.memory_type | kAddedType;
    info->usage = request.usage | kAddedUsage;
    info->size = request.size;
    return {};
  });
}

halyard_status_t device_open(halyard_driver_instance_t, const halyard_device_open_args_t*,
                             halyard_driver_device_t* device) {
  return guarded([&]() -> Result<> {
    *device = reinterpret_cast<halyard_driver_device_t>(new HostDevice);
    return {};
  });
}

void device_close(halyard_driver_device_t device) { delete &device_of(device); }

halyard_status_t device_properties(halyard_driver_device_t, halyard_device_properties_t* properties) {
  properties->capabilities =
      HALYARD_DEVICE_RUNS_IN_CALLER | HALYARD_DEVICE_UNIFIED_MEMORY | HALYARD_DEVICE_HOST_COHERENT;
  properties->queue_count = 1;
  // The mandatory operations. There are no command lists to execute.
  properties->operations = uint64_t{1} << HALYARD_OPERATION_BARRIER | uint64_t{1}
                                                                          << HALYARD_OPERATION_EXECUTE;
  properties->memory_alignment = BlockCache::kAlignment;
  properties->maximum_allocation = BlockCache::kMaxBlock - kHeader;
  properties->import_alignment = 1;
  return nullptr;
}

halyard_status_t device_query_i64(halyard_driver_device_t, halyard_text_t, halyard_text_t, int32_t* known,
                                  int64_t*) {
  *known = 0;
  return nullptr;
}

halyard_status_t device_trim(halyard_driver_device_t device) {
  device_of(device).blocks.trim();
  return nullptr;
}

halyard_status_t memory_allocate(halyard_driver_device_t device, const halyard_memory_request_t* request,
                                 halyard_driver_memory_t* memory, halyard_memory_info_t* info) {
  return give_memory(device_of(device), *request, nullptr, memory, info);
}

void memory_free(halyard_driver_device_t device, halyard_driver_memory_t handle) {
  HostMemory& memory = memory_of(handle);
  device_of(device).blocks.give(reinterpret_cast<uint8_t*>(&memory), memory.block_size, memory.owner);
}

halyard_status_t memory_map(halyard_driver_device_t, halyard_driver_memory_t memory, uint32_t,
                            uint64_t offset, uint64_t, void** pointer) {
  *pointer = memory_of(memory).bytes + offset;
  return nullptr;
}

void memory_unmap(halyard_driver_device_t, halyard_driver_memory_t) {}

halyard_status_t memory_import(halyard_driver_device_t device, const halyard_memory_request_t* request,
                               const halyard_external_memory_t* external, halyard_driver_memory_t* memory,
                               halyard_memory_info_t* info) {
  if (external->kind != HALYARD_EXTERNAL_HOST_ALLOCATION || !external->pointer)
    return refuse("use for external memory that is no host allocation");
  return give_memory(device_of(device), *request, static_cast<uint8_t*>(external->pointer), memory, info);
}

halyard_status_t semaphore_create(halyard_driver_device_t, uint64_t, halyard_driver_semaphore_t*) {
  return refuse("semaphores");
}

void executable_grade(halyard_driver_device_t, halyard_text_t, const void*, uint64_t,
                      halyard_executable_grade_t* grade) {
  grade->grade = HALYARD_GRADE_NO;
  constexpr char kReason[] = "memory of the host runs nothing";
  static_assert(sizeof kReason <= sizeof grade->reason);
  std::char_traits<char>::copy(grade->reason, kReason, sizeof kReason);
}

halyard_status_t executable_create(halyard_driver_device_t, const halyard_executable_args_t*,
                                   halyard_driver_executable_t*) {
  return refuse("executables");
}

halyard_status_t command_list_create(halyard_driver_device_t, const halyard_command_list_args_t*,
                                     halyard_driver_command_list_t*) {
  return refuse("command buffers");
}

// Submissions have no waits and no signals.
halyard_status_t queue_submit(halyard_driver_device_t, const halyard_submission_t* submission) {
  if (submission->operation->kind != HALYARD_OPERATION_BARRIER) return refuse("queue");
  submission->completed(submission->completed_user, nullptr);
  return nullptr;
}

// The functions that are not set take handles that this driver never creates.
constexpr halyard_driver_table_t kTable = {
    .struct_size = sizeof(halyard_driver_table_t),
    .device_open = device_open,
    .device_close = device_close,
    .device_properties = device_properties,
    .device_query_i64 = device_query_i64,
    .device_trim = device_trim,
    .memory_allocate = memory_allocate,
    .memory_free = memory_free,
    .memory_map = memory_map,
    .memory_unmap = memory_unmap,
    .memory_import = memory_import,
    .semaphore_create = semaphore_create,
    .executable_grade = executable_grade,
    .executable_create = executable_create,
    .command_list_create = command_list_create,
    .queue_submit = queue_submit,
};

}  // namespace

Result<Ref<Device>> open_host_memory() {
  return Device::open(DriverLibrary::built_in(kName, kTable), kName, "", {});
}

}  // namespace halyard::hal
