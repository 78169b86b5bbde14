// Follows single instructions of a kernel: what they do to registers, and which bytes they access.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "vm/count/accesses.h"
#include "vm/count/kernel_counts.h"
#include "vm/count/overwritten.h"
#include "vm/count/own_writes.h"
#include "vm/count/registers.h"
#include "vm/count/scalar.h"
#include "vm/count/scalar_forms.h"
#include "vm/decode/flow.h"

namespace halyard::vm {

inline constexpr int kGridDimensions = 3;
inline constexpr uint32_t kGrid = (1u << kGridDimensions) - 1;  // their bits in Scalar::varies

// Why a kernel cannot be counted, and the dimensions along which it might be followed one by one instead.
struct CountRefusal {
  std::string why;
  uint32_t along = 0;
};

class CountedSteps {
 public:
  CountedSteps(const BytecodeModule& module, const Flow& flow, const KernelArguments& arguments)
      : module_(module), flow_(flow), arguments_(arguments) {}

  // An instruction that is no branch. Adds the float operations of an import. False: refused.
  bool step(uint32_t index, uint64_t& import_operations);
  // Sets `refusal`. False.
  bool fail(std::string why, uint32_t along = 0);

  // Nothing has been accessed or written.
  void begin_grid();
  void begin_workgroup();

  CountedRegisters registers;
  CountedAccesses accesses;
  CountedAccesses inputs;  // see KernelCounts, as `overwritten`
  Overwritten overwritten{kMaxRuns};
  OwnWrites own_writes;                             // of the workgroup
  ScalarForms forms;                                // likewise
  std::array<uint64_t, kMaxDimensions> trips = {};  // of each dimension; 0: not known yet
  int quiet = 0;                                    // above 0: accesses are not recorded
  bool has_few_workgroups = false;                  // unknown ranges of addresses along the grid are refused
  CountRefusal refusal;

 private:
  void compute(const Instruction& at, const OpInfo& op);
  Scalar in_bytes(const Scalar& elements, uint64_t size);
  bool access(uint32_t index, const Instruction& at);
  Scalar loaded(Op op, Bank bank, const CountedReference& buffer, const Scalar& offset) const;
  bool range(uint32_t index, uint16_t buffer, const Scalar& offset, const Scalar& length, bool writes);
  bool touch(uint32_t index, const CountedReference& buffer, const Scalar& offset, uint64_t size,
             uint64_t each, bool writes);
  void note(uint32_t index, const CountedReference& buffer, const Scalar& offset, const Bounds& bounds,
            uint64_t size, bool writes);
  bool call(const Instruction& at, uint64_t& import_operations);

  static constexpr uint64_t kMaxRuns = 1 << 16;  // of bytes that are overwritten

  const BytecodeModule& module_;
  const Flow& flow_;
  const KernelArguments& arguments_;
  uint64_t own_checks_ = 0;  // calls of OwnWrites::cover()
};

}  // namespace halyard::vm
