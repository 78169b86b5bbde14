// Executables of formats `embedded-elf-ARCH` and `system-elf-ARCH`: libraries of machine code. Specified by
// exec-cpu-library.md.
#pragma once

#include <string_view>

#include "executable.h"

namespace halyard::local {

extern const ExecutableKind kNativeExecutables;

}  // namespace halyard::local
