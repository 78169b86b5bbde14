#include "vm/native/import_call.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "vm/native/native_registers.h"
#include "vm/native/scalars.h"
#include "vm/object/value.h"
#include "vm/run/calls.h"
#include "vm/run/failures.h"
#include "vm/run/invocation.h"

namespace halyard::vm {

namespace {

constexpr size_t kValuesWithoutHeap = 48;  // calls with more values use the heap

// Registers for the values of one call. The nth value has the pair of slots 2n, or the ref n.
class CallRegisters {
 public:
  explicit CallRegisters(size_t count) {
    if (count <= kValuesWithoutHeap) return;
    many_values_.resize(count);
    many_refs_.resize(count);
    many_numbers_.resize(count);
    values_ = many_values_.data();
    refs_ = many_refs_.data();
    numbers_ = many_numbers_.data();
  }
  CallRegisters(const CallRegisters&) = delete;
  CallRegisters& operator=(const CallRegisters&) = delete;

  uint32_t* values() { return reinterpret_cast<uint32_t*>(values_); }
  Object** refs() { return refs_; }
  const uint16_t* numbers(size_t first) const { return numbers_ + first; }
  uint64_t& value(size_t n) { return values_[n]; }
  Object*& ref(size_t n) { return refs_[n]; }

  void set_number(size_t n, char type) {
    numbers_[n] = static_cast<uint16_t>(type == 'r' ? kRefBit | n : 2 * n);
  }

