// The numbers of a function in single-assignment form, with what is known about each: the value, or the range
// of the values that it can have. Refused bounds checks, narrow types and the fusion of loops come from the
// ranges.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "vm/format/opcodes.h"

namespace halyard::aot {

using ValueId = uint32_t;
inline constexpr ValueId kNoValue = UINT32_MAX;

// The integers low, low + step, low + 2 * step, ... that are not greater than high. Integers of 32 and 64
// bits are signed here.
struct Range {
  int64_t low = INT64_MIN;
  int64_t high = INT64_MAX;
  int64_t step = 1;

  static Range of(vm::Bank bank);  // all
  static Range just(int64_t value) { return {value, value, 0}; }
  bool is_full(vm::Bank bank) const;
  // The largest value: `low` plus a multiple of `step`. `high` may be above it.
  int64_t last() const;
  Range joined(const Range& other) const;
  // Whether 32 bits without a sign have all values.
  bool is_narrow() const { return low >= 0 && high <= INT64_C(0xFFFFFFFF); }
};

// base + the sum of coefficient * variable; the variables are those of counted loops, and parameters.
struct Affine {
  bool known = false;
  int64_t base = 0;
  std::vector<std::pair<ValueId, int64_t>> terms;  // by variable; no coefficient is 0

  bool operator==(const Affine&) const = default;
};

struct Value {
  vm::Bank bank = vm::Bank::i32;
  bool is_constant = false;
  bool is_narrow = false;  // an i64 in a variable of type uint32_t
  bool is_variable = false;
  uint64_t bits = 0;  // of a constant
  Range range;
  Affine affine;
  std::string name;    // in C
  ValueId same = 0;    // the value without what a branch told about its range; itself otherwise
  uint32_t scope = 0;  // the function in which the name is declared
  vm::Op op = vm::Op::kCount;
  std::array<ValueId, 3> operands = {kNoValue, kNoValue, kNoValue};
  std::string text;  // the expression
};

class Values {
 public:
  ValueId constant(vm::Bank bank, uint64_t bits);
  ValueId add(Value value);
  const Value& operator[](ValueId id) const { return all_[id]; }
  Value& at(ValueId id) { return all_[id]; }
  size_t size() const { return all_.size(); }

  bool is_constant(ValueId id) const { return all_[id].is_constant; }
  bool is_constant(ValueId id, uint64_t bits) const { return all_[id].is_constant && all_[id].bits == bits; }
  // Whether the value is one number while a function runs: no loop counts in it.
  bool is_fixed(ValueId id) const;
  // The value as C of the type of a bank; integers and floats of one size give their bits.
  std::string text(ValueId id, vm::Bank bank) const;
  // The low 32 bits.
  std::string low_text(ValueId id) const;
  // The value as size_t, for addresses.
  std::string size_text(ValueId id) const;
  // The type of the variable in C.
  const char* c_type(ValueId id) const;

  // The value of an operation of constants; false if it is not known here.
  bool fold(vm::Op op, const std::array<ValueId, 3>& operands, uint64_t* bits) const;
  // What is known about the result of an operation.
  Range range(vm::Op op, const std::array<ValueId, 3>& operands, vm::Bank bank) const;
  Affine affine(vm::Op op, const std::array<ValueId, 3>& operands, const Range& range) const;

 private:
  std::vector<Value> all_;
  std::map<std::pair<uint8_t, uint64_t>, ValueId> constants_;
};

}  // namespace halyard::aot
