// Registers to values and back.
#include "vm/frame_call.h"

#include <new>

#include "vm/ffi_call.h"
#include "vm/module_services.h"
#include "vm/native_registers.h"
#include "vm/value.h"

namespace halyard::vm {

namespace {

constexpr size_t kValuesOnTheStack = 64;  // of a call with more they come from the heap

halyard_value_t load_value(const NativeCall& call, uint16_t reg, char type) {
  halyard_value_t value = {};
  value.kind = value_kind(type);
  const bool wide = type == 'I' || type == 'F' || type == 'r';
  std::memcpy(&value.i64, register_address(call, reg, type), wide ? sizeof(uint64_t) : sizeof(uint32_t));
  if (type == 'r' && !value.object) value.kind = HALYARD_VALUE_NULL;
  return value;
}

}  // namespace

Result<std::unique_ptr<const FrameFunction>> FrameFunction::prepare(const Convention& convention,
                                                                    halyard_frame_function_t function,
                                                                    uint32_t flags,
                                                                    const halyard_type_t* types) {
  if (flags != 0) return fail(Code::INVALID_ARGUMENT, "a frame function with flags {:#x}; expected 0", flags);
  return std::unique_ptr<const FrameFunction>(new FrameFunction(convention, function, types));
}

size_t FrameFunction::argument_count(const NativeCall& call) const {
  size_t count = 0;
  for (const ConventionItem& item : convention_.arguments)
    count += item.type == 'C' ? call.segments[item.segment] * item.span.size() : 1;
  return count;
}

void FrameFunction::load_arguments(const NativeCall& call, halyard_value_t* arguments,
                                   uint32_t* spans) const {
  const uint16_t* reg = call.arguments;
  for (const ConventionItem& item : convention_.arguments) {
    if (item.type != 'C') {
      *arguments++ = load_value(call, *reg++, item.type);
      continue;
    }
    *spans = call.segments[item.segment];
    for (uint32_t tuple = 0; tuple < *spans; ++tuple)
      for (const char type : item.span) *arguments++ = load_value(call, *reg++, type);
    ++spans;
  }
}

Status FrameFunction::call(NativeCall& call) {
  const auto& self = *static_cast<const FrameFunction*>(call.function_data);
  const size_t argument_count = self.argument_count(call);
  const size_t result_count = self.convention_.results.size();
  halyard_value_t few[kValuesOnTheStack];
  std::unique_ptr<halyard_value_t[]> many;
  halyard_value_t* values = few;
  if (argument_count + result_count > kValuesOnTheStack) {
    many.reset(new (std::nothrow) halyard_value_t[argument_count + result_count]);
    if (!many)
      return Status(Code::RESOURCE_EXHAUSTED, fmt::format("no memory for {} arguments", argument_count));
    values = many.get();
  }
  uint32_t spans[kMostNativeArguments];
  self.load_arguments(call, values, spans);
  halyard_value_t* const results = values + argument_count;
  for (size_t i = 0; i < result_count; ++i) {
    results[i] = {};
    results[i].kind = value_kind(self.convention_.results[i].type);
  }
  uint32_t span_count = 0;
  for (const ConventionItem& item : self.convention_.arguments) span_count += item.type == 'C';
  halyard_module_call_t frame = {.struct_size = sizeof frame,
                                 .resumed = call.resumed ? 1u : 0u,
                                 .deferred = 0,
                                 .argument_count = static_cast<uint32_t>(argument_count),
                                 .result_count = static_cast<uint32_t>(result_count),
                                 .span_count = span_count,
                                 .arguments = values,
                                 .results = results,
                                 .spans = spans,
                                 .invocation = call.invocation,
                                 .services = &module_services(),
                                 .types = self.types_};
  if (Status status = Status::adopt(self.function_(call.state, &frame))) return status;
  call.deferred = frame.deferred != 0;
  if (call.deferred) return {};
  for (size_t i = 0; i < result_count; ++i)
    store_result(call, call.results[i], self.convention_.results[i].type, &results[i].i64);
  return {};
}

}  // namespace halyard::vm
