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

Result<Ref<Buffer>> import_fd(Device& device, uint32_t memory_type, uint32_t usage, int32_t fd,
                              uint64_t external_size, uint64_t size) {
  if (!device.table().memory_import)
    return fail(Code::UNIMPLEMENTED, "device '{}' cannot import file descriptors (memory_import)",
                device.uri());
  const int own = ::fcntl(fd, F_DUPFD_CLOEXEC, 0);
  if (own < 0)
    return fail(Code::INVALID_ARGUMENT, "{} is no open file descriptor: {}", fd,
                std::generic_category().message(errno));
  halyard_memory_request_t request = {};
  request.struct_size = sizeof request;
  request.memory_type = memory_type;
  request.usage = usage;
  request.affinity = device.queues(kAnyQueue);
  request.size = size;
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
