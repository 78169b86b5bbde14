// What counting needs to know of single instructions: integer results, float operations, sizes of elements.
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
// The size in bytes of the elements that an instruction accesses; 0: it accesses no buffer by elements.
uint64_t element_size(Op op);
bool is_fill(Op op);

}  // namespace halyard::vm
