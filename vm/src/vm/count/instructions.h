// What counting needs to know of single instructions: integer results, float operations.
#pragma once

#include <array>
#include <cstdint>

#include "vm/count/scalar.h"
#include "vm/format/opcodes.h"

namespace halyard::vm {

template <typename T>
using Operands = std::array<T, kMaxOperands>;

// The integer result. `bank` is that of the first operand that is read.
Scalar result_of(Op op, Bank bank, const Operands<Scalar>& in, int64_t immediate);
// The bounds of the integer result, from those of the operands that are read.
Bounds bounds_of_result(Op op, const Operands<Bounds>& in);

// The numbers that the register of the integer result can have; a conversion changes all other numbers.
Bounds range_of_result(Op op, Bank bank);

// Float operations of one execution.
uint64_t operations_of(Op op);

}  // namespace halyard::vm
