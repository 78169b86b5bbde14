// Parses and formats sizes and times.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace halyard::tools {

// Converts "4096", "64KiB", "512MiB", "2GiB" to bytes; must be above 0. KB, MB and GB are powers of 1000.
std::optional<uint64_t> parse_size(std::string_view text);

// "64 bytes", "1 MiB", "1.5 GiB".
std::string format_size(uint64_t bytes);

// Parses "1.5s", "200ms", "10us", "2min"; must be above 0. A number without a unit is in seconds.
std::optional<std::chrono::nanoseconds> parse_duration(std::string_view text);

}  // namespace halyard::tools
