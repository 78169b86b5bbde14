// The number of mutex locks of this program, on all threads, except locks inside condition variables. Not
// available under a sanitizer, which replaces these functions.
#pragma once

#include <cstdint>

namespace warm {

int64_t locks_taken();  // total

}  // namespace warm
