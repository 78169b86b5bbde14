// FunctionCode: a function in the form that the interpreter runs. Decoding converts bytecode of any version
// to aligned 8-byte words: registers are indices, types and constants are pointers, branch targets are
// distances, and moves of edges are instructions. Immutable; shared by contexts and threads; owned by its
// module.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "base/status.h"
#include "vm/decode/call_writes.h"
#include "vm/decode/compiled_function.h"
#include "vm/format/opcodes.h"

namespace halyard::vm {

class BytecodeModule;
struct FunctionCode;
struct Heat;

// Instructions that exist only in decoded code (decoded_ops.inc). Their numbers follow those of Op.
enum class DecodedOp : uint16_t {
  kBefore = kOpCount - 1,
#define DECODED(name) name,
#define IMMEDIATE(op) op##_imm,
#define IMMEDIATE_LEFT(op) op##_imm_left,
#define BRANCH(op) br_##op,
#define BRANCH_IMMEDIATE(op) br_##op##_imm,
#define BRANCH_IMMEDIATE_LEFT(op) br_##op##_imm_left,
#define LOOP(op) loop_##op,
#define LOOP_BY(op) loop_by_##op,
#define ARITHMETIC(type, first, second) first##_##second##_##type,
#define ARITHMETIC_RIGHT(type, first, second) first##_##second##_right_##type,
#define ARITHMETIC_OF_THREE(type, first, second, third) first##_##second##_##third##_##type,
#define LAST_OF(kind, first, loop) first##_last_of_##loop,
#define INDEXED(op) op##_at_sum,
#define INDEXED_KEPT(op) op##_at_kept_sum,
#define INDEXED_PRODUCT(op) op##_at_product,
#include "vm/decode/decoded_ops.inc"
  kCount
};

// One unit of decoded code. The first word of an instruction has one of two layouts:
//     op | a | b | c        four 16-bit fields
//     op | a | wide         two 16-bit fields and one of 32 bits
// Registers occupy a, b, c and then the four fields of a second word (op, a, b, c). A 16-bit constant takes
// the place of its register. Other operands follow: one word for each 64-bit immediate or pointer, and one
// word for the two distances of a conditional branch. Lists are in FunctionCode::lists.
struct Word {
  uint16_t op;
  uint16_t a;
  uint16_t b;
  uint16_t c;

  uint32_t wide() const { return part(4); }  // b and c
  uint32_t low() const { return part(0); }   // op and a of a data word
  // The distance of a branch, in words from the first word of the instruction. A data word with two distances
  // contains one for a true and one for a false condition.
  int32_t distance() const { return static_cast<int32_t>(part(4)); }
  int32_t distance_if() const { return static_cast<int32_t>(part(0)); }
  int32_t distance_else() const { return static_cast<int32_t>(part(4)); }
  int16_t constant_a() const { return static_cast<int16_t>(a); }
  int16_t constant_b() const { return static_cast<int16_t>(b); }
  int16_t constant_c() const { return static_cast<int16_t>(c); }
  uint64_t bits() const {
    uint64_t bits;
    std::memcpy(&bits, this, sizeof bits);
    return bits;
  }
  template <typename T>
  T* pointer() const {
    return reinterpret_cast<T*>(static_cast<uintptr_t>(bits()));
  }

