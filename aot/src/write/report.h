// What a translation decided, for people: a table and a picture.
#pragma once

#include <string>

#include "plan/program.h"

namespace halyard::aot {

std::string report_of(const Program& program, uint64_t constant_bytes, uint64_t stack_bytes);
// The arena of each function as SVG: time from left to right, addresses from bottom to top.
std::string picture_of(const Program& program);

}  // namespace halyard::aot
