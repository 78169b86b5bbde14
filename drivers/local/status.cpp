// Statuses of the host, made through its services.
#include "status.h"

namespace halyard::local {

namespace {

HostStatus make_status(const Services& services, Code code, std::string_view message) {
  return HostStatus::adopt(services,
                           services.status_create(services.host, static_cast<halyard_status_code_t>(code),
                                                  message.data(), message.size()));
}

}  // namespace

HostStatus::HostStatus(const Services& services, const Status& status) : services_(&services) {
  if (status.ok()) return;
  // The host's status carries the code; its message is our text without the code in front.
  const std::string text = status.text();
  std::string_view message = text;
  message.remove_prefix(std::string_view(name(status.code())).size());
  if (message.starts_with("; ")) message.remove_prefix(2);
  handle_ = make_status(services, status.code(), message).release();
}

HostStatus HostStatus::adopt(const Services& services, halyard_status_t handle) {
  HostStatus status;
  status.services_ = &services;
  status.handle_ = handle;
  return status;
}

HostStatus to_host(const Services& services, const Result<>& result) {
  return result ? HostStatus() : HostStatus(services, result.error());
}

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

}  // namespace halyard::local
