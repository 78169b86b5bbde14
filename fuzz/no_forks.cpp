// For targets that link parts of the C ABI: no target forks, so no handle is another process's.
#include "made_here.h"

namespace halyard::c {

bool is_inherited(const Object*) { return false; }

}  // namespace halyard::c
