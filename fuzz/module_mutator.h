// Mutates a flat module file: its instructions or counts, or replaces the whole module.
#pragma once

#include <cstddef>
#include <cstdint>

namespace halyard::fuzz {

// Like LLVMFuzzerCustomMutator.
size_t mutate_module(uint8_t* data, size_t size, size_t max_size, unsigned seed);

}  // namespace halyard::fuzz
