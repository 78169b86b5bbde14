// Statuses, handles and memory in the C ABI.
#include "base/status.h"

#include "hal/device/device.h"
#include "handles.h"
#include "made_here.h"

using halyard::Object;
using halyard::Status;

namespace {

// Uses the status of the handle without taking the caller's reference.
template <typename Body>
auto borrowed(halyard_status_t handle, Body&& body) {
  Status status = Status::adopt(handle);
  auto answer = body(status);
  static_cast<void>(std::move(status).release());
  return answer;
}

}  // namespace

const char* halyard_version(void) { return HALYARD_VERSION; }

// The embedder's references to a device are its users (hal/device/device.h).
void halyard_retain(void* handle) {
  auto* const object = static_cast<Object*>(handle);
  if (auto* const device = halyard::cast<halyard::hal::Device>(object)) device->add_user();
  halyard::retain(object);
}
void halyard_release(void* handle) {
  auto* const object = static_cast<Object*>(handle);
  if (halyard::c::is_inherited(object)) return;
  if (auto* const device = halyard::cast<halyard::hal::Device>(object)) device->remove_user();
  halyard::release(object);
}
void halyard_free(void* memory) { std::free(memory); }

halyard_status_t halyard_status_create(halyard_status_code_t code, const char* message) {
  return halyard::guarded([&] {
    return halyard::to_result(
        Status(halyard::failure_code(static_cast<uint32_t>(code)), message ? message : ""));
  });
}

halyard_status_t halyard_status_retain(halyard_status_t status) {
  return borrowed(status, [](const Status& shared) { return Status(shared).release(); });
}

void halyard_status_release(halyard_status_t status) { static_cast<void>(Status::adopt(status)); }

halyard_status_code_t halyard_status_code(halyard_status_t status) {
  return borrowed(status,
                  [](const Status& shared) { return static_cast<halyard_status_code_t>(shared.code()); });
}

const char* halyard_status_message(halyard_status_t status) {
  return borrowed(status, [](const Status& shared) { return shared.message().c_str(); });
}

char* halyard_status_text(halyard_status_t status) {
  return borrowed(
      status, [](const Status& shared) { return halyard::c::text_or_null([&] { return shared.text(); }); });
}
