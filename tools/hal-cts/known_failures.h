// The file of --expect-failures: cases that are known to fail, one per line, "NAME" or "DEVICE NAME". Both
// may contain '*' and '?'. Empty lines and lines that begin with # are skipped.
#pragma once

#include <string>
#include <vector>

#include "driver.h"

namespace halyard::cts {

struct KnownFailure {
  std::string device;  // empty: any
  std::string name;
};

// INVALID_ARGUMENT: a line matches no case.
Result<std::vector<KnownFailure>> read_known_failures(const std::string& path);

bool is_known(const std::vector<KnownFailure>& known, const std::string& device, const char* name);

}  // namespace halyard::cts
