// For targets that link parts of the C ABI. No target forks, so no handle belongs to another process.
#include "made_here.h"

namespace halyard::c {

bool is_inherited(const Object*) { return false; }

}  // namespace halyard::c
