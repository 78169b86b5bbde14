// vmvx.pack and vmvx.unpack: a matrix to tiles, and back (exec-vmvx.md, 5.7).
#pragma once

#include "emit/loop_writer.h"

namespace halyard::jit {

// Write the body of a function with the parameters of the import.
void write_pack(LoopWriter& w);
void write_unpack(LoopWriter& w);

}  // namespace halyard::jit
