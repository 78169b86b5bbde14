// Mutates a flat module file: its instructions, its counts, or where its parts lie, or replaces the whole
// module.
#pragma once

#include <cstddef>
#include <cstdint>

namespace halyard::fuzz {

// Like LLVMFuzzerCustomMutator.
size_t mutate_module(uint8_t* data, size_t size, size_t max_size, unsigned seed);

// Makes two parts of the file lie at one place: a vector at another's, or anything within a constant, which
// work of a device may write to.
size_t alias_parts(uint8_t* data, size_t size, size_t max_size, unsigned seed);

}  // namespace halyard::fuzz
