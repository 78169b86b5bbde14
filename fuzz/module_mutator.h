// Mutates a flat module file: its instructions, its counts, or the positions of its parts; or replaces the
// whole module.
#pragma once

#include <cstddef>
#include <cstdint>

namespace halyard::fuzz {

// Like LLVMFuzzerCustomMutator.
size_t mutate_module(uint8_t* data, size_t size, size_t max_size, unsigned seed);

// Makes two parts of the file overlap: moves a vector to the position of another, or any part into a
// constant, to which work of a device may write.
size_t alias_parts(uint8_t* data, size_t size, size_t max_size, unsigned seed);

}  // namespace halyard::fuzz
