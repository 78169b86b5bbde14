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

Devices::Devices(Registries make_registry, std::vector<std::string> uris)
    : make_registry_(std::move(make_registry)),
      registry_(make_registry_(nullptr)),
      uris_(std::move(uris)),
      opened_(uris_.size()) {}

Result<size_t> Devices::find(std::string_view name) const {
  for (size_t i = 0; i < uris_.size(); ++i) {
    const std::string_view uri = uris_[i];
    const std::string_view place = uri.substr(0, uri.find('?'));
    const std::string_view kind = place.substr(0, place.find("://"));
    if (name.empty() || name == uri || name == place || name == kind) return i;
  }
  std::string known;
  for (const std::string& uri : uris_)
    known += (known.empty() ? "'" : ", '") + uri.substr(0, uri.find('?')) + "'";
  return fail(Code::NOT_FOUND, "the server offers no device '{}'; it offers {}", name, known);
}

Result<Ref<hal::Device>> Devices::open(std::string_view name) {
  const size_t place = HALYARD_TRY(find(name));
  const std::lock_guard lock(mutex_);
  Ref<hal::Device>& opened = opened_[place];
  if (opened && is_lost(*opened)) opened = nullptr;
  if (!opened) opened = HALYARD_TRY(registry_->open_device(uris_[place]));
  return opened;
}

Result<Ref<hal::Device>> Devices::open_traced(std::string_view name, Ref<Tracer> tracer) {
  const size_t place = HALYARD_TRY(find(name));
  return make_registry_(std::move(tracer))->open_device(uris_[place]);
}

}  // namespace halyard::device_server
