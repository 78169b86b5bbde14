// A second implementation with which the machine is compared: it runs a function directly from the bytes of
// its module, with one switch over the opcode, and reads operands in place. Nothing is decoded, cached or
// fused. It shares with the machine only objects (lists, buffers) and the hash. Written from isa.md,
// calling-convention.md and verifier-and-execution.md. For modules that pass the verifier.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "vm/format/opcodes.h"
#include "vm/module/bytecode_module.h"
#include "vm/module/native_module.h"
#include "vm/object/variant.h"

namespace halyard::vm::test {

struct ReferenceInstance;

// The provider of an import: a bytecode function, a native one, or none.
struct ReferenceImport {
  ReferenceInstance* provider = nullptr;
  uint32_t function = 0;
  NativeFunction native = nullptr;
  void* state = nullptr;  // of the native module
  std::string_view convention;
};

// A module and its state.
struct ReferenceInstance {
  const BytecodeModule* module = nullptr;
  std::vector<uint8_t> global_bytes;
  std::vector<Ref<Object>> global_refs;
  std::vector<ReferenceImport> imports;

  explicit ReferenceInstance(const BytecodeModule& of)
      : module(&of), global_bytes(of.global_bytes()), global_refs(of.global_refs()) {}
};

struct ReferenceLimits {
  uint64_t buffer_bytes = 0;   // of one buffer
  uint32_t list_elements = 0;  // of one list
  uint32_t depth = 0;          // of calls
  uint64_t stack_bytes = 0;    // of all frames
  uint64_t instructions = 0;   // total, executed by one machine
};

// The registers of an active function, and its position in its bytes.
struct ReferenceFrame {
  ReferenceInstance& instance;
  const Function& function;
  uint32_t pc = 0;
  std::vector<uint32_t> slots;
  std::vector<Ref<Object>> refs;
  std::vector<uint16_t> returned;  // the list of its `return`

  ReferenceFrame(ReferenceInstance& of, const Function& runs)
      : instance(of), function(runs), slots(runs.value_registers + 1u), refs(runs.ref_registers) {}

  uint32_t version() const { return instance.module->bytecode_version(); }

  // Reads the next operand.
  uint8_t u8() { return number<uint8_t>(); }
  uint16_t u16() { return number<uint16_t>(); }
  uint32_t u32() { return number<uint32_t>(); }
  uint64_t u64() { return number<uint64_t>(); }
  std::vector<uint16_t> list() {
    pc += pc % 2;
    std::vector<uint16_t> entries(u16());
    for (uint16_t& entry : entries) entry = u16();
    return entries;
  }
  std::string_view string() {
    const uint16_t length = u16();
    pc += length;
    return {reinterpret_cast<const char*>(function.bytecode.data()) + pc - length, length};
  }

  uint32_t narrow(uint16_t reg) const { return slots[reg]; }
  void set_narrow(uint16_t reg, uint32_t value) { slots[reg] = value; }
  uint64_t wide(uint16_t reg) const { return slots[reg] | uint64_t{slots[reg + 1u]} << 32; }
  void set_wide(uint16_t reg, uint64_t value) {
    slots[reg] = static_cast<uint32_t>(value);
    slots[reg + 1u] = static_cast<uint32_t>(value >> 32);
  }
  Ref<Object>& ref(uint16_t field) { return refs[field & kRefOrdinalMask]; }
  // The object in the register of a field; moved out of the register if the field has the MOVE bit and this
  // instruction honours it.
  Ref<Object> read_ref(uint16_t field, bool honoured) {
    if (honoured && (field & kMoveBit)) return std::exchange(ref(field), nullptr);
    return ref(field);
  }

 private:
  template <typename T>
  T number() {
    T value;
    std::memcpy(&value, function.bytecode.data() + pc, sizeof value);
    pc += sizeof value;
    return value;
  }
};

// Runs `op`, whose operands follow, if it only computes values from values, and sets `status`. False: another
// kind of instruction. Sets `unspecified` if the result differs between hosts.
bool reference_arithmetic(ReferenceFrame& frame, Op op, Code& status, bool& unspecified);

class ReferenceMachine {
 public:
  explicit ReferenceMachine(ReferenceLimits limits) : limits_(limits) {}

  // Calls a function from outside; the arguments have the types of its calling convention.
  Code call(ReferenceInstance& instance, uint32_t function, std::span<const Variant> arguments,
            std::vector<Variant>& results);

  // The reason why the run cannot be compared with another machine: it was cut short, or computed something
  // that differs between hosts. Otherwise empty.
  std::string_view incomparable() const { return incomparable_; }
  // How often each opcode has run.
  const std::array<uint64_t, kOpCount>& executed() const { return executed_; }

 private:
  Code run(ReferenceFrame& frame);
  Code run_body(ReferenceFrame& frame);
  Code step(ReferenceFrame& frame, Op op);
  Code fail(ReferenceFrame& frame);
  void branch(ReferenceFrame& frame);
  void branch_to(ReferenceFrame& frame, uint32_t target);
  void skip_edge(ReferenceFrame& frame);
  void branch_by_table(ReferenceFrame& frame);
  Code call_instruction(ReferenceFrame& frame, Op op);
  Code call_internal(ReferenceFrame& frame, uint32_t callee, std::span<const uint16_t> arguments,
                     std::span<const uint16_t> results);
  Code call_import(ReferenceFrame& frame, uint32_t import, std::span<const uint16_t> segments,
                   std::span<const uint16_t> arguments, std::span<const uint16_t> results, bool yieldable);
  Code call_native(ReferenceFrame& frame, const ReferenceImport& import, std::string_view types,
                   std::string_view result_types, std::span<const uint16_t> segments,
                   std::span<const uint16_t> arguments, std::span<const uint16_t> results, bool yieldable);
  Code list_instruction(ReferenceFrame& frame, Op op);
  Code buffer_instruction(ReferenceFrame& frame, Op op);
  Code global_instruction(ReferenceFrame& frame, Op op);
  Code ref_instruction(ReferenceFrame& frame, Op op);
  Code stop(std::string_view why) {
    incomparable_ = why;
    return Code::ABORTED;
  }

  const ReferenceLimits limits_;
  std::string_view incomparable_;
  std::array<uint64_t, kOpCount> executed_ = {};
  uint64_t instructions_ = 0;
  uint32_t depth_ = 0;
  uint64_t stack_bytes_ = 0;
};

}  // namespace halyard::vm::test
