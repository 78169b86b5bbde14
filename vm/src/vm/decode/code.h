// FunctionCode: a function as the interpreter runs it. Decoding turns bytecode of any version into aligned
// 8-byte words in which registers are plain indices, types and constants are pointers, branch targets are
// distances and edge moves are instructions of their own. Immutable, shared by contexts and threads; belongs
// to its module.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "base/status.h"
#include "vm/compile/compiled_function.h"
#include "vm/format/opcodes.h"

namespace halyard::vm {

class BytecodeModule;
struct FunctionCode;

// Instructions that only decoded code has (decoded_ops.inc); their numbers follow those of Op.
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

// One unit of decoded code. The first word of an instruction is
//     op | a | b | c        three 16-bit fields, or
//     op | a | wide         one field and 32 bits
// Its registers fill a, b, c and then the four fields of a second word (op, a, b, c of it). A 16-bit constant
// stands where its register would. What an instruction has besides follows: 64-bit immediates and pointers
// take a word each, and so do the two distances of a conditional branch; lists lie in FunctionCode::lists.
struct Word {
  uint16_t op;
  uint16_t a;
  uint16_t b;
  uint16_t c;

  uint32_t wide() const { return part(4); }  // b and c
  uint32_t low() const { return part(0); }   // op and a, of a word that is data
  // Of a branch, in words from the first one of the instruction. A word of two has them where its condition
  // holds and where it does not.
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

// Fields that name a register. A ref field whose operand may be moved keeps kMoveBit where it is; entries of
// lists also keep kRefBit, and bit 14 of a value entry says that it names a pair. Registers of functions that
// pass the verifier are below 0x4000, so bit 14 is free.
inline constexpr uint16_t kWideBit = 0x4000;
inline constexpr uint16_t kRegisterMask = 0x3FFF;

// From a register of the caller to one of the callee.
struct ArgumentMove {
  uint16_t source;  // refs: with MOVE
  uint16_t destination;
};

// What a call within a module needs to know of its callee, found when the call is first made.
struct Binding {
  const FunctionCode* callee = nullptr;
  const Word* entry = nullptr;
  uint32_t frame_bytes = 0;
  uint32_t zero_from = 0;
  uint32_t refs_offset = 0;
  uint32_t narrow = 0;       // moves of 32 bits, which come first; then those
  uint32_t wide = 0;         // of pairs, then those
  uint32_t refs = 0;         // of refs, and last the
  uint32_t dropped = 0;      // refs that are moved to a callee that has no place for them
  bool narrow_only = false;  // the only moves are those, and nothing of the new frame is to be zero
  std::vector<ArgumentMove> moves;
};

// One call instruction.
struct CallSite {
  uint32_t function = 0;   // internal function, or import
  uint32_t return_pc = 0;  // for traces: what follows the call in bytecode
  bool is_import = false;
  bool yieldable = false;
  bool variadic = false;
  uint16_t argument_count = 0;
  uint16_t result_count = 0;
  uint16_t release_count = 0;
  uint32_t arguments = 0;       // in FunctionCode::lists, with MOVE bits
  uint32_t bare_arguments = 0;  // the same without them: what a native function sees
  uint32_t results = 0;
  uint32_t segments = 0;  // one number for each item of the convention
  uint32_t releases = 0;  // ref registers to empty after a native call: moved and not written
  // Of a call within the module, once it has been made: owned, used through std::atomic_ref. It also stands
  // in this word of the call.
  mutable const Binding* binding = nullptr;
  Word* bound = nullptr;
};

// What belongs to which instruction of bytecode: `word` is the first of those that `pc` became.
struct Place {
  uint32_t word;
  uint32_t pc;
};

struct FunctionCode {
  const BytecodeModule* module = nullptr;
  uint32_t function = 0;
  bool has_convention = false;  // else it is () -> (), and internal calls pass what they list
  bool legacy_floats = false;   // lists of bytecode 15 do not convert between f32 and f64
  uint32_t value_slots = 0;     // registers that a frame holds: those that code or arguments name
  uint32_t ref_slots = 0;
  uint32_t refs_offset = 0;             // of the ref bank from the value bank, in bytes
  uint32_t frame_bytes = 0;             // header and banks
  uint32_t zero_from = 0;               // offset from the value bank of what is zero on entry, to the end
  uint32_t result_count = 0;            // by the convention
  std::span<const uint16_t> arguments;  // where each argument goes, by the convention
  std::span<const Word> words;
  std::span<const uint16_t> lists;
  std::span<const CallSite> calls;
  std::span<const Place> places;        // ascending
  std::unique_ptr<std::byte[]> memory;  // of all of these
  CompiledFunction compiled;            // what enter_compiled words enter, where there is such code

  FunctionCode() = default;
  FunctionCode(const FunctionCode&) = delete;
  FunctionCode& operator=(const FunctionCode&) = delete;
  ~FunctionCode() {
    for (const CallSite& site : calls) delete site.binding;
  }

  // The bytecode pc of the instruction that `word` belongs to.
  uint32_t pc_of(uint32_t word) const;
};

// The call that a call instruction makes.
inline const CallSite& call_site(const Word* call) { return *call[1].pointer<const CallSite>(); }
// Words of a call instruction: itself, its call site, and within the module what the call is bound to.
inline constexpr uint32_t kCallWords = 3;
inline constexpr uint32_t kImportCallWords = 2;
inline const Word* after_call(const Word* call) {
  return call + (call->op == static_cast<uint16_t>(Op::call) ? kCallWords : kImportCallWords);
}

// Of a function that has passed the verifier. Without `fuse`, one instruction stays one instruction: for
// tests that compare both. With `entries` (and not `fuse`), for a compiler: an enter_compiled word wherever
// compiled code may be entered.
Result<std::unique_ptr<FunctionCode>> decode_function(const BytecodeModule& module, uint32_t function,
                                                      bool fuse, bool entries = false);

}  // namespace halyard::vm
