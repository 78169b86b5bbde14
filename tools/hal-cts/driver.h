// The driver under test: its library, loaded without a host. libhalyard.so decides whether a host would
// accept it.
#pragma once

#include <string>
#include <vector>

#include "common/failure.h"
#include "halyard/driver.h"

namespace halyard::cts {

using tools::Result;

// A device to test, in the form of its URI.
struct Target {
  std::string kind;
  std::string path;
  std::vector<std::pair<std::string, std::string>> options;

  std::string uri() const { return kind + "://" + path; }
};

// Loads the library, which stays loaded, and finds its entry function.
Result<halyard_driver_negotiate_fn> load_driver(const std::string& path);

halyard_driver_request_t plain_request();  // the request of a host of version 1

// Fails with the reason if libhalyard.so refuses this driver. Runs code of the driver.
Result<> host_verdict(const std::string& path);

// The exported symbols of the library, read from its file. INVALID_ARGUMENT: no such file.
Result<std::vector<std::string>> exported_symbols(const std::string& path);

}  // namespace halyard::cts
