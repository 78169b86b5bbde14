// Imports memory through the driver, and checks the result.
#include "hal/device/external_memory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "hal/device/pooled.h"

namespace halyard::hal {

Result<Ref<Allocation>> import_external(Device& device, const halyard_memory_request_t& request,
                                        const halyard_external_memory_t& external, uint32_t access,
                                        Budget* memory, std::string_view what) {
  halyard_memory_info_t info = {};
  info.struct_size = sizeof info;
  Ref<Allocation> allocation = make_pooled<Allocation>(device, Ref<Device>::share(&device));
  Result<> imported = allocation->charge_to(memory, 0);
  bool is_taken = false;
  if (imported) {
    imported = to_result(Status::adopt(
        device.table().memory_import(device.handle(), &request, &external, &allocation->memory, &info)));
    is_taken = imported.has_value();
    if (!is_taken) allocation->memory = nullptr;
  }
  if (!is_taken && external.fd >= 0) ::close(external.fd);
  if (imported) imported = device.check_memory(request, allocation->memory, info, "memory_import");
  if (!imported)
    return std::unexpected(
        std::move(imported).error().note(fmt::format("while importing {} bytes {}", request.size, what)));
  allocation->memory_type = info.memory_type & ~static_cast<uint32_t>(HALYARD_MEMORY_OPTIMAL);
  allocation->usage = info.usage;
  allocation->access = access != 0 ? access & kAccessAll : static_cast<uint32_t>(kAccessAll);
  allocation->is_constant = (allocation->access & kWrite) == 0;
  allocation->size = request.size;
  allocation->origin_affinity = request.affinity;
  return allocation;
}

Result<Ref<Buffer>> import_host(Device& device, uint64_t affinity, uint32_t memory_type, uint32_t usage,
                                uint32_t access, void* pointer, uint64_t size, Ref<Object> keep,
                                Budget* memory, const Bytes* file) {
  const uint64_t alignment = device.properties().import_alignment;
  if (!device.table().memory_import || alignment == 0)
    return fail(Code::UNIMPLEMENTED, "device '{}' cannot import host memory (memory_import)", device.uri());
  if (reinterpret_cast<uintptr_t>(pointer) % alignment != 0)
    return fail(Code::OUT_OF_RANGE,
                "expected host memory at a multiple of {} bytes, found {}; import aligned memory or copy it",
                alignment, fmt::ptr(pointer));
  const halyard_memory_request_t request = device.memory_request(affinity, memory_type, usage, size);
  halyard_external_memory_t external = {};
  external.struct_size = sizeof external;
  external.kind = HALYARD_EXTERNAL_HOST_ALLOCATION;
  external.pointer = pointer;
  external.fd = -1;
  external.access = access & (kRead | kWrite | HALYARD_MAP_PRIVATE);
  external.size = size;
  halyard_file_version_t version = {};
  if (file && file->file()) {
    const FileVersion& known = *file->file();
    version = {sizeof version, 0, known.device, known.inode, known.size, known.modified_ns, known.changed_ns};
    external.file = &version;
    external.file_offset = static_cast<uint64_t>(static_cast<const uint8_t*>(pointer) - file->data());
  }
  Ref<Allocation> allocation =
      HALYARD_TRY(import_external(device, request, external, access, memory, "of host memory"));
  allocation->keep = std::move(keep);
  return Buffer::create(std::move(allocation));
}

Result<Ref<Buffer>> import_fd(Device& device, uint32_t memory_type, uint32_t usage, int32_t fd,
                              uint64_t external_size, uint64_t size) {
  if (!device.table().memory_import)
    return fail(Code::UNIMPLEMENTED, "device '{}' cannot import file descriptors (memory_import)",
                device.uri());
  const int own = ::fcntl(fd, F_DUPFD_CLOEXEC, 0);
  if (own < 0)
    return fail(Code::INVALID_ARGUMENT, "{} is no open file descriptor: {}", fd,
                std::generic_category().message(errno));
  const halyard_memory_request_t request = device.memory_request(kAnyQueue, memory_type, usage, size);
  halyard_external_memory_t external = {};
  external.struct_size = sizeof external;
  external.kind = HALYARD_EXTERNAL_OPAQUE_FD;
  external.fd = own;
  external.access = kRead | kWrite;
  external.size = external_size;
  return Buffer::create(
      HALYARD_TRY(import_external(device, request, external, kAccessAll, nullptr, "of a file descriptor")));
}

}  // namespace halyard::hal
