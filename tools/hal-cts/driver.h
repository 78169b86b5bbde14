// The driver under test: its library, loaded without a host in between, and what it negotiates. Whether a
// host would take it is asked of libhalyard.so (host_verdict).
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

class Driver {
 public:
  // Maps the library and finds its function. The library is never unmapped.
  static Result<Driver> load(const std::string& path);

  const std::string& path() const { return path_; }
  halyard_driver_negotiate_fn negotiate() const { return negotiate_; }
  // What it gives a host of this version; null entries where it has no such function. FAILED: it refuses.
  Result<halyard_driver_table_t> table() const;

 private:
  std::string path_;
  halyard_driver_negotiate_fn negotiate_ = nullptr;
};

halyard_driver_request_t plain_request();

// What libhalyard.so says to this driver: nothing where it takes it, else why it does not. Runs code of the
// driver.
Result<> host_verdict(const std::string& path);

// The symbols that the library defines for others, from its file. INVALID_ARGUMENT: no such file.
Result<std::vector<std::string>> exported_symbols(const std::string& path);

}  // namespace halyard::cts
