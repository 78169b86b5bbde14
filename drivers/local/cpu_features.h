// What the processor can do, by the names that compiled modules ask for. Specified by hal-semantics.md,
// "Device queries".
#pragma once

#include <optional>
#include <string_view>

namespace halyard::local {

// Whether this processor has the feature and the operating system enables it; nothing for a name that is not
// one of this architecture's.
std::optional<bool> cpu_feature(std::string_view name);

}  // namespace halyard::local
