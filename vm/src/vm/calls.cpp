// The slow half of calls: natives, results to the outside, growth of the stack, traces of errors.
#include "vm/calls.h"

#include <algorithm>
#include <new>

#include "vm/verifier.h"

namespace halyard::vm {

namespace {

constexpr size_t kFirstStackBytes = 16 << 10;
constexpr std::align_val_t kStackAlignment{alignof(Frame)};

// Lines of a trace; of a longer one the middle is left out.
constexpr size_t kTraceLines = 64;

}  // namespace

Stack::~Stack() {
  unwind();
  ::operator delete(memory, kStackAlignment);
}

bool Stack::grow(size_t need) {
  if (need > limits.stack_bytes) {
    error = Status(Code::RESOURCE_EXHAUSTED,
                   fmt::format("calls are nested too deep for a stack of {} bytes", limits.stack_bytes));
    return false;
  }
  const size_t bytes =
      std::min<uint64_t>(std::max({need, 2 * capacity, kFirstStackBytes}), limits.stack_bytes);
  auto* moved = static_cast<std::byte*>(::operator new(bytes, kStackAlignment, std::nothrow));
  if (!moved) {
    error = Status(Code::RESOURCE_EXHAUSTED, fmt::format("no memory for a stack of {} bytes", bytes));
    return false;
  }
  if (top) {
    const size_t offset = static_cast<size_t>(reinterpret_cast<std::byte*>(top) - memory);
    std::memcpy(moved, memory, offset + top->bytes);
    top = reinterpret_cast<Frame*>(moved + offset);
  }
  ::operator delete(memory, kStackAlignment);
  memory = moved;
  capacity = bytes;
  return true;
}

const FunctionCode* resolve_callee(Stack& stack, const Frame& frame, const CallSite& site) {
  Result<const FunctionCode*> code = frame.code->module->code(site.function);
  if (!code) {
    stack.error = std::move(code).error();
    return nullptr;
  }
  std::atomic_ref(site.callee).store(*code, std::memory_order_release);
  return *code;
}

void pass_by_lists(Frame& caller, Frame& frame, const CallSite& site) {
  const uint16_t* sources = caller.code->lists.data() + site.arguments;
  uint32_t value = 0;
  uint32_t ref = 0;
  for (size_t i = 0; i < site.argument_count; ++i) {
    const uint16_t source = sources[i];
    if (source & kRefBit) {
      if (ref < frame.code->ref_slots) frame.refs()[ref++] = take_or_retain(caller.refs(), source);
    } else {
      if (value < frame.code->value_slots) frame.values()[value++] = caller.values()[source];
    }
  }
}

Frame* enter_import(Stack& stack, const Target& target, const CallSite& site) {
  if (!target.instance) {
    const ModuleInstance& importer = *stack.top->instance;
    stack.error = Status(Code::NOT_FOUND, fmt::format("optional import '{}' of module '{}' is not resolved",
                                                      importer.module->imports()[site.function].name,
                                                      importer.module->name()));
    return nullptr;
  }
  Result<const FunctionCode*> code = target.instance->bytecode->code(target.function);
  if (!code) {
    stack.error = std::move(code).error();
    return nullptr;
  }
  return enter(stack, *code, target.instance, site);
}

namespace {

// One result as the outside sees it. `entry` names the register; MOVE takes a ref out.
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
             fmt::format("{} values are returned to a call that takes {}", count, site.result_count));
  return false;
}

CallOutcome call_native(Stack& stack, Frame& frame, const Target& target, const CallSite& site) {
  const uint16_t* lists = frame.code->lists.data();
  NativeCall call{.invocation = stack.invocation,
                  .state = target.instance->native_state.pointer,
                  .values = frame.values(),
                  .refs = frame.refs(),
                  .arguments = lists + site.bare_arguments,
                  .segments = site.variadic ? lists + site.segments : nullptr,
                  .results = lists + site.results,
                  .resumed = frame.resumed,
                  .deferred = false,
                  .function_data = target.native_data};
  frame.resumed = false;
  Status status = target.native(call);
  if (status) [[unlikely]] {
    const Module& module = *target.instance->module;
    stack.error = std::move(status)
                      .note(fmt::format("while invoking native function {}.{}", module.name(),
                                        module.exports()[target.function].name))
                      .note("while calling import");
    return CallOutcome::failed;
  }
  if (call.deferred) [[unlikely]] {
    if (!site.yieldable && site.result_count > 0) {
      stack.error = Status(
          Code::UNIMPLEMENTED,
          fmt::format("import '{}' is not done yet, but its results are expected by a call that cannot "
                      "wait; it needs call.yieldable",
                      frame.code->module->imports()[site.function].name));
      return CallOutcome::failed;
    }
    frame.resumed = true;
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
                  .values = frame.values(),
                  .refs = frame.refs(),
                  .arguments = stack.native_arguments.data(),
                  .segments = nullptr,
                  .results = stack.native_results.data(),
                  .resumed = frame.resumed,
                  .deferred = false,
                  .function_data = static_cast<const NativeModule&>(*frame.instance->module)
                                       .native_export(stack.callee->function)
                                       .data};
  Status status = stack.native(call);
  if (status) {
    stack.error = std::move(status).note(fmt::format("while invoking native function {}.{}",
                                                     frame.instance->module->name(), stack.callee->name));
    return CallOutcome::failed;
  }
  frame.resumed = call.deferred;
  if (call.deferred) return CallOutcome::suspended;
  leave_to_outside(stack, frame, stack.native_results.data());
  return CallOutcome::done;
}

namespace {

std::string frame_line(Frame& frame, size_t depth) {
  const std::string_view module = frame.instance->module->name();
  const std::string_view function = frame.code->module->function_name(frame.code->function);
  const uint32_t pc = frame.site ? frame.site->return_pc : 0;
  if (function.empty())
    return fmt::format("\n[{:2}] bytecode {}@{}:{} -", depth, module, frame.code->function, pc);
  return fmt::format("\n[{:2}] bytecode {}.{}:{} -", depth, module, function, pc);
}

}  // namespace

Status unwind_error(Stack& stack) {
  Status error = std::move(stack.error);
  stack.error = Status();
  if (!stack.native && stack.top) {
    // The function that failed is gone by now, and one more frame for each module that its error went
    // through.
    size_t hidden = 1;
    std::vector<Frame*> frames;
    for (Frame* frame = stack.top; frame; frame = frame->caller()) {
      frames.push_back(frame);
      if (Frame* caller = frame->caller(); caller && caller->site->is_import) {
        error = std::move(error).note("while calling import");
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
      trace += frame_line(*frames[hidden + i], shown - 1 - i);
    }
    if (!trace.empty()) error = std::move(error).note(trace);
  }
  stack.unwind();
  error = std::move(error).note(fmt::format("invoking function '{}'", stack.callee->name));
  const std::string_view declaration = stack.callee->attribute("iree.abi.declaration");
  if (!declaration.empty()) error = std::move(error).note(fmt::format("`{}`", declaration));
  return error;
}

}  // namespace halyard::vm
