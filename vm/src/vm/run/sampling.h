// Samples interpreted functions, to find hot functions and to move frames to compiled versions.
#pragma once

#include "vm/compile/heat.h"
#include "vm/decode/frame.h"

namespace halyard::vm {

struct Stack;

// The sampling parameters of the frame's module.
const Sampling& sampling_of(const Frame& frame);

// Takes a sample of the top frame at `ip`, the target of a branch, and requests compilation of hot functions.
// Returns the word of the compiled version at which to continue, or null to continue at `ip`.
const Word* sample(Stack& stack, const Word* ip);

}  // namespace halyard::vm
