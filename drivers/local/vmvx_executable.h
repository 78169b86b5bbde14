// Executables of format `vmvx-bytecode-fb`: a VM module whose exports are kernels. Specified by exec-vmvx.md,
// sections 1 to 4.
#pragma once

#include "executable.h"

namespace halyard::local {

extern const ExecutableKind kVmvxExecutables;

}  // namespace halyard::local
