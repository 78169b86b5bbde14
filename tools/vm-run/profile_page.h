// --profile=FILE.html: the page of the module with the times and the memory of a call.
#pragma once

#include <cstdint>
#include <string>

#include "common/profile_report.h"
#include "common/program.h"

namespace halyard::tools {

// Writes the page of the main module. The profiled time began at `begin_ns` and ended at `end_ns`
// (CLOCK_MONOTONIC). UNIMPLEMENTED: the module is a native library.
Result<> write_profile_page(const Flags& flags, const Program& program, const std::string& function,
                            const ProfileReport& report, uint64_t begin_ns, uint64_t end_ns);

}  // namespace halyard::tools
