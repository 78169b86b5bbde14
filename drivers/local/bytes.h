// Commands and operations that only move bytes. Ranges, alignments and counts have been checked by the host;
// whether the bytes of queue allocations are there is checked here.
#pragma once

#include <cstdint>

#include "execution.h"

namespace halyard::local {

Result<> fill(const halyard_range_t& target, uint32_t pattern, uint32_t pattern_size,
              const Execution& execution);
Result<> update(const void* source, const halyard_range_t& target, const Execution& execution);
Result<> copy(const halyard_range_t& source, const halyard_range_t& target, const Execution& execution);

// OUT_OF_RANGE: the file ends too early. UNAVAILABLE: the system's reason.
Result<> read_file(const halyard_operation_transfer_file_t& transfer);
Result<> write_file(const halyard_operation_transfer_file_t& transfer);

}  // namespace halyard::local
