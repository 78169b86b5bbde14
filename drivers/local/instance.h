// Instance: the kinds of devices, and the objects that all devices share: the host's services and a cache of
// small objects.
#pragma once

#include <vector>

#include "node_cache.h"
#include "status.h"

namespace halyard::local {

struct Instance {
  explicit Instance(const Services& services) : host(services) {}
  const Services& services() const { return host; }
  // See driver.h.
  std::vector<halyard_device_info_t> devices() const;

  const Services& host;
  NodeCache nodes;
};

// The kinds of devices, as users name them in a URI.
struct DeviceKind {
  const char* name;
  const char* description;
  bool has_workers;
};
inline constexpr DeviceKind kDeviceKinds[] = {
    {"local-sync", "CPU, work is done at once on the calling thread", false},
    {"local-task", "CPU, work is done by worker threads", true},
};

}  // namespace halyard::local
