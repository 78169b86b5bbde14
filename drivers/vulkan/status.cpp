// Statuses of the host, made through its services.
#include "status.h"

namespace halyard::vulkan {

HostStatus::HostStatus(const Services& services, const Error& error)
    : services_(&services),
      handle_(services.status_create(services.host, static_cast<halyard_status_code_t>(error.code),
                                     error.message.data(), error.message.size())) {}

HostStatus HostStatus::adopt(const Services& services, halyard_status_t handle) {
  HostStatus status;
  status.services_ = &services;
  status.handle_ = handle;
  return status;
}

namespace {

HostStatus make_status(const Services& services, Code code, std::string_view message) {
  return HostStatus::adopt(services,
                           services.status_create(services.host, static_cast<halyard_status_code_t>(code),
                                                  message.data(), message.size()));
}

}  // namespace

HostStatus out_of_memory(const Services& services) {
  return make_status(services, Code::RESOURCE_EXHAUSTED, "out of host memory");
}

HostStatus unexpected_exception(const Services& services, std::string_view what) {
  return make_status(services, Code::INTERNAL, what);
}

Result<> check_extensions(const halyard_extension_t* chain) {
  for (const halyard_extension_t* extension = chain; extension; extension = extension->next)
    if (extension->must_understand)
      return fail(Code::UNIMPLEMENTED, "extension of kind {} is not known to this driver, which knows none",
                  extension->kind);
  return {};
}

}  // namespace halyard::vulkan
