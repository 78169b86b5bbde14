// FunctionCode: a function as the interpreter runs it. Decoding turns bytecode of any version into aligned
// 8-byte words in which registers are plain indices, types and constants are pointers, branch targets are
// distances and edge moves are instructions of their own. Immutable, shared by contexts and threads; belongs
// to its module.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "vm/opcodes.h"

namespace halyard::vm {

class BytecodeModule;
struct FunctionCode;

// Instructions that only decoded code has; their numbers follow those of Op.
#define HALYARD_INNER_OPS(INNER)                  \
  INNER(move_32)     /* a -> b */                 \
  INNER(move_64)     /* pair a -> pair b */       \
  INNER(copy_ref)    /* a -> b, retained */       \
  INNER(move_ref)    /* a -> b, a becomes null */ \
  INNER(call_import) /* wide: call site */        \
  INNER(end)         /* past the last instruction, where a `fail` of status 0 may lead */

enum class InnerOp : uint16_t {
  kBefore = kOpCount - 1,
#define HALYARD_INNER_(name) name,
  HALYARD_INNER_OPS(HALYARD_INNER_)
#undef HALYARD_INNER_
      kCount
};

// One unit of decoded code. The first word of an instruction is
//     op | a | b | c        three 16-bit fields, or
//     op | a | wide         one field and 32 bits
// Its registers fill a, b, c and then the four fields of a second word (op, a, b, c of it). What an
// instruction has besides follows: 64-bit immediates and pointers take a word each; lists lie in
// FunctionCode::lists.
struct Word {
  uint16_t op;
  uint16_t a;
  uint16_t b;
  uint16_t c;

  uint32_t wide() const { return part(4); }  // b and c
  uint32_t low() const { return part(0); }   // op and a, of a word that is data
  // Of a branch, in words from the first one of the instruction.
  int32_t distance() const { return static_cast<int32_t>(part(4)); }
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

// One call instruction.
struct CallSite {
  uint32_t function = 0;   // internal function, or import
  uint32_t next = 0;       // word to go on at
  uint32_t return_pc = 0;  // for traces: what follows the call in bytecode
  bool is_import = false;
  bool yieldable = false;
  uint16_t argument_count = 0;
  uint16_t result_count = 0;
  uint16_t release_count = 0;
  uint32_t arguments = 0;       // in FunctionCode::lists, with MOVE bits
  uint32_t bare_arguments = 0;  // the same without them: what a native function sees
  uint32_t results = 0;
  uint32_t segments = 0;  // one number for each item of the convention
  bool variadic = false;
  uint32_t releases = 0;  // ref registers to empty after a native call: moved and not written
  // Of an internal function once it has been called; used through std::atomic_ref.
  mutable const FunctionCode* callee = nullptr;
};

struct FunctionCode {
  const BytecodeModule* module = nullptr;
  uint32_t function = 0;
  bool has_convention = false;  // else it is () -> (), and internal calls pass what they list
  bool legacy_floats = false;   // lists of bytecode 15 do not convert between f32 and f64
  uint32_t value_slots = 0;     // registers that a frame holds: those that code or arguments name
  uint32_t ref_slots = 0;
  uint32_t refs_offset = 0;         // of the ref bank from the value bank, in bytes
  uint32_t frame_bytes = 0;         // header and banks
  std::vector<uint16_t> arguments;  // where each argument goes, by the convention
  uint32_t result_count = 0;        // by the convention
  std::vector<Word> words;
  std::vector<uint16_t> lists;
  std::vector<CallSite> calls;

  // The bytecode pc of the instruction that `word` belongs to.
  uint32_t pc_of(uint32_t word) const;

  struct Place {
    uint32_t word;
    uint32_t pc;
  };
  std::vector<Place> places;  // ascending
};

// Of a function that has passed the verifier.
Result<std::unique_ptr<const FunctionCode>> decode_function(const BytecodeModule& module, uint32_t function);

}  // namespace halyard::vm