 private:
  uint64_t few_values_[kValuesWithoutHeap];
  Object* few_refs_[kValuesWithoutHeap];
  uint16_t few_numbers_[kValuesWithoutHeap];
  std::vector<uint64_t> many_values_;
  std::vector<Object*> many_refs_;
  std::vector<uint16_t> many_numbers_;
  uint64_t* values_ = few_values_;
  Object** refs_ = few_refs_;
  uint16_t* numbers_ = few_numbers_;
};

// The names of values in messages.
[[gnu::cold]] std::unexpected<Status> wrong_value(size_t index, char type, const halyard_value_t& found) {
  return fail(Code::INVALID_ARGUMENT, "argument {} must be {}, found {}", index, type_name(type),
              value_text(found));
}

bool has_type(const halyard_value_t& value, char type) {
  return value.kind == value_kind(type) || (type == 'r' && value.kind == HALYARD_VALUE_NULL);
}

// Calls each(index, type) for each argument, with the tuples of spans repeated.
template <typename Each>
Result<> for_each_argument(const Convention& convention, const halyard_import_call_t& call, Each each) {
  size_t index = 0;
  size_t span = 0;
  for (const ConventionItem& item : convention.arguments) {
    if (item.type != 'C') {
      HALYARD_TRY(each(index++, item.type));
      continue;
    }
    for (uint32_t tuple = call.spans[span++]; tuple > 0; --tuple)
      for (const char type : item.span) HALYARD_TRY(each(index++, type));
  }
  return {};
}

Result<> check_counts(const Convention& convention, const halyard_import_call_t& call) {
  constexpr uint64_t kMaxValues = 1 << 14;  // that registers can number
  uint64_t arguments = 0;
  uint64_t spans = 0;
  for (const ConventionItem& item : convention.arguments) {
    if (item.type != 'C') {
      ++arguments;
      continue;
    }
    if (spans < call.span_count && call.spans) arguments += uint64_t{call.spans[spans]} * item.span.size();
    ++spans;
  }
  if (spans != call.span_count || arguments != call.argument_count ||
      convention.results.size() != call.result_count)
    return fail(Code::INVALID_ARGUMENT, "expected {} arguments, {} results and {} spans, found {}, {} and {}",
                arguments, convention.results.size(), spans, call.argument_count, call.result_count,
                call.span_count);
  if (arguments + call.result_count > kMaxValues)
    return fail(Code::INVALID_ARGUMENT, "a call with {} arguments and results; expected at most {}",
                arguments + call.result_count, kMaxValues);
  if ((arguments != 0 && !call.arguments) || (call.result_count != 0 && !call.results) ||
      (spans != 0 && !call.spans))
    return fail(Code::INVALID_ARGUMENT,
                "expected the addresses of arguments, results and spans, found a null pointer");
  return {};
}

bool may_wait(const FrameCall& frame, const Target& target, const halyard_import_call_t& call) {
  const bool is_program = target.is_program || !target.native;
  return frame.native->may_defer && ((call.flags & HALYARD_CALL_MAY_WAIT) != 0 || call.result_count == 0 ||
                                     ((call.flags & HALYARD_CALL_MAY_WAIT_FOR_PROGRAM) != 0 && is_program));
}

Result<> call_native_import(FrameCall& frame, const Target& target, const Convention& convention,
                            std::string_view name, halyard_import_call_t& call) {
  const size_t count = call.argument_count;
  CallRegisters registers(count + call.result_count);
  HALYARD_TRY(for_each_argument(convention, call, [&](size_t i, char type) -> Result<> {
    const halyard_value_t& value = call.arguments[i];
    if (!has_type(value, type)) [[unlikely]]
      return wrong_value(i, type, value);
    registers.set_number(i, type);
    registers.ref(i) =
        type == 'r' && value.kind == HALYARD_VALUE_OBJECT ? from_handle(value.object) : nullptr;
    std::memcpy(&registers.value(i), &value.i64, sizeof value.i64);
    return {};
  }));
  for (size_t i = 0; i < call.result_count; ++i) {
    registers.set_number(count + i, convention.results[i].type);
    registers.ref(count + i) = nullptr;
    registers.value(count + i) = 0;
  }
  // A convention's text has at most this many characters, so this many items.
  uint16_t segments[2 * (kMaxNativeArguments + kMaxNativeResults) + 4];
  size_t span = 0;
  if (convention.has_span)
    for (const ConventionItem& item : convention.arguments)
      segments[item.segment] = static_cast<uint16_t>(item.type == 'C' ? call.spans[span++] : 1);
  NativeCall native{.invocation = frame.native->invocation,
                    .state = target.instance->native_state.pointer,
                    .instance = target.instance,
                    .values = registers.values(),
                    .refs = registers.refs(),
                    .arguments = registers.numbers(0),
                    .segments = convention.has_span ? segments : nullptr,
                    .results = registers.numbers(count),
                    .resumed = (call.flags & HALYARD_CALL_RESUMED) != 0,
                    .may_defer = may_wait(frame, target, call),
                    .function_data = target.native_data};
  const Invocation::PlaceScope place(*frame.native->invocation, call.place);
  if (Status status = target.native(native))
    return std::unexpected(import_failure(std::move(status), target));
  if (native.deferred) {
    if (!native.may_defer) return std::unexpected(cannot_wait(name));
    call.deferred = 1;
    frame.waits = true;
    return {};
  }
  for (size_t i = 0; i < call.result_count; ++i) {
    halyard_value_t& result = call.results[i];
    result = {};
    result.kind = value_kind(convention.results[i].type);
    if (result.kind == HALYARD_VALUE_OBJECT) {
      result.object = to_handle(registers.ref(count + i));
      if (!result.object) result.kind = HALYARD_VALUE_NULL;
    } else {
      std::memcpy(&result.i64, &registers.value(count + i), sizeof result.i64);
    }
  }
  return {};
}

// A call of bytecode in the same context, kept while it waits.
class InnerCall final : public ObjectOf<InnerCall> {
 public:
  static const ObjectType kType;

  explicit InnerCall(Ref<Context> context) : invocation(std::move(context)) {
    invocation.set_ready_hook({[](void* self) { static_cast<InnerCall*>(self)->ready(); }, this});
  }
  ~InnerCall() { invocation.set_ready_hook({}); }

  // Lets the end of the inner wait end the wait of the outer call, also if it has come before.
  void pass_on(Invocation& outer) {
    Wakeup wakeup = outer.begin_wait(invocation.wait_deadline());
    const std::lock_guard lock(mutex_);
    if (is_ready_) wakeup.wake();
    is_ready_ = false;
    wakeup_ = std::move(wakeup);
  }

  Invocation invocation;

 private:
  void ready() {
    const std::lock_guard lock(mutex_);
    if (wakeup_) {
      wakeup_->wake();
      wakeup_.reset();
    } else {
      is_ready_ = true;
    }
  }

