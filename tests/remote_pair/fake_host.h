// For tests that use the driver `remote` without a host: its services (statuses with a code and a text), and
// requests.
#pragma once

#include <atomic>
#include <string>

#include "halyard/driver.hpp"

namespace halyard::remote {

struct FakeStatus {
  std::atomic<int> references{1};
  halyard_status_code_t code;
  std::string message;
};

inline FakeStatus* fake(halyard_status_t status) { return reinterpret_cast<FakeStatus*>(status); }

inline halyard_host_services_t fake_services() {
  halyard_host_services_t services = {};
  services.struct_size = sizeof services;
  services.status_create = [](void*, halyard_status_code_t code, const char* text, size_t size) {
    return reinterpret_cast<halyard_status_t>(new FakeStatus{1, code, std::string(text, size)});
  };
  services.status_retain = [](void*, halyard_status_t status) {
    if (status) ++fake(status)->references;
    return status;
  };
  services.status_release = [](void*, halyard_status_t status) {
    if (status && --fake(status)->references == 0) delete fake(status);
  };
  services.status_code = [](void*, halyard_status_t status) {
    return status ? fake(status)->code : halyard_status_code_t{HALYARD_OK};
  };
  services.status_message = [](void*, halyard_status_t status) {
    return status ? fake(status)->message.c_str() : "";
  };
  services.status_note = [](void*, halyard_status_t status, const char*, size_t) { return status; };
  services.log = [](void*, int32_t, const char*, size_t) {};
  return services;
}

// A request for memory of this many bytes on any queue.
inline halyard_memory_request_t memory_request(uint64_t size) {
  halyard_memory_request_t request = {};
  request.struct_size = sizeof request;
  request.memory_type = HALYARD_MEMORY_OPTIMAL;
  request.size = size;
  request.affinity = UINT64_MAX;
  return request;
}

}  // namespace halyard::remote
