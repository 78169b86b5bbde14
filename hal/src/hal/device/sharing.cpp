// Handles for memory of another driver.
#include "hal/device/sharing.h"

namespace halyard::hal {

Sharing sharing(const Device& owner, const Device& user) {
  if (&owner.library() == &user.library()) return Sharing::same_driver;
  const bool imports = user.table().memory_import && user.properties().import_alignment != 0;
  const bool tells = owner.table().memory_export || owner.table().memory_map;
  return imports && tells ? Sharing::host_memory : Sharing::none;
}

namespace {

std::unexpected<Status> not_shared(const Device& user, const Allocation& allocation, const std::string& why) {
  return fail(
      Code::INVALID_ARGUMENT,
      "buffer belongs to device '{}', which shares no memory with '{}', where it is used: {}; queue the "
      "work there, or copy the bytes to a buffer of this device",
      allocation.device().uri(), user.uri(), why);
}

// The address of the bytes in this process: either exported by the owner, or a persistent mapping.
Result<void*> host_pointer(const Device& user, Allocation& allocation) {
  Allocation::Shared& shared = allocation.shared;
  if (shared.pointer) return shared.pointer;
  Device& owner = allocation.device();
  const halyard_driver_table_t& table = owner.table();
  if (table.memory_export) {
    halyard_external_memory_t external = {};
    external.struct_size = sizeof external;
    Status status = Status::adopt(
        table.memory_export(owner.handle(), allocation.memory, HALYARD_EXTERNAL_HOST_ALLOCATION, &external));
    if (status.ok() && external.pointer && external.size >= allocation.size)
      return shared.pointer = external.pointer;
    if (status.code() == Code::FAILED_PRECONDITION) return std::unexpected(std::move(status));
  }
  constexpr uint32_t kPlainMemory = HALYARD_MEMORY_HOST_VISIBLE | HALYARD_MEMORY_HOST_COHERENT;
  if ((allocation.memory_type & kPlainMemory) != kPlainMemory || !table.memory_map || !table.memory_unmap)
    return not_shared(user, allocation, "the host cannot see the bytes");
  void* pointer = nullptr;
  if (Status status =
          Status::adopt(table.memory_map(owner.handle(), allocation.memory,
                                         HALYARD_MAP_READ | HALYARD_MAP_WRITE, 0, allocation.size, &pointer)))
    return std::unexpected(std::move(status).note("while mapping a buffer for another device"));
  HALYARD_TRY(owner.check_given(pointer, "memory_map"));
  shared.mapped = true;
  return shared.pointer = pointer;
}

Result<halyard_driver_memory_t> import(Device& user, const Allocation& allocation, void* pointer) {
  const uint64_t alignment = user.properties().import_alignment;
  if (reinterpret_cast<uintptr_t>(pointer) % alignment != 0)
    return not_shared(user, allocation,
                      fmt::format("it requires imported memory to be aligned to {} bytes", alignment));
  halyard_memory_request_t request = {};
  request.struct_size = sizeof request;
  request.memory_type = HALYARD_MEMORY_OPTIMAL;
  request.usage = allocation.usage;
  request.affinity = user.queues(kAnyQueue);
  request.size = allocation.size;
  halyard_external_memory_t external = {};
  external.struct_size = sizeof external;
  external.kind = HALYARD_EXTERNAL_HOST_ALLOCATION;
  external.pointer = pointer;
  external.fd = -1;
  external.access = allocation.access & (kRead | kWrite);
  external.size = allocation.size;
  halyard_memory_info_t info = {};
  info.struct_size = sizeof info;
  halyard_driver_memory_t memory = nullptr;
  if (Status status =
          Status::adopt(user.table().memory_import(user.handle(), &request, &external, &memory, &info)))
    return std::unexpected(
        std::move(status).note(fmt::format("while importing {} bytes of device '{}' into device '{}'",
                                           allocation.size, allocation.device().uri(), user.uri())));
  if (Result<> checked = user.check_memory(request, memory, info, "memory_import"); !checked) {
    if (memory) user.table().memory_free(user.handle(), memory);
    return std::unexpected(std::move(checked).error());
  }
  return memory;
}

}  // namespace

Result<halyard_driver_memory_t> memory_on(Device& user, Allocation& allocation) {
  if (&allocation.device().library() == &user.library()) return allocation.memory;
  if (sharing(allocation.device(), user) == Sharing::none)
    return not_shared(user, allocation, "one of the two drivers has no way to");
  Allocation::Shared& shared = allocation.shared;
  const std::lock_guard lock(shared.mutex);
  for (const Allocation::Import& import : shared.imports)
    if (&import.device->library() == &user.library()) return import.memory;
  if (shared.ended)
    return fail(
        Code::FAILED_PRECONDITION,
        "buffer of device '{}' is used on device '{}' after its dealloca; deallocate it when all work "
        "that uses it is done",
        allocation.device().uri(), user.uri());
  void* const pointer = HALYARD_TRY(host_pointer(user, allocation));
  shared.imports.reserve(shared.imports.size() + 1);  // before the handle exists
  const halyard_driver_memory_t memory = HALYARD_TRY(import(user, allocation, pointer));
  shared.imports.push_back({Ref<Device>::share(&user), memory});
  return memory;
}

bool expect_sharing(Allocation& allocation) {
  const std::lock_guard lock(allocation.shared.mutex);
  if (!allocation.shared.ended) allocation.shared.expected = true;
  return !allocation.shared.ended;
}

bool end_sharing(Allocation& allocation) {
  const std::lock_guard lock(allocation.shared.mutex);
  if (allocation.shared.expected) return false;
  allocation.shared.ended = true;
  return allocation.shared.imports.empty() && allocation.mappings == 0;
}

void resume_sharing(Allocation& allocation) noexcept {
  const std::lock_guard lock(allocation.shared.mutex);
  allocation.shared.ended = false;
}

}  // namespace halyard::hal
