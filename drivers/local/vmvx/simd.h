// What the files *_simd.cpp add to a table of kernels for one instruction set, by Highway's number for it.
#pragma once

#include <cstdint>

#include "kernels.h"

namespace halyard::local::vmvx {

void add_mmt4d_simd(int64_t target, Kernels& kernels);

// bf16 products by the instructions of AVX512_BF16, which are in no set of Highway's: after the above, where
// the processor has them. `target` is AVX3_DL.
void add_mmt4d_bf16(int64_t target, Kernels& kernels);

}  // namespace halyard::local::vmvx
