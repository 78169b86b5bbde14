// The element-wise microkernels: one function of each element over matrices.
#pragma once

#include <functional>
#include <string_view>

#include "emit/loop_writer.h"
#include "emit/vector_set.h"

namespace halyard::jit {

// The functions of one element. Null: there is none with this name ("add.2d.f32").
// They compute what the vector code of local devices computes (drivers/local/vmvx/elementwise_simd.cpp).
struct ElementFunction {
  std::string_view name;
  uint32_t inputs;
  uint32_t width;      // bytes of an element
  bool is_float;       // denormal numbers are flushed to zero
  bool fails_at_zero;  // of the second input
  llvm::Value* (*result)(LoopWriter& w, llvm::Value* x, llvm::Value* y, const VectorSet& vectors);
};
const ElementFunction* find_element_function(std::string_view name);

// Writes the body of a function whose parameters are those of the import (exec-vmvx.md, 5.2).
void write_elementwise(LoopWriter& w, const ElementFunction& function, const VectorSet& vectors);
void write_fill(LoopWriter& w);

}  // namespace halyard::jit
