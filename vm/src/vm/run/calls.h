// Entering and leaving functions: passing arguments and results. Specified by calling-convention.md, sections
// 3 to 6.
#pragma once

#include <algorithm>
#include <atomic>
#include <utility>

#include "vm/run/stack.h"

namespace halyard::vm {

inline uint64_t load_pair(const uint32_t* slot) {
  uint64_t value;
  std::memcpy(&value, slot, sizeof value);
  return value;
}
inline void store_pair(uint32_t* slot, uint64_t value) { std::memcpy(slot, &value, sizeof value); }

// Stores an owned reference in a ref register.
inline void put_ref(Object*& slot, Object* object) { release(std::exchange(slot, object)); }

// Returns an owned reference to the object of a ref field; with MOVE, the register becomes null.
inline Object* take_or_retain(Object** refs, uint16_t field) {
  Object*& slot = refs[field & kRegisterMask];
  if (field & kMoveBit) return std::exchange(slot, nullptr);
  retain(slot);
  return slot;
}

enum class CallOutcome : uint8_t { done, failed, suspended };

// Binds a call within the module to its callee, which is verified and decoded on its first call. Returns null
// and sets stack.error if the callee is rejected.
const Binding* bind_call(Stack& stack, const CallSite& site);

// Pushes a frame for an import that a bytecode module provides, and fills its argument registers from the top
// frame, whose ip is at the call. Returns null and sets stack.error if the stack is full or the import is
// missing.
Frame* enter_import(Stack& stack, const Target& target, const CallSite& site);

inline const ArgumentMove* pass_narrow(const Binding& binding, const uint32_t* from, uint32_t* to) {
  const ArgumentMove* move = binding.moves.data();
  for (uint32_t i = binding.narrow; i > 0; --i, ++move) to[move->destination] = from[move->source];
  return move;
}

// Fills the argument registers of a new frame. Refs are taken in the order of the list.
inline void pass_arguments(const Binding& binding, const uint32_t* from, Object** from_refs, uint32_t* to,
                           Object** to_refs) {
  const ArgumentMove* move = pass_narrow(binding, from, to);
  for (uint32_t i = binding.wide; i > 0; --i, ++move)
    store_pair(to + move->destination, load_pair(from + move->source));
  for (uint32_t i = binding.refs; i > 0; --i, ++move)
    to_refs[move->destination] = take_or_retain(from_refs, move->source);
  for (uint32_t i = binding.dropped; i > 0; --i, ++move) release(take_or_retain(from_refs, move->source));
}

// Stores the results of the outermost function in stack.results and empties the stack.
void leave_to_outside(Stack& stack, Frame& frame, const uint16_t* list);
bool too_many_results(Stack& stack, size_t count, const CallSite& site);

// Passes `count` results, listed at `list`, to the caller or out of the invocation, and pops the frame.
// Returns false and sets stack.error if the caller has no registers for them.
inline bool leave(Stack& stack, uint32_t list, size_t count) {
  Frame& frame = *stack.top;
  const uint16_t* sources = frame.code->lists.data() + list;
  Frame* caller = frame.caller();
  if (!caller) [[unlikely]] {
    leave_to_outside(stack, frame, sources);
    return true;
  }
  const CallSite& site = call_site(frame.call);
  if (site.is_import) {
    count = std::min<size_t>({count, frame.code->result_count, site.result_count});
  } else if (count > site.result_count) [[unlikely]] {
    return too_many_results(stack, count, site);
  }
  const uint16_t* destinations = caller->code->lists.data() + site.results;
  for (size_t i = 0; i < count; ++i) {
    const uint16_t source = sources[i];
    const uint16_t destination = destinations[i];
    if (((source ^ destination) & kRefBit) != 0) continue;  // only in calls without a convention
    if (source & kRefBit) {
      put_ref(caller->refs()[destination & kRegisterMask], take_or_retain(frame.refs(), source));
    } else if (source & kWideBit) {
      store_pair(caller->values() + destination, load_pair(frame.values() + (source & kRegisterMask)));
    } else {
      caller->values()[destination] = frame.values()[source];
    }
  }
  stack.pop();
  return true;
}

// The failure of an import that a native module provides, with notes.
Status import_failure(Status status, const Target& target);

// Calls an import that a native module provides.
CallOutcome call_native(Stack& stack, Frame& frame, const Target& target, const CallSite& site);

// Calls a native function from outside, or again after it has deferred.
CallOutcome call_native_entry(Stack& stack);

// The location of an instruction in the bytecode and, if known, in the source.
std::string place_text(const FunctionCode& code, const Word* instruction);

// The failure of an interrupted call.
Status interruption(const Stack& stack);

// Unwinds the stack, and returns stack.error with the locations of its frames.
Status unwind_error(Stack& stack) noexcept;

}  // namespace halyard::vm
