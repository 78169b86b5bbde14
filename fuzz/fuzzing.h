// Shared by the fuzz targets: reporting of findings, and libFuzzer's interface.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

extern "C" {
// Implemented by a target.
int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed);
// Implemented by libFuzzer: mutates bytes in place, returns the new size.
size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);
}

namespace halyard::fuzz {

// Aborts like a sanitizer; libFuzzer saves the input.
[[noreturn]] inline void finding(std::string_view what) {
  std::fprintf(stderr, "FINDING: %.*s\n", static_cast<int>(what.size()), what.data());
  std::abort();
}

}  // namespace halyard::fuzz
