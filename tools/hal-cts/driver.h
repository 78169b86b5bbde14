// The driver under test: its library, loaded without a host in between. Whether a host would take it is asked
// of libhalyard.so.
#pragma once

#include <string>
#include <vector>

#include "common/failure.h"
#include "halyard/driver.h"

namespace halyard::cts {

using tools::Result;

// A device to test, as in its URI.
struct Target {
  std::string kind;
  std::string path;
  std::vector<std::pair<std::string, std::string>> options;

  std::string uri() const { return kind + "://" + path; }
};

// Maps the library, for good, and finds its function.
Result<halyard_driver_negotiate_fn> load_driver(const std::string& path);

halyard_driver_request_t plain_request();  // of a host of version 1

// What libhalyard.so says to this driver: nothing where it takes it, else why it does not. Runs code of the
// driver.
Result<> host_verdict(const std::string& path);

// The symbols that the library defines for others, from its file. INVALID_ARGUMENT: no such file.
Result<std::vector<std::string>> exported_symbols(const std::string& path);

}  // namespace halyard::cts
