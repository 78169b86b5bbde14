// A written C file as several ones, which compilers can translate at the same time.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "aot/translate.h"

namespace halyard::aot {

// Moves the functions of bytecode from NAME.c, one of `files`, to NAME_1.c ... NAME_<count>.c, which have
// about the same size, and adds NAME_internal.h with what these files share. Files that get no function
// exist, too, so that projects know the names before. Nothing else changes: functions of the support are in
// each file that uses them.
void split_source(std::string_view name, uint32_t count, std::vector<File>& files);

}  // namespace halyard::aot
