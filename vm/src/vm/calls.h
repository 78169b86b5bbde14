// Entering and leaving functions: where arguments and results go. Specified by calling-convention.md,
// sections 3 to 6.
#pragma once

#include <algorithm>
#include <atomic>
#include <utility>

#include "vm/stack.h"

namespace halyard::vm {

inline uint64_t load_pair(const uint32_t* slot) {
  uint64_t value;
  std::memcpy(&value, slot, sizeof value);
  return value;
}
inline void store_pair(uint32_t* slot, uint64_t value) { std::memcpy(slot, &value, sizeof value); }

// Puts an owned reference into a ref register.
inline void put_ref(Object*& slot, Object* object) { release(std::exchange(slot, object)); }

// An owned reference to what a ref field names; with MOVE it is taken out.
inline Object* take_or_retain(Object** refs, uint16_t field) {
  Object*& slot = refs[field & kRegisterMask];
  if (field & kMoveBit) return std::exchange(slot, nullptr);
  retain(slot);
  return slot;
}

enum class CallOutcome : uint8_t { done, failed, suspended };

// The callee of an internal call, which is verified and decoded where this is the first. Null, with
// stack.error set, where it does not pass.
const FunctionCode* resolve_callee(Stack& stack, const Frame& frame, const CallSite& site);

// Arguments of a callee without a convention: every entry takes the next register of its bank, if the callee
// has a use for it.
void pass_by_lists(Frame& caller, Frame& frame, const CallSite& site);

// Pushes a frame for `callee` and fills its argument registers from the caller's. Null, with stack.error set,
// where the stack is full.
inline Frame* enter(Stack& stack, const FunctionCode* callee, ModuleInstance* instance,
                    const CallSite& site) {
  Frame* frame = stack.push(callee, instance, callee->refs_offset, callee->frame_bytes);
  if (!frame) [[unlikely]]
    return nullptr;
  Frame* caller = frame->caller();
  if (!callee->has_convention && !site.is_import) [[unlikely]] {
    pass_by_lists(*caller, *frame, site);
    return frame;
  }
  const uint16_t* sources = caller->code->lists.data() + site.arguments;
  const uint16_t* destinations = callee->arguments.data();
  const size_t count = std::min<size_t>(callee->arguments.size(), site.argument_count);
  uint32_t* const to_values = frame->values();
  const uint32_t* const from_values = caller->values();
  for (size_t i = 0; i < count; ++i) {
    const uint16_t source = sources[i];
    const uint16_t destination = destinations[i];
    if (destination & kRefBit) {
      frame->refs()[destination & kRegisterMask] = take_or_retain(caller->refs(), source);
    } else if (destination & kWideBit) {
      store_pair(to_values + (destination & kRegisterMask), load_pair(from_values + source));
    } else {
      to_values[destination] = from_values[source];
    }
  }
  return frame;
}

// An import that bytecode provides.
Frame* enter_import(Stack& stack, const Target& target, const CallSite& site);

// The results of the outermost function go to stack.results; the stack is empty then.
void leave_to_outside(Stack& stack, Frame& frame, const uint16_t* list);
bool too_many_results(Stack& stack, size_t count, const CallSite& site);

// Hands `count` results, listed at `list`, to the caller or to the outside, and pops the frame. False, with
// stack.error set, where the caller has no place for them.
inline bool leave(Stack& stack, uint32_t list, size_t count) {
  Frame& frame = *stack.top;
  const uint16_t* sources = frame.code->lists.data() + list;
  Frame* caller = frame.caller();
  if (!caller) [[unlikely]] {
    leave_to_outside(stack, frame, sources);
    return true;
  }
  const CallSite& site = *caller->site;
  if (site.is_import) {
    count = std::min<size_t>({count, frame.code->result_count, site.result_count});
  } else if (count > site.result_count) [[unlikely]] {
    return too_many_results(stack, count, site);
  }
  const uint16_t* destinations = caller->code->lists.data() + site.results;
  for (size_t i = 0; i < count; ++i) {
    const uint16_t source = sources[i];
    const uint16_t destination = destinations[i];
    if (((source ^ destination) & kRefBit) != 0)
      continue;  // only where there is no convention to verify with
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

// An import that C++ provides.
CallOutcome call_native(Stack& stack, Frame& frame, const Target& target, const CallSite& site);

// The call of a native function from outside; again after it has deferred.
CallOutcome call_native_entry(Stack& stack);

// Where an error passed on its way up, from what the stack shows. Unwinds the stack and gives stack.error
// away.
Status unwind_error(Stack& stack);

}  // namespace halyard::vm
