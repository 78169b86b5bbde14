// The host services for the driver under test. Statuses are counted, so that leaks, double releases and uses
// after release are reported [R52].
#pragma once

#include <atomic>
#include <mutex>
#include <set>
#include <string>
#include <string_view>

#include "check.h"
#include "halyard/driver.h"

namespace halyard::cts {

class Services {
 public:
  explicit Services(Checks& checks);
  Services(const Services&) = delete;
  ~Services();

  // Followed by bytes that the driver does not know, as in a newer host's table.
  const halyard_host_services_t& table() const { return grown_.table; }
  // Creates a reference that the driver will own.
  halyard_status_t give(halyard_status_code_t code, std::string_view message);
  // Takes ownership of a reference from the driver.
  Outcome take(halyard_status_t status);
  // Reports statuses that still have references. Call it after the driver has been shut down.
  void check_none_left();

 private:
  struct Status {  // freed with the services, so that uses after release are detected
    std::atomic<int> references = 1;
    halyard_status_code_t code = HALYARD_UNKNOWN;
    std::string message;
  };
  struct Grown {
    halyard_host_services_t table;
    uint64_t later[8];
  };

  Status* alive(halyard_status_t status, const char* used_by);
  void release(halyard_status_t status, const char* released_by);

  Checks& checks_;
  Grown grown_ = {};
  std::mutex mutex_;
  std::set<Status*> live_;
  std::set<Status*> dead_;
};

}  // namespace halyard::cts
