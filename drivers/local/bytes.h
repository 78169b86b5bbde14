// Commands and operations that only move bytes. The host has checked ranges, alignments and counts; these
// functions check that the memory of an alloca has bytes.
#pragma once

#include <cstdint>

#include "execution.h"
#include "range_set.h"

namespace halyard::local {

Result<> fill(const halyard_range_t& target, uint32_t pattern, uint32_t pattern_size,
              const Execution& execution);
// Fills ranges of the command's target, which are whole patterns and count from its first byte.
Result<> fill_parts(const halyard_command_fill_t& command, std::span<const ByteRange> parts,
                    const Execution& execution);
Result<> update(const void* source, const halyard_range_t& target, const Execution& execution);
Result<> copy(const halyard_range_t& source, const halyard_range_t& target, const Execution& execution);

// OUT_OF_RANGE: the file is too short. UNAVAILABLE: the system's error.
Result<> read_file(const halyard_operation_transfer_file_t& transfer);
Result<> write_file(const halyard_operation_transfer_file_t& transfer);

}  // namespace halyard::local
