// Instance: the objects that all devices share: the host's services, Vulkan, and a pool of work nodes.
#pragma once

#include <memory>
#include <vector>

#include "halyard/driver/pool.hpp"
#include "halyard/driver/trace.hpp"
#include "status.h"
#include "vulkan_instance.h"

namespace halyard::vulkan {

struct Work;

struct Instance {
  explicit Instance(const Services& host);
  ~Instance();
  const Services& services() const { return host_; }
  // See driver.h.
  std::vector<halyard_device_info_t> devices() const;

  const kit::TraceSpanFunction trace_span;  // null: the host does not record a trace
  std::unique_ptr<VulkanInstance> vulkan;
  kit::Pool<Work> works;  // in the instance, because a node may be freed after its device has been closed

 private:
  const Services& host_;
};

}  // namespace halyard::vulkan