  std::mutex mutex_;
  bool is_ready_ = false;
  std::optional<Wakeup> wakeup_;
};

const ObjectType InnerCall::kType = object_type<InnerCall>("vm.inner_call");

Result<Ref<InnerCall>> resumed_call(Invocation& outer) {
  KeptRooms::Room* const room = outer.kept_rooms().take();
  if (room && room->objects.size() == 1) {
    Ref<Object> kept = Ref<Object>::adopt(std::exchange(room->objects[0], nullptr));
    if (cast<InnerCall>(kept.get())) return Ref<InnerCall>::adopt(static_cast<InnerCall*>(kept.detach()));
  }
  return fail(
      Code::FAILED_PRECONDITION,
      "HALYARD_CALL_RESUMED for a call that has not been deferred; take all rooms that were kept after "
      "it first");
}

Result<> call_bytecode_import(FrameCall& frame, const Target& target, const Convention& convention,
                              halyard_import_call_t& call) {
  Invocation& outer = *frame.native->invocation;
  const bool is_resumed = (call.flags & HALYARD_CALL_RESUMED) != 0;
  Ref<InnerCall> inner =
      is_resumed ? HALYARD_TRY(resumed_call(outer)) : make<InnerCall>(Ref<Context>::share(&outer.context()));
  Result<Outcome> outcome = Outcome::done;
  if (is_resumed) {
    outcome = inner->invocation.resume_inner();
  } else {
    const std::vector<Export>& exports = target.instance->module->exports();
    const auto exported = std::ranges::find(exports, target.function, &Export::function);
    const Callable callable = HALYARD_TRY(outer.context().callable(target.instance, *exported));
    std::vector<Variant> arguments;
    HALYARD_TRY(for_each_argument(convention, call, [&](size_t i, char type) -> Result<> {
      if (!has_type(call.arguments[i], type)) return wrong_value(i, type, call.arguments[i]);
      arguments.push_back(type == 'r' && call.arguments[i].kind == HALYARD_VALUE_NULL
                              ? Variant::ref({})
                              : to_variant(call.arguments[i]));
      return {};
    }));
    inner->invocation.set_stop(outer.stop_word());
    outcome = inner->invocation.begin_inner(callable, arguments);
  }
  if (!outcome) return std::unexpected(import_failure(std::move(outcome).error(), target));
  if (*outcome == Outcome::done) {
    std::vector<Variant> results(call.result_count);
    inner->invocation.take_results(results);
    for (size_t i = 0; i < results.size(); ++i) call.results[i] = to_value(results[i]);
    return {};
  }
  if (!may_wait(frame, target, call)) {
    inner->invocation.drop();
    const Module& module = *frame.native->instance->module;
    return std::unexpected(cannot_wait(module.imports()[call.import].name));
  }
  KeptRooms::Room* const room = HALYARD_TRY(outer.kept_rooms().keep(1, 0, outer.context().limits().memory));
  if (*outcome == Outcome::waiting) inner->pass_on(outer);
  room->objects[0] = inner.detach();
  call.deferred = 1;
  frame.waits = true;
  return {};
}

}  // namespace

Result<> call_import(FrameCall& frame, halyard_import_call_t& call) {
  constexpr uint32_t kKnownFlags =
      HALYARD_CALL_RESUMED | HALYARD_CALL_MAY_WAIT | HALYARD_CALL_MAY_WAIT_FOR_PROGRAM;
  const ModuleInstance& instance = *frame.native->instance;
  if (call.struct_size < HALYARD_FIELD_END(halyard_import_call_t, place))
    return fail(Code::INVALID_ARGUMENT,
                "a call of an import with {} bytes; set struct_size to sizeof(halyard_import_call_t)",
                call.struct_size);
  if (const uint32_t unknown = call.flags & ~kKnownFlags)
    return fail(Code::UNIMPLEMENTED, "flags {:#x} of a call of an import are unknown; use a newer Halyard",
                unknown);
  if (call.import >= instance.imports.size())
    return fail(Code::INVALID_ARGUMENT, "import {} does not exist; module '{}' has {}", call.import,
                instance.module->name(), instance.imports.size());
  const std::string_view name = instance.module->imports()[call.import].name;
  const Target& target = instance.imports[call.import];
  if (!target.instance) return std::unexpected(unresolved_import(name, instance.module->name()));
  const Convention& convention = instance.import_conventions[call.import];
  HALYARD_TRY(with_note(check_counts(convention, call), fmt::format("in a call of import '{}'", name)));
  call.deferred = 0;
  KeptRooms& rooms = frame.native->invocation->kept_rooms();
  const size_t kept = rooms.size();
  Result<> result = target.native ? call_native_import(frame, target, convention, name, call)
                                  : call_bytecode_import(frame, target, convention, call);
  // A failure leaves nothing that a later attempt would take.
  if (!result) rooms.drop_to(std::min(kept, rooms.size()));
  return result;
}

}  // namespace halyard::vm
