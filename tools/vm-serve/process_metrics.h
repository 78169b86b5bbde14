// Metrics of the process and of the build, with the names of Prometheus' client libraries.
#pragma once

#include <string>
#include <string_view>

namespace halyard::tools::serve {

// process_cpu_seconds_total, process_resident_memory_bytes and others. Leaves out what /proc does not show.
std::string process_metrics();

// halyard_build_info{version="0.2.0",compiler="...",arch="..."} 1
std::string build_metrics(std::string_view version);

}  // namespace halyard::tools::serve
