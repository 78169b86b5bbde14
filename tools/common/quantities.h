// Sizes and times as people type them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/failure.h"

namespace halyard::tools {

// "4096", "64KiB", "512MiB", "2GiB" to bytes; KB, MB and GB are powers of 1000. INVALID_ARGUMENT names the
// flag.
Result<uint64_t> parse_size(std::string_view flag, std::string_view text);

// "64 bytes", "1 MiB", "1.5 GiB".
std::string format_size(uint64_t bytes);

// "1.5s", "200ms", "10us", "2min" to nanoseconds; a bare number is seconds. INVALID_ARGUMENT names the flag.
Result<uint64_t> parse_duration(std::string_view flag, std::string_view text);

}  // namespace halyard::tools
