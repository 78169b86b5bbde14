// --untrusted: for modules of unknown origin. Only portable code runs, no library of the command line is
// loaded, and memory and time are limited. SECURITY.md says what this protects.
#pragma once

#include <chrono>
#include <cstdint>

#include "common/failure.h"
#include "common/flags.h"

namespace halyard::tools {

// The limits of --untrusted where no flag gives one.
inline constexpr uint64_t kUntrustedMemory = uint64_t{1} << 30;  // bytes
inline constexpr std::chrono::seconds kUntrustedTime{60};

// PERMISSION_DENIED: another flag asks for something that --untrusted refuses.
Result<> check_untrusted(const Flags& flags);

// --max_memory, in bytes, and --timeout, or their defaults; 0: no limit.
Result<uint64_t> memory_limit(const Flags& flags);
Result<std::chrono::nanoseconds> time_limit(const Flags& flags);

}  // namespace halyard::tools
