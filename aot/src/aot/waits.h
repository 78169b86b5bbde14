// Which functions of a program may wait: with an import, with `yield`, or in a function that they call. In C,
// these functions can leave in the middle and be entered again.
#pragma once

#include <set>

#include "aot/plan.h"
#include "vm/format/bytecode_reader.h"

namespace halyard::aot {

// When a call of an import may wait.
enum class ImportWait { never, for_programs, always };
ImportWait import_wait(const vm::BytecodeModule& module, const vm::Instruction& instruction);

// The ordinals of the functions, among those of the plan.
std::set<uint32_t> waiting_functions(const Plan& plan);

}  // namespace halyard::aot
