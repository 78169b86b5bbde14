// Changes a flat module file where it matters: instructions, counts, or all of it by a new one.
#pragma once

#include <cstddef>
#include <cstdint>

namespace halyard::fuzz {

// As LLVMFuzzerCustomMutator.
size_t mutate_module(uint8_t* data, size_t size, size_t max_size, unsigned seed);

}  // namespace halyard::fuzz
