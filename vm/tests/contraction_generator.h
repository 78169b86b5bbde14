// Generates functions with contractions: nests of any number of loops over rows and terms, coalesced or not,
// in any order, over elements of any type, with strides, windows, guards, fills before and epilogues after
// them. All shapes that the compiler knows, and shapes that differ from them in a detail.
#pragma once

#include <string>

#include "choices.h"

namespace halyard::vm::test {

// Assembly text of a module "m" with the exports "f0", "f1" and so on. Each takes three buffers and three i64
// and returns one i64, which follows from the contents of all buffers of its own. The numbers decide how many
// iterations loops have, where their accesses begin, and what the buffers contain.
std::string generate_contractions(Choices& choices, uint32_t functions);

}  // namespace halyard::vm::test
