// The host functions that drivers may call: statuses, log, trace.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/tracer.h"
#include "hal/trace/device_trace.h"
#include "halyard/driver.h"

namespace halyard::hal {

// Receives the log lines of drivers: HALYARD_LOG_*, text. Called on any thread; must not open drivers.
using DriverLog = std::function<void(int32_t severity, std::string_view line)>;

// The services, bound to the log of one driver.
class HostServices {
 public:
  // `tracer` may be null.
  HostServices(std::string driver, DriverLog log, Ref<Tracer> tracer);
  HostServices(const HostServices&) = delete;
  HostServices& operator=(const HostServices&) = delete;

  const halyard_host_services_t& table() const { return table_; }
  void log(int32_t severity, std::string_view line) const noexcept;
  Tracer* tracer() const { return tracer_.get(); }
  TracedWork& traced_work() const { return traced_work_; }

 private:
  std::string driver_;
  DriverLog log_;
  Ref<Tracer> tracer_;
  mutable TracedWork traced_work_;
  halyard_host_services_t table_;
};

}  // namespace halyard::hal
