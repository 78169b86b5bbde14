// Devices are asked for an allocation before they are used again: a lost device refuses everything. Nothing
// is opened, asked or closed under the lock, because a driver may take long, or hang.
#include <fmt/format.h>

#include <algorithm>

#include "hal/device/buffer.h"
#include "server/shared.h"

namespace halyard::device_server {

namespace {

constexpr size_t kUnused = 4;  // devices that stay open without users

bool is_lost(hal::Device& device) {
  const Result<Ref<hal::Buffer>> probe = hal::Buffer::allocate(device, hal::kAnyQueue, 0, 0, 0);
  return !probe && probe.error().code() != Code::RESOURCE_EXHAUSTED;
}

}  // namespace

bool is_local(std::string_view uri) {
  const std::string_view kind = uri.substr(0, std::min(uri.find("://"), uri.find('?')));
  return kind == "local-sync" || kind == "local-task";
}

std::string with_option(std::string uri, std::string_view key, std::string_view value) {
  const size_t options = std::min(uri.find('?'), uri.size());
  for (const char before : {'?', '&'})
    if (uri.find(fmt::format("{}{}=", before, key), options) != std::string::npos) return uri;
  return uri + fmt::format("{}{}={}", options == uri.size() ? '?' : '&', key, value);
}

Devices::Devices(Registries make_registry, std::vector<std::string> uris)
    : make_registry_(std::move(make_registry)), registry_(make_registry_(nullptr)), uris_(std::move(uris)) {}

Ref<hal::Device> Devices::use(size_t offered, const std::string& client) {
  const std::lock_guard lock(mutex_);
  for (auto it = opened_.begin(); it != opened_.end(); ++it) {
    if (it->offered != offered || it->client != client) continue;
    ++it->users;
    opened_.splice(opened_.begin(), opened_, it);
    return it->device;
  }
  return {};
}

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

Result<Ref<hal::Device>> Devices::open(std::string_view name, const std::string& client) {
  const size_t offered = HALYARD_TRY(find(name));
  if (Ref<hal::Device> known = use(offered, client)) {
    if (!is_lost(*known)) return known;
    // Its other users keep it until they close it; nobody gets it from now on.
    const std::lock_guard lock(mutex_);
    for (Entry& entry : opened_)
      if (entry.device.get() == known.get()) entry.client.clear();
  }
  Ref<hal::Device> device = HALYARD_TRY(registry_->open_device(uris_[offered]));
  const std::lock_guard lock(mutex_);
  opened_.push_front({offered, client, device, 1});
  return device;
}

Result<Ref<hal::Device>> Devices::open_traced(std::string_view name, Ref<Tracer> tracer, bool counts) {
  std::string uri = uris_[HALYARD_TRY(find(name))];
  if (counts && is_local(uri)) uri = with_option(std::move(uri), "profile", "1");
  return make_registry_(std::move(tracer))->open_device(uri);
}

Result<> Devices::try_all() {
  for (const std::string& uri : uris_)
    if (const auto opened = registry_->open_device(uri); !opened)
      return fail(opened.error().code(), "cannot offer device '{}': {}", uri, opened.error().text());
  return {};
}

void Devices::close(const hal::Device& device) {
  std::list<Entry> dropped;
  Ref<hal::Device> unused;
  {
    const std::lock_guard lock(mutex_);
    size_t without_users = 0;
    for (auto it = opened_.begin(); it != opened_.end();) {
      const auto next = std::next(it);
      if (it->device.get() == &device && it->users > 0 && --it->users == 0) unused = it->device;
      if (it->users == 0 && (it->client.empty() || ++without_users > kUnused))
        dropped.splice(dropped.end(), opened_, it);
      it = next;
    }
  }
  // Memory that the client has freed goes back to the machine.
  if (unused) (void)unused->trim();
}

size_t Devices::open_devices() const {
  const std::lock_guard lock(mutex_);
  return opened_.size();
}

}  // namespace halyard::device_server
