// The references need no list, because they are never released.
#include "common/exit.h"

#include <atomic>

#include "halyard/halyard.h"

namespace halyard::tools {

namespace {
std::atomic<bool> keeps_objects = false;
}

void keep_until_exit(void* handle) {
  halyard_retain(handle);
  keeps_objects = true;
}

bool skips_exit_handlers() { return keeps_objects; }

}  // namespace halyard::tools
