// Processor features, by the names that compiled modules query, and as the words that native executables
// receive. Specified by hal-semantics.md, "Device queries", and exec-cpu-library.md, section 10.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace halyard {

// Whether this processor has the feature and the operating system enables it for this process; no value if
// this architecture has no feature of that name.
std::optional<bool> cpu_feature(std::string_view name);

using ProcessorData = std::array<uint64_t, 8>;

// A bit for each feature that is present.
ProcessorData processor_data();

}  // namespace halyard
