// How often this program has taken a mutex, on any thread; condition variables take theirs without being
// counted. Not under a sanitizer, which has functions of its own.
#pragma once

#include <cstdint>

namespace warm {

int64_t locks_taken();  // so far

}  // namespace warm
