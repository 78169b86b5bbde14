// The slow paths of calls: native functions, results to the outside, stack growth, traces of errors.
#include "vm/run/calls.h"

#include <algorithm>
#include <new>

#include "base/work_scope.h"
#include "vm/compile/code_store.h"
#include "vm/module/source_location.h"
#include "vm/run/failures.h"
#include "vm/verify/verifier.h"

namespace halyard::vm {

namespace {

// The initial size. It is enough for most invocations, which can be very numerous.
constexpr size_t kFirstStackBytes = 1 << 10;
constexpr std::align_val_t kStackAlignment{alignof(Frame)};

// The maximum number of frames in a trace; the middle of a longer one is omitted.
constexpr size_t kTraceLines = 64;

}  // namespace

Stack::~Stack() {
  unwind();
  ::operator delete(memory, kStackAlignment);
}

bool Stack::reserve(size_t bytes) {
  const size_t capacity = static_cast<size_t>(end - memory);
  const size_t used =
      top ? static_cast<size_t>(reinterpret_cast<std::byte*>(top) - memory) + top->code->frame_bytes : 0;
  const size_t need = used + bytes;
  if (need <= capacity) return true;
  if (need > limits.stack_bytes) {
    error = stack_exhausted(limits.stack_bytes);
    return false;
  }
  const size_t grown =
      std::min<uint64_t>(std::max({need, 2 * capacity, kFirstStackBytes}), limits.stack_bytes);
  // Both the old and the new block exist while frames move.
  const uint64_t held = charge.bytes();
  if (Result<> charged = charge.grow_by(block_bytes(grown), "a stack"); !charged) {
    error = std::move(charged).error();
    return false;
  }
  auto* moved = static_cast<std::byte*>(::operator new(grown, kStackAlignment, std::nothrow));
  if (!moved) {
    charge.shrink_to(held);
    error = Status(Code::RESOURCE_EXHAUSTED, fmt::format("no memory for a stack of {} bytes", grown));
    return false;
  }
  if (top) {
    std::memcpy(moved, memory, used);
    top = reinterpret_cast<Frame*>(moved + (reinterpret_cast<std::byte*>(top) - memory));
  }
  ::operator delete(memory, kStackAlignment);
  memory = moved;
  end = moved + grown;
  charge.shrink_to(block_bytes(grown));
  return true;
}

Frame* Stack::push(const FunctionCode* code, ModuleInstance* instance, const Word* call) {
  if (!reserve(code->frame_bytes)) return nullptr;
  const uint32_t caller_bytes = top ? top->code->frame_bytes : 0;
  auto* frame = top ? reinterpret_cast<Frame*>(reinterpret_cast<std::byte*>(top) + caller_bytes)
                    : reinterpret_cast<Frame*>(memory);
  *frame = Frame{.code = code, .instance = instance, .call = call, .caller_bytes = caller_bytes};
  clear_banks(frame, code->zero_from, code->frame_bytes);
  top = frame;
  return frame;
}

namespace {

// Builds the moves from the registers that a call lists to those of the callee's convention.
void bind_by_convention(const FunctionCode& caller, const CallSite& site, const FunctionCode& callee,
                        Binding& binding) {
  const uint16_t* sources = caller.lists.data() + site.arguments;
  const size_t count = std::min<size_t>(callee.arguments.size(), site.argument_count);
  std::vector<ArgumentMove> wide;
  std::vector<ArgumentMove> refs;
  for (size_t i = 0; i < count; ++i) {
    const uint16_t destination = callee.arguments[i];
    const ArgumentMove move = {sources[i], static_cast<uint16_t>(destination & kRegisterMask)};
    if (destination & kRefBit) {
      refs.push_back(move);
    } else if (destination & kWideBit) {
      wide.push_back(move);
    } else {
      binding.moves.push_back(move);
    }
  }
  binding.narrow = static_cast<uint32_t>(binding.moves.size());
  binding.wide = static_cast<uint32_t>(wide.size());
  binding.refs = static_cast<uint32_t>(refs.size());
  binding.moves.insert(binding.moves.end(), wide.begin(), wide.end());
  binding.moves.insert(binding.moves.end(), refs.begin(), refs.end());
}

// Without a convention, each entry goes to the next register of its bank, if the callee uses that register.
void bind_by_lists(const FunctionCode& caller, const CallSite& site, const FunctionCode& callee,
                   Binding& binding) {
  const uint16_t* sources = caller.lists.data() + site.arguments;
  std::vector<ArgumentMove> refs;
  std::vector<ArgumentMove> dropped;
  for (size_t i = 0; i < site.argument_count; ++i) {
    if (sources[i] & kRefBit) {
      if (refs.size() < callee.ref_slots) {
        refs.push_back({sources[i], static_cast<uint16_t>(refs.size())});
      } else if (sources[i] & kMoveBit) {
        dropped.push_back({sources[i], 0});
      }
    } else if (binding.moves.size() < callee.value_slots) {
      binding.moves.push_back({sources[i], static_cast<uint16_t>(binding.moves.size())});
    }
  }
  binding.narrow = static_cast<uint32_t>(binding.moves.size());
  binding.refs = static_cast<uint32_t>(refs.size());
  binding.dropped = static_cast<uint32_t>(dropped.size());
  binding.moves.insert(binding.moves.end(), refs.begin(), refs.end());
  binding.moves.insert(binding.moves.end(), dropped.begin(), dropped.end());
}

Binding make_binding(const FunctionCode& caller, const CallSite& site, const FunctionCode& callee) {
  Binding binding = {.callee = &callee,
                     .entry = callee.words.data(),
                     .frame_bytes = callee.frame_bytes,
                     .zero_from = callee.zero_from,
                     .refs_offset = callee.refs_offset,
                     .moves = {}};
  if (callee.has_convention) {
    bind_by_convention(caller, site, callee, binding);
  } else {
    bind_by_lists(caller, site, callee, binding);
  }
  binding.narrow_only =
      binding.moves.size() == binding.narrow && sizeof(Frame) + binding.zero_from == binding.frame_bytes;
  return binding;
}

// Passes the arguments of a call into another module. Such a call is not bound once, because contexts share
// the caller's code and may link the import differently.
void pass_to_import(Frame& caller, Frame& frame, const CallSite& site) {
  const uint16_t* sources = caller.code->lists.data() + site.arguments;
  const std::span<const uint16_t> destinations = frame.code->arguments;
  const size_t count = std::min<size_t>(destinations.size(), site.argument_count);
  for (size_t i = 0; i < count; ++i) {
    const uint16_t destination = destinations[i] & kRegisterMask;
    if (destinations[i] & kRefBit) {
      frame.refs()[destination] = take_or_retain(caller.refs(), sources[i]);
    } else if (destinations[i] & kWideBit) {
      store_pair(frame.values() + destination, load_pair(caller.values() + sources[i]));
    } else {
      frame.values()[destination] = caller.values()[sources[i]];
    }
  }
}

}  // namespace

const Binding* bind_call(Stack& stack, const CallSite& site) {
  if (const Binding* there = std::atomic_ref(site.binding).load(std::memory_order_acquire)) return there;
  const FunctionCode& caller = *stack.top->code;
  Result<const FunctionCode*> callee = stack.top->instance->store->code(site.function);
  if (!callee) {
    stack.error = std::move(callee).error();
    return nullptr;
  }
  auto binding = std::make_unique<const Binding>(make_binding(caller, site, **callee));
  // Another thread may have stored its binding first. That binding is equal, and is kept.
  const Binding* there = nullptr;
  if (std::atomic_ref(site.binding)
          .compare_exchange_strong(there, binding.get(), std::memory_order_acq_rel)) {
    std::atomic_ref(*reinterpret_cast<uint64_t*>(site.bound))
        .store(reinterpret_cast<uintptr_t>(binding.get()), std::memory_order_release);
    return binding.release();
  }
  return there;
}

Frame* enter_import(Stack& stack, const Target& target, const CallSite& site) {
  if (!target.instance) {
    const ModuleInstance& importer = *stack.top->instance;
    stack.error = unresolved_import(importer.module->imports()[site.function].name, importer.module->name());
    return nullptr;
  }
  Result<const FunctionCode*> code = target.instance->store->code(target.function);
  if (!code) {
    stack.error = std::move(code).error();
    return nullptr;
  }
  Frame* frame = stack.push(*code, target.instance, stack.ip);
  if (frame) pass_to_import(*frame->caller(), *frame, site);
  return frame;
}

namespace {

// Converts one result for the outside. `entry` is its register; with MOVE, the ref is moved out.
Variant to_variant(Frame& frame, char type, uint16_t entry) {
  const uint32_t* value = frame.values() + (entry & kRegisterMask);
  switch (type) {
    case 'r':
      return Variant::ref(Ref<Object>::adopt(take_or_retain(frame.refs(), entry)));
    case 'I':
      return Variant::value(ValueType::i64, load_pair(value));
    case 'F':
      return Variant::value(ValueType::f64, load_pair(value));
    case 'f':
      return Variant::value(ValueType::f32, *value);
    default:
      return Variant::value(ValueType::i32, *value);
  }
}

}  // namespace

void leave_to_outside(Stack& stack, Frame& frame, const uint16_t* list) {
  stack.results.clear();
  for (size_t i = 0; i < stack.result_types.size(); ++i) {
    stack.results.push_back(to_variant(frame, stack.result_types[i], list[i]));
  }
  stack.pop();
}

bool too_many_results(Stack& stack, size_t count, const CallSite& site) {
  stack.error =
      Status(Code::FAILED_PRECONDITION,
             fmt::format("the callee returns {} values, but the call takes {}", count, site.result_count));
  return false;
}

Status import_failure(Status status, const Target& target) {
  const Module& module = *target.instance->module;
  if (!target.is_program)
    status = std::move(status).note(
        fmt::format("in native function {}.{}", module.name(), module.exports()[target.function].name));
  return std::move(status).note("called as an import");
}

CallOutcome call_native(Stack& stack, Frame& frame, const Target& target, const CallSite& site) {
  const uint16_t* lists = frame.code->lists.data();
  const bool may_wait = site.yieldable || site.result_count == 0 || target.is_program;
  NativeCall call{.invocation = stack.invocation,
                  .state = target.instance->native_state.pointer,
                  .instance = target.instance,
                  .values = frame.values(),
                  .refs = frame.refs(),
                  .arguments = lists + site.bare_arguments,
                  .segments = site.variadic ? lists + site.segments : nullptr,
                  .results = lists + site.results,
                  .resumed = stack.resumed,
                  .deferred = false,
                  .may_defer = may_wait,
                  .function_data = target.native_data};
  stack.resumed = false;
  Status status = target.native(call);
  if (status) [[unlikely]] {
    stack.error = import_failure(std::move(status), target);
    return CallOutcome::failed;
  }
  if (call.deferred) [[unlikely]] {
    if (!may_wait) {
      stack.error = cannot_wait(frame.code->module->imports()[site.function].name);
      return CallOutcome::failed;
    }
    stack.resumed = true;
    return CallOutcome::suspended;
  }
  const uint16_t* releases = lists + site.releases;
  for (size_t i = 0; i < site.release_count; ++i) put_ref(call.refs[releases[i]], nullptr);
  return CallOutcome::done;
}

CallOutcome call_native_entry(Stack& stack) {
  Frame& frame = *stack.top;
  NativeCall call{.invocation = stack.invocation,
                  .state = frame.instance->native_state.pointer,
                  .instance = frame.instance,
                  .values = frame.values(),
                  .refs = frame.refs(),
                  .arguments = stack.native_arguments.data(),
                  .segments = nullptr,
                  .results = stack.native_results.data(),
                  .resumed = stack.resumed,
                  .deferred = false,
                  .function_data = stack.native->data};
  Status status = stack.native->function(call);
  if (status) {
    const auto& module = static_cast<const NativeModule&>(*frame.instance->module);
    stack.error = module.program() ? std::move(status)
                                   : std::move(status).note(fmt::format("in native function {}.{}",
                                                                        module.name(), stack.callee->name));
    return CallOutcome::failed;
  }
  stack.resumed = call.deferred;
  if (call.deferred) return CallOutcome::suspended;
  leave_to_outside(stack, frame, stack.native_results.data());
  return CallOutcome::done;
}

namespace {

// `callee` is the frame above. The line has the offset at which the frame continues, and the source location
// of the call.
std::string frame_line(const Frame& frame, const Frame& callee, size_t depth) {
  const BytecodeModule& module = *frame.code->module;
  const uint32_t function = frame.code->function;
  const uint32_t call_pc = frame.code->pc_of(static_cast<uint32_t>(callee.call - frame.code->words.data()));
  std::string source = source_location(module, function, call_pc);
  if (source.empty()) source = "-";
  const std::string_view name = module.function_name(function);
  return fmt::format("\n[{:2}] bytecode {}{}:{} {}", depth, module.name(),
                     name.empty() ? fmt::format("@{}", function) : fmt::format(".{}", name),
                     call_site(callee.call).return_pc, source);
}

}  // namespace

std::string place_text(const FunctionCode& code, const Word* instruction) {
  const uint32_t pc = code.pc_of(static_cast<uint32_t>(instruction - code.words.data()));
  std::string place = code_location(*code.module, code.function, pc);
  if (const std::string source = source_location(*code.module, code.function, pc); !source.empty())
    place += fmt::format(" ({})", source);
  return place;
}

Status interruption(const Stack& stack) {
  if (stack.stop != stack.own_stop()) {
    if (const Code stopped = stop_code(stack.stop); stopped != Code::OK) return stopped_work(stopped);
  }
  const auto code = static_cast<Code>(stack.interrupted.load());
  if (code != Code::DEADLINE_EXCEEDED) return Status(code, "the call was cancelled");
  const auto limit = std::chrono::duration_cast<std::chrono::milliseconds>(stack.limits.time);
  if (limit.count() == 0) return Status(code, "the call did not end before its deadline");
  return Status(
      code,
      fmt::format("the call took longer than its time limit of {} ms; raise the limit if it is too short",
                  limit.count()));
}

namespace {

// Builds the trace from the outermost function to the one that failed.
void note_trace(const Stack& stack, Status& error) {
  // The failing frame is omitted, and one more frame for each module boundary that the error passed.
  size_t hidden = 1;
  std::vector<Frame*> frames;
  for (Frame* frame = stack.top; frame; frame = frame->caller()) {
    frames.push_back(frame);
    if (frame->call && call_site(frame->call).is_import) {
      error = std::move(error).note("called as an import");
      ++hidden;
    }
  }
  std::string trace;
  const size_t count = frames.size();
  const size_t shown = count > hidden ? count - hidden : 0;
  for (size_t i = 0; i < shown; ++i) {
    if (shown > kTraceLines && i == kTraceLines / 2) {
      const size_t left_out = shown - kTraceLines;
      trace += fmt::format("\n     ... {} more", left_out);
      i += left_out;
    }
    trace += frame_line(*frames[hidden + i], *frames[hidden + i - 1], shown - 1 - i);
  }
  if (!trace.empty()) error = std::move(error).note(trace);
}

}  // namespace

Status unwind_error(Stack& stack) noexcept {
  Status error = std::move(stack.error);
  stack.error = Status();
  try {
    if (!stack.native && stack.top) note_trace(stack, error);
    error = std::move(error).note(fmt::format("in the call of function '{}'", stack.callee->name));
    const std::string_view declaration = stack.callee->attribute("iree.abi.declaration");
    if (!declaration.empty()) error = std::move(error).note(fmt::format("`{}`", declaration));
  } catch (const std::bad_alloc&) {  // out of memory: skip additional information
  }
  stack.unwind();
  return error;
}

}  // namespace halyard::vm
