// How long a device takes to be opened, to answer, and to copy bytes from and to the host: for a remote
// device, the cost of the way to it.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "common/failure.h"

namespace halyard::tools {

struct Timing {
  static constexpr uint64_t kBytes = uint64_t{16} << 20;  // of a copy

  std::string uri;
  std::chrono::nanoseconds opening{};
  std::chrono::nanoseconds answer{};     // to a query; the least of many
  std::chrono::nanoseconds to_device{};  // of kBytes; the least of some
  std::chrono::nanoseconds from_device{};
};

// Opens the device once more. Its driver has been tried before.
Result<Timing> time_device(const Instance& instance, const std::string& uri);

}  // namespace halyard::tools
