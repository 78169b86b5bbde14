// The loop. Handlers are written once, in interpreter_ops.inc, and dispatched by a jump out of each (computed
// goto), or by a switch in sanitizer builds and with -DHALYARD_DISPATCH_SWITCH. They never allocate and never
// call through a virtual function; what is slow or rare is in object_ops.h and calls.h.
#include "vm/interpreter.h"

#include "vm/arithmetic.h"
#include "vm/object_ops.h"
#include "vm/verifier.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HALYARD_DISPATCH_SWITCH
#endif

namespace halyard::vm {

namespace {

[[gnu::cold, gnu::noinline]] Status division_by_zero() {
  return Status(Code::INVALID_ARGUMENT, "integer division by zero");
}

[[gnu::cold, gnu::noinline]] Status global_out_of_range(uint32_t offset, uint32_t size, uint32_t capacity) {
  return Status(
      Code::OUT_OF_RANGE,
      fmt::format("{} bytes at offset {} are not within the {} bytes of globals", size, offset, capacity));
}

[[gnu::cold, gnu::noinline]] Status global_ref_out_of_range(uint32_t ordinal, size_t count) {
  return Status(Code::OUT_OF_RANGE,
                fmt::format("there is no ref global {}; the module has {}", ordinal, count));
}

[[gnu::cold, gnu::noinline]] Status program_failure(uint32_t number, std::string_view message) {
  const Code code = failure_code(number & 31);
  if (code != Code::UNKNOWN || number == static_cast<uint32_t>(Code::UNKNOWN))
    return Status(code, std::string(message));
  return Status(code, fmt::format("{} (the program failed with {}, which is not a status)", message, number));
}

// What failed in the top frame, with its place.
[[gnu::cold, gnu::noinline]] void note_place(Stack& stack, const Word* ip) {
  const FunctionCode& code = *stack.top->code;
  const uint32_t pc = code.pc_of(static_cast<uint32_t>(ip - code.words.data()));
  stack.error = std::move(stack.error).note(code_location(*code.module, code.function, pc));
}

inline float as_f32(uint32_t bits) { return std::bit_cast<float>(bits); }
inline uint32_t bits_of(float value) { return std::bit_cast<uint32_t>(value); }
inline double as_f64(uint64_t bits) { return std::bit_cast<double>(bits); }
inline uint64_t bits_of(double value) { return std::bit_cast<uint64_t>(value); }

// The buffer in a register if it is one; null otherwise.
inline Buffer* buffer_in(Object* object) {
  return object && object->type() == &Buffer::kType ? static_cast<Buffer*>(object) : nullptr;
}

// Copies or moves the ref of a field into a register. Onto itself nothing happens.
inline void assign_ref(Object** refs, uint16_t source, uint16_t destination) {
  if ((source & kRegisterMask) != destination) put_ref(refs[destination], take_or_retain(refs, source));
}

// The same for a global: a field that is loaded to, or stored from.
inline void load_global(Object*& global, Object** refs, uint16_t result) {
  Object* object = global;
  if (result & kMoveBit) {
    global = nullptr;
  } else {
    retain(object);
  }
  put_ref(refs[result & kRegisterMask], object);
}

}  // namespace

CallOutcome interpret(Stack& stack) {
#ifdef HALYARD_DISPATCH_SWITCH
#define HANDLER(name) case static_cast<uint16_t>(Op::name):
#define INNER_HANDLER(name) case static_cast<uint16_t>(InnerOp::name):
#define DISPATCH() goto dispatch
#else
#define HANDLER(name) op_##name:
#define INNER_HANDLER(name) inner_##name:
#define DISPATCH() goto* kHandlers[ip->op]
  static const void* const kHandlers[] = {
#define OP(set, byte, identifier, mnemonic, since, flags, operands) &&op_##identifier,
#include "vm/opcodes.inc"
#undef OP
#define HALYARD_INNER_(name) &&inner_##name,
      HALYARD_INNER_OPS(HALYARD_INNER_)
#undef HALYARD_INNER_
  };
#endif
#define NEXT(words) \
  do {              \
    ip += (words);  \
    DISPATCH();     \
  } while (false)
#define RAISE() goto raise
#define RAISE_STATUS(status) \
  do {                       \
    stack.error = (status);  \
    goto raise;              \
  } while (false)
// After anything that may have changed the top frame or moved the stack.
#define LOAD_FRAME()          \
  do {                        \
    frame = stack.top;        \
    values = frame->values(); \
    refs = frame->refs();     \
  } while (false)

  const ObjectOps objects{stack.error, stack.limits};
  Frame* frame;
  uint32_t* values;
  Object** refs;
  const Word* ip;
  LOAD_FRAME();
  ip = frame->ip;

#ifdef HALYARD_DISPATCH_SWITCH
dispatch:
  switch (ip->op) {
#include "vm/interpreter_ops.inc"
  }
  __builtin_unreachable();
#else
  DISPATCH();
#include "vm/interpreter_ops.inc"
#endif

raise:
  note_place(stack, ip);
  return CallOutcome::failed;
raise_plain:
  return CallOutcome::failed;

#undef HANDLER
#undef INNER_HANDLER
#undef DISPATCH
#undef NEXT
#undef RAISE
#undef RAISE_STATUS
#undef LOAD_FRAME
}

}  // namespace halyard::vm
