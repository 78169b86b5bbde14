// Devices are asked for an allocation before they are used again: a lost device refuses everything.
#include "hal/device/buffer.h"
#include "server/shared.h"

namespace halyard::device_server {

namespace {

bool is_lost(hal::Device& device) {
  const Result<Ref<hal::Buffer>> probe = hal::Buffer::allocate(device, hal::kAnyQueue, 0, 0, 0);
  return !probe && probe.error().code() != Code::RESOURCE_EXHAUSTED;
}

}  // namespace

Devices::Devices(Ref<hal::DriverRegistry> registry, std::vector<std::string> uris)
    : registry_(std::move(registry)), uris_(std::move(uris)), opened_(uris_.size()) {}

Result<Ref<hal::Device>> Devices::open(std::string_view name) {
  const std::lock_guard lock(mutex_);
  for (size_t i = 0; i < uris_.size(); ++i) {
    const std::string_view uri = uris_[i];
    const std::string_view place = uri.substr(0, uri.find('?'));
    const std::string_view kind = place.substr(0, place.find("://"));
    if (!name.empty() && name != uri && name != place && name != kind) continue;
    if (opened_[i] && is_lost(*opened_[i])) opened_[i] = nullptr;
    if (!opened_[i]) opened_[i] = HALYARD_TRY(registry_->open_device(uri));
    return opened_[i];
  }
  std::string known;
  for (const std::string& uri : uris_)
    known += (known.empty() ? "'" : ", '") + uri.substr(0, uri.find('?')) + "'";
  return fail(Code::NOT_FOUND, "the server offers no device '{}'; it offers {}", name, known);
}

}  // namespace halyard::device_server