 private:
  uint32_t part(size_t offset) const {
    uint32_t part;
    std::memcpy(&part, reinterpret_cast<const char*>(this) + offset, sizeof part);
    return part;
  }
};
static_assert(sizeof(Word) == 8);

// Flags in register numbers. A ref field has kMoveBit if its operand may be moved. Entries of lists also have
// kRefBit, and in a value entry bit 14 marks a pair. Bit 14 is free, because the verifier limits register
// numbers to less than 0x4000.
inline constexpr uint16_t kWideBit = 0x4000;
inline constexpr uint16_t kRegisterMask = 0x3FFF;

// A move from a register of the caller to one of the callee.
struct ArgumentMove {
  uint16_t source;  // of a ref: with the MOVE bit
  uint16_t destination;
};

// Data about the callee of a call within the module; resolved on the first call.
struct Binding {
  const Binding* earlier = nullptr;  // binding to the callee's code before it was compiled; owned by this one
  const FunctionCode* callee = nullptr;
  const Word* entry = nullptr;
  uint32_t frame_bytes = 0;
  uint32_t zero_from = 0;
  uint32_t refs_offset = 0;
  uint32_t narrow = 0;       // number of 32-bit moves, which come first,
  uint32_t wide = 0;         // then of pairs,
  uint32_t refs = 0;         // then of refs,
  uint32_t dropped = 0;      // then of refs that are moved but for which the callee has no register
  bool narrow_only = false;  // all moves are 32-bit moves, and no register of the new frame needs zeroing
  std::vector<ArgumentMove> moves;
};

// The operands of a call instruction.
struct CallSite {
  uint32_t function = 0;   // an internal function or an import
  uint32_t return_pc = 0;  // for traces: the bytecode pc after the call
  bool is_import = false;
  bool yieldable = false;
  bool variadic = false;
  uint16_t argument_count = 0;
  uint16_t result_count = 0;
  uint16_t release_count = 0;
  uint32_t arguments = 0;       // index into FunctionCode::lists; entries have MOVE bits
  uint32_t bare_arguments = 0;  // the same entries without MOVE bits, for native functions
  uint32_t results = 0;
  uint32_t segments = 0;  // one number for each item of the convention
  // Ref registers to release after a native call: moved, and not overwritten by a result.
  uint32_t releases = 0;
  // Set by the first call within the module; owned; accessed through std::atomic_ref. The third word of the
  // call instruction is a copy.
  mutable const Binding* binding = nullptr;
  Word* bound = nullptr;
};

// The head of a loop, in decoded code and in bytecode.
struct LoopHead {
  uint32_t word;
  uint32_t pc;
};
// A constant that fused instructions contain as an immediate, so that its register is not set.
struct FoldedConstant {
  uint32_t slot;
  uint32_t bits;
};
// What a frame needs to switch between two versions of a function.
struct TierNotes {
  std::vector<LoopHead> heads;  // of outermost loops
  std::vector<FoldedConstant> folded;
};

// Maps words to bytecode: the instruction at `pc` begins at `word`.
struct Place {
  uint32_t word;
  uint32_t pc;
};

struct FunctionCode {
  const BytecodeModule* module = nullptr;
  uint32_t function = 0;
  // False: the function is () -> (), and calls within the module pass the registers that they list.
  bool has_convention = false;
  bool legacy_floats = false;  // bytecode 15: lists do not convert between f32 and f64
  uint32_t value_slots = 0;    // size of a frame's value bank: registers that the code or arguments use
  uint32_t ref_slots = 0;
  uint32_t refs_offset = 0;             // bytes from the value bank to the ref bank
  uint32_t frame_bytes = 0;             // the header and both banks
  uint32_t zero_from = 0;               // bytes from the value bank to the part that is zeroed on entry
  uint32_t result_count = 0;            // from the convention
  std::span<const uint16_t> arguments;  // the register of each argument, from the convention
  std::span<const Word> words;
  std::span<const uint16_t> lists;
  std::span<const CallSite> calls;
  std::span<const Place> places;          // in ascending order
  std::unique_ptr<std::byte[]> memory;    // backs all of these spans
  CompiledFunction compiled;              // machine code for the enter_compiled words, if any
  bool has_compiled_loop = false;         // with entries: some loop can be compiled as a whole
  std::unique_ptr<const TierNotes> tier;  // with DecodeOptions::tiers
  Heat* heat = nullptr;                   // set while the function is interpreted; owned by the module

  FunctionCode() = default;
  FunctionCode(const FunctionCode&) = delete;
  FunctionCode& operator=(const FunctionCode&) = delete;
  ~FunctionCode() {
    for (const CallSite& site : calls) {
      for (const Binding* binding = site.binding; binding;) {
        const Binding* const earlier = binding->earlier;
        delete binding;
        binding = earlier;
      }
    }
  }

  // The offset of the address of the words in this object.
  static uint32_t words_offset();
  // The bytecode pc of the instruction that contains `word`.
  uint32_t pc_of(uint32_t word) const;
};

// The call site of a call instruction.
inline const CallSite& call_site(const Word* call) { return *call[1].pointer<const CallSite>(); }
// The number of words of a call instruction: the instruction, its call site and, within the module, its
// binding.
inline constexpr uint32_t kCallWords = 3;
inline constexpr uint32_t kImportCallWords = 2;
inline const Word* after_call(const Word* call) {
  return call + (call->op == static_cast<uint16_t>(Op::call) ? kCallWords : kImportCallWords);
}

enum class Entries : uint8_t {
  none,
  calls,  // an enter_compiled word at each place where compiled code may be entered
  loops,  // also at the heads of outermost loops
};
struct DecodeOptions {
  bool fuse = true;                 // off: decode instructions one by one, for compilers and tests
  Entries entries = Entries::none;  // for a compiler; requires `fuse` to be off
  bool tiers = false;  // give all versions of the function one frame layout, and record TierNotes
  CallWritesOf call_writes = nullptr;
};
// The function must have passed the verifier.
Result<std::unique_ptr<FunctionCode>> decode_function(const BytecodeModule& module, uint32_t function,
                                                      DecodeOptions options);

}  // namespace halyard::vm
