// The number of mutex locks of this program, on all threads; locks inside condition variables do not count.
// Not under a sanitizer, which replaces these functions.
#pragma once

#include <cstdint>

namespace warm {

int64_t locks_taken();  // so far

}  // namespace warm
