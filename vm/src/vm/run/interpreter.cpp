// The interpreter loop. Handlers are written once, in interpreter_ops.inc and interpreter_fused.inc, and
// dispatched with computed gotos, or with a switch in sanitizer builds and with HALYARD_DISPATCH=switch.
// Handlers never allocate and make no virtual calls; slow and rare cases are in object_ops.h and calls.h.
#include "vm/run/interpreter.h"

#include <algorithm>
#include <new>

#include "vm/decode/arithmetic.h"
#include "vm/decode/filled_buffers.h"
#include "vm/elementary/functions.h"
#include "vm/run/failures.h"
#include "vm/run/object_ops.h"
#include "vm/run/sampling.h"
#include "vm/run/tracing.h"

#if (defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)) && !defined(HALYARD_DISPATCH_SWITCH)
#define HALYARD_DISPATCH_SWITCH
#endif

namespace halyard::vm {

namespace {

// Adds the location of the failed instruction of the top frame in the bytecode and, if known, in the source.
// Omits it if there is no memory.
[[gnu::cold, gnu::noinline]] void note_place(Stack& stack, const Word* ip) try {
  stack.error = std::move(stack.error).note(place_text(*stack.top->code, ip));
} catch (const std::bad_alloc&) {
}

inline float as_f32(uint32_t bits) { return std::bit_cast<float>(bits); }
inline uint32_t bits_of(float value) { return std::bit_cast<uint32_t>(value); }
inline double as_f64(uint64_t bits) { return std::bit_cast<double>(bits); }
inline uint64_t bits_of(double value) { return std::bit_cast<uint64_t>(value); }

// Recursive compiled calls use at most this many bytes of the stack before they return to the interpreter,
// which bounds their native stack. With tracing they return for each call, because a trace records every
// call.
#ifdef HALYARD_TRACED_INTERPRETER
constexpr size_t kNativeBytes = 0;
#else
constexpr size_t kNativeBytes = 8192;
#endif

#ifdef HALYARD_SAMPLED_INTERPRETER
// If the work must stop, the next branch is a sample. Not inline: the interpreter's registers are for its
// loops.
[[gnu::noinline]] void save_frame_before_work(Stack& stack, uint32_t* values) {
  stack.top = reinterpret_cast<Frame*>(values) - 1;
  if (must_stop(stack)) [[unlikely]]
    stack.branches_until_sample = 1;
}
#endif

inline bool is_buffer(const Object* object) { return object && object->type() == &Buffer::kType; }

inline bool is_list(const Object* object) { return object && object->type() == &List::kType; }

// Whether the object is a list that packs values of exactly this type, and has this index.
inline bool is_packed(const Object* object, ValueType type, uint32_t index) {
  return is_list(object) && static_cast<const List*>(object)->packs(type, index);
}

// Copies or moves the ref of a field into a register. No effect if they are the same.
inline void assign_ref(Object** refs, uint16_t source, uint16_t destination) {
  if ((source & kRegisterMask) != destination) put_ref(refs[destination], take_or_retain(refs, source));
}

// The same for loading or storing a global.
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

#ifdef HALYARD_TRACED_INTERPRETER
#define TRACE_CALL(frame) trace_call(stack, *(frame))
#define TRACE_RETURN() stack.tracer->end()
#define TRACE_IMPORT(target)                                        \
  const ImportTrace import_trace(stack, *(target).instance->module, \
                                 (target).instance->module->exports()[(target).function].name)
#else
#define TRACE_CALL(frame) static_cast<void>(0)
#define TRACE_RETURN() static_cast<void>(0)
#define TRACE_IMPORT(target) static_cast<void>(0)
#endif

#if defined(HALYARD_TRACED_INTERPRETER)
CallOutcome interpret_traced(Stack& stack) {
#elif defined(HALYARD_SAMPLED_INTERPRETER)
CallOutcome interpret_sampled(Stack& stack) {
#elif defined(HALYARD_KERNEL_INTERPRETER)
CallOutcome interpret_kernel(Stack& stack) {
#else
CallOutcome interpret(Stack& stack) {
#endif
#ifdef HALYARD_DISPATCH_SWITCH
#define HANDLER(name) case static_cast<uint16_t>(Op::name):
#define DECODED_HANDLER(name) case static_cast<uint16_t>(DecodedOp::name):
#define DISPATCH() goto dispatch
#else
#define HANDLER(name) op_##name:
#define DECODED_HANDLER(name) decoded_##name:
#define DISPATCH() goto* kHandlers[ip->op]
  static const void* const kHandlers[] = {
#define OP(set, byte, identifier, mnemonic, since, flags, operands) &&op_##identifier,
#include "vm/format/opcodes.inc"
#undef OP
#define DECODED(name) &&decoded_##name,
#define IMMEDIATE(op) &&decoded_##op##_imm,
#define IMMEDIATE_LEFT(op) &&decoded_##op##_imm_left,
#define BRANCH(op) &&decoded_br_##op,
#define BRANCH_IMMEDIATE(op) &&decoded_br_##op##_imm,
#define BRANCH_IMMEDIATE_LEFT(op) &&decoded_br_##op##_imm_left,
#define LOOP(op) &&decoded_loop_##op,
#define LOOP_BY(op) &&decoded_loop_by_##op,
#define ARITHMETIC(type, first, second) &&decoded_##first##_##second##_##type,
#define ARITHMETIC_RIGHT(type, first, second) &&decoded_##first##_##second##_right_##type,
#define ARITHMETIC_OF_THREE(type, first, second, third) &&decoded_##first##_##second##_##third##_##type,
#define LAST_OF(kind, first, loop) &&decoded_##first##_last_of_##loop,
#define INDEXED(op) &&decoded_##op##_at_sum,
#define INDEXED_KEPT(op) &&decoded_##op##_at_kept_sum,
#define INDEXED_PRODUCT(op) &&decoded_##op##_at_product,
#include "vm/decode/decoded_ops.inc"
  };
#endif
#define NEXT(words) \
  do {              \
    ip += (words);  \
    DISPATCH();     \
  } while (false)
// Every loop passes one of the branches below, which check for interruption. interpret() knows the stop word.
// Other forms load its address first, which makes a tight loop 7 % longer. interpret_sampled() counts its
// branches instead, to find hot functions, and reads the stop word at calls, at samples, and before
// instructions that may take long (SAVE_FRAME_BEFORE_WORK).
#if defined(HALYARD_TRACED_INTERPRETER) || defined(HALYARD_SAMPLED_INTERPRETER) || \
    defined(HALYARD_KERNEL_INTERPRETER) || defined(HALYARD_ONE_INTERPRETER)
#define STOP_WORD stack.stop
#else
#define STOP_WORD stack.own_stop()
#endif
// In assembly the comparison with memory is one instruction; the compiler loads an atomic word first.
#if defined(__x86_64__)
#define STOP_IF_INTERRUPTED() \
  asm goto("cmpl $0, %0\n\tjne %l[interrupted]" ::"m"(*(STOP_WORD)) : "cc" : interrupted)
#else
#define STOP_IF_INTERRUPTED()                                           \
  if (__atomic_load_n((STOP_WORD), __ATOMIC_RELAXED) != 0) [[unlikely]] \
  goto interrupted
#endif
#ifdef HALYARD_SAMPLED_INTERPRETER
#define PASS_BRANCH()                                  \
  if (--stack.branches_until_sample == 0) [[unlikely]] \
  goto sampled
#else
#define PASS_BRANCH() STOP_IF_INTERRUPTED()
#endif
// The branch at the end of an instruction.
#define BRANCH_BY(distance) \
  do {                      \
    ip += (distance);       \
    PASS_BRANCH();          \
    DISPATCH();             \
  } while (false)
// The branch at the end of a loop's body. It compares itself with the previous loop branch. If the processor
// predicts that they are the same, it continues without waiting for the load of the distance. Written in
// assembly, because the compiler would detect that both paths lead to the same place. `tail` is in memory, so
// that `head` gets a register: without one, a tight loop takes 11 % longer.
#if defined(__x86_64__)
#define SAME_LOOP() asm goto("cmp %0, %1\n\tjne %l[other_loop]" ::"r"(ip), "m"(tail) : "cc" : other_loop)
#else
#define SAME_LOOP() \
  if (ip != tail) goto other_loop
#endif
#define CLOSE_LOOP() \
  do {               \
    SAME_LOOP();     \
    ip = head;       \
    PASS_BRANCH();   \
    DISPATCH();      \
  } while (false)
#define RAISE() goto raise
#define RAISE_STATUS(status) \
  do {                       \
    SAVE_FRAME();            \
    stack.error = (status);  \
    goto raise;              \
  } while (false)
#define FRAME (reinterpret_cast<Frame*>(values) - 1)
// Required before any code that reads or changes the stack or may throw std::bad_alloc. The caller of the
// interpreter then unwinds from the top frame.
#define SAVE_FRAME() (stack.top = FRAME)
// The same before an instruction that may take long.
#ifdef HALYARD_SAMPLED_INTERPRETER
#define SAVE_FRAME_BEFORE_WORK() save_frame_before_work(stack, values)
#else
#define SAVE_FRAME_BEFORE_WORK() SAVE_FRAME()
#endif
#define OBJECTS (SAVE_FRAME_BEFORE_WORK(), objects)
// Required after any code that may have changed the top frame or moved the stack.
#define LOAD_FRAME()              \
  do {                            \
    values = stack.top->values(); \
    refs = stack.top->refs();     \
  } while (false)

  const ObjectOps objects{stack.error, stack.limits, stack.spare_blocks};
  uint32_t* values;
  Object** refs;
  const Word* ip;
  const Word* tail = nullptr;  // the previous loop branch,
  const Word* head = nullptr;  // and its target
  LOAD_FRAME();
  ip = stack.ip;

#ifdef HALYARD_DISPATCH_SWITCH
dispatch:
  switch (ip->op) {
#include "vm/run/interpreter_ops.inc"
// Uses the macros of this file.
#include "vm/run/interpreter_fused.inc"
  }
  __builtin_unreachable();
#else
  DISPATCH();
#include "vm/run/interpreter_ops.inc"
// Uses the macros of this file.
#include "vm/run/interpreter_fused.inc"
#endif

other_loop:
  tail = ip;
  head = ip + ip[1].distance_if();
  ip = head;
  PASS_BRANCH();
  DISPATCH();
interrupted:
  SAVE_FRAME();
  stack.error = interruption(stack);
raise:
  SAVE_FRAME();
  note_place(stack, ip);
  return CallOutcome::failed;

#ifdef HALYARD_SAMPLED_INTERPRETER
sampled:
  tail = head = nullptr;  // so that the next statements need no register for `head`
  SAVE_FRAME();
  if (must_stop(stack)) goto interrupted;
  if (const Word* const other = sample(stack, ip)) ip = other;
  DISPATCH();
#endif

#undef HANDLER
#undef DECODED_HANDLER
#undef DISPATCH
#undef NEXT
#undef RAISE
#undef RAISE_STATUS
#undef STOP_IF_INTERRUPTED
#undef STOP_WORD
#undef PASS_BRANCH
#undef BRANCH_BY
#undef SAME_LOOP
#undef CLOSE_LOOP
#undef FRAME
#undef SAVE_FRAME
#undef SAVE_FRAME_BEFORE_WORK
#undef OBJECTS
#undef LOAD_FRAME
#undef TRACE_CALL
#undef TRACE_RETURN
#undef TRACE_IMPORT
}

}  // namespace halyard::vm
