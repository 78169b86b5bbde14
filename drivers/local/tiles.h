// Tiles: the workgroups of one dispatch, taken a few at a time by whichever workers of the device have
// nothing else to do. The thread that has the dispatch takes tiles, too, and waits at the end for those who
// took the last ones; it waits for nobody who has not begun.
#pragma once

#include "commands.h"

namespace halyard::local {

// All workgroups of `count`, on `worker`, which prepare() gave for this dispatch, and on others like it. The
// failure is that of the first workgroup, in the order of Worker::run, that fails.
Result<> run_tiles(const halyard_command_dispatch_t& command, const Execution& execution,
                   const WorkgroupCount& count, Executable::Lease& worker);

}  // namespace halyard::local
