// Copying registers to values and back.
#include "vm/native/frame_call.h"

#include <new>

#include "vm/native/ffi_call.h"
#include "vm/native/frame_state.h"
#include "vm/native/module_services.h"
#include "vm/native/native_registers.h"
#include "vm/native/program_services.h"
#include "vm/native/scalars.h"
#include "vm/object/value.h"
#include "vm/run/invocation.h"

namespace halyard::vm {

namespace {

constexpr size_t kValuesOnTheStack = 64;  // calls with more values use the heap
constexpr uint32_t kNeverStopped = 0;     // for calls without an invocation

// Appends one value for each type, read from the next registers.
void load_values(const NativeCall& call, std::string_view types, const uint16_t*& reg,
                 halyard_value_t*& value) {
  for (const char type : types) {
    value->kind = value_kind(type);
    value->reserved = 0;
    value->i64 = 0;
    if (type == 'r') {
      Object* const object = call.refs[*reg & kRefOrdinalMask];
      value->object = to_handle(object);
      if (!object) value->kind = HALYARD_VALUE_NULL;
    } else if (type == 'I' || type == 'F') {
      std::memcpy(&value->i64, call.values + *reg, sizeof value->i64);
    } else {
      std::memcpy(&value->i32, call.values + *reg, sizeof value->i32);
    }
    ++reg;
    ++value;
  }
}

// Converts a result whose kind differs from its type, if the conversion is exact.
[[gnu::cold]] Result<> convert_result(halyard_value_t& result, size_t index, char type) {
  const ValueType wanted = value_type(type);
  if (result.reserved != 0)
    return fail(Code::INVALID_ARGUMENT, "result {} has {:#x} in the field `reserved`; expected 0", index,
                result.reserved);
  if (wanted == ValueType::none && result.kind == HALYARD_VALUE_NULL) {
    if (!result.object) return {};
    return fail(Code::INVALID_ARGUMENT,
                "result {} is of kind HALYARD_VALUE_NULL, but has an object; set HALYARD_VALUE_OBJECT",
                index);
  }
  const std::optional<Variant> converted =
      wanted == ValueType::none ? std::nullopt : exact_number(result, wanted);
  if (!converted)
    return fail(Code::INVALID_ARGUMENT, "result {} must be {}, found {}{}", index, type_text(wanted),
                value_text(result),
                wanted != ValueType::none && is_number(result.kind) ? ", which it cannot hold exactly" : "");
  result = to_value(*converted);
  return {};
}

// Converts the results to the kinds of these types. On failure releases the objects among the results.
Result<> check_results(halyard_value_t* results, std::string_view types) {
  for (size_t i = 0; i < types.size(); ++i) {
    if (results[i].kind == value_kind(types[i]) && results[i].reserved == 0) [[likely]]
      continue;
    Result<> converted = convert_result(results[i], i, types[i]);
    if (converted) continue;
    for (size_t given = 0; given < types.size(); ++given)
      if (results[given].kind == HALYARD_VALUE_OBJECT) release(from_handle(results[given].object));
    return converted;
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<const FrameFunction>> FrameFunction::prepare(
    const Convention& convention, halyard_frame_function_t function, uint32_t flags,
    const halyard_type_t* types, uint32_t export_index, const NativeProgram* program) {
  if (flags != 0) return fail(Code::INVALID_ARGUMENT, "a frame function with flags {:#x}; expected 0", flags);
  return std::unique_ptr<const FrameFunction>(
      new FrameFunction(convention, function, types, export_index, program));
}

FrameFunction::FrameFunction(const Convention& convention, halyard_frame_function_t function,
                             const halyard_type_t* types, uint32_t export_index, const NativeProgram* program)
    : function_(function), types_(types), export_index_(export_index), program_(program) {
  for (const ConventionItem& item : convention.arguments) {
    if (item.type == 'C') {
      spans_.push_back({item.segment, std::exchange(arguments_, {}), item.span});
    } else {
      arguments_ += item.type;
      ++fixed_count_;
    }
  }
  for (const ConventionItem& item : convention.results) results_ += item.type;
}

Status FrameFunction::call(NativeCall& call) {
  const auto& self = *static_cast<const FrameFunction*>(call.function_data);
  size_t argument_count = self.fixed_count_;
  for (const Span& span : self.spans_) argument_count += call.segments[span.segment] * span.types.size();
  const size_t result_count = self.results_.size();
  halyard_value_t few[kValuesOnTheStack];
  std::unique_ptr<halyard_value_t[]> many;
  halyard_value_t* values = few;
  if (argument_count + result_count > kValuesOnTheStack) {
    many.reset(new (std::nothrow) halyard_value_t[argument_count + result_count]);
    if (!many)
      return Status(Code::RESOURCE_EXHAUSTED, fmt::format("no memory for {} arguments", argument_count));
    values = many.get();
  }
  uint32_t span_sizes[kMaxNativeArguments];
  uint32_t* span_size = span_sizes;
  halyard_value_t* value = values;
  const uint16_t* reg = call.arguments;
  for (const Span& span : self.spans_) {
    load_values(call, span.before, reg, value);
    *span_size = call.segments[span.segment];
    for (uint32_t tuple = 0; tuple < *span_size; ++tuple) load_values(call, span.types, reg, value);
    ++span_size;
  }
  load_values(call, self.arguments_, reg, value);
  halyard_value_t* const results = value;
  for (const char type : self.results_) {
    *value = {};
    value++->kind = value_kind(type);
  }
  FrameCall frame = {{.struct_size = sizeof(halyard_module_call_t),
                      .resumed = call.resumed ? 1u : 0u,
                      .deferred = 0,
                      .argument_count = static_cast<uint32_t>(argument_count),
                      .result_count = static_cast<uint32_t>(result_count),
                      .span_count = static_cast<uint32_t>(self.spans_.size()),
                      .arguments = values,
                      .results = results,
                      .spans = span_sizes,
                      .invocation = call.invocation,
                      .services = &module_services(),
                      .types = self.types_,
                      .export_index = self.export_index_,
                      .reserved = 0,
                      .stop = call.invocation ? call.invocation->stop_word() : &kNeverStopped,
                      .program = nullptr},
                     &call,
                     false,
                     {}};
  if (self.program_ && call.instance && call.invocation) {
    frame.of_program = program_call(*self.program_, call);
    frame.program = &frame.of_program;
  }
  if (Status status = Status::adopt(self.function_(call.state, &frame))) return status;
  call.deferred = frame.deferred != 0;
  if (frame.waits && !call.deferred) call.invocation->abandon_wait();
  if (call.deferred) return {};
  if (Result<> checked = check_results(results, self.results_); !checked) return std::move(checked).error();
  for (size_t i = 0; i < result_count; ++i)
    store_result(call, call.results[i], self.results_[i], &results[i].i64);
  return {};
}

}  // namespace halyard::vm
