// Samples of interpreted functions: they find the hot ones, and move frames to compiled versions.
#pragma once

#include "vm/compile/heat.h"
#include "vm/decode/frame.h"

namespace halyard::vm {

struct Stack;

// When functions of the frame's module are compiled.
const Sampling& sampling_of(const Frame& frame);

// Takes a sample of the top frame, which is at `ip`, the target of a branch. Requests compilation of hot
// functions. Returns the word of the compiled version to continue at, or null to continue at `ip`.
const Word* sample(Stack& stack, const Word* ip);

}  // namespace halyard::vm
