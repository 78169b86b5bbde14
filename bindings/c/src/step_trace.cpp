// Converts the values of a trace to the struct of the C ABI.
#include "step_trace.h"

#include <utility>

#include "handles.h"

namespace halyard::c {

Ref<hal::TensorTrace> tensor_trace(std::string pattern, halyard_tensor_fn tensor, void* user,
                                   hal::TracedSteps steps) {
  return make<hal::TensorTrace>(
      std::move(pattern),
      [tensor, user](const hal::TracedTensor& traced) {
        const halyard_traced_tensor_t given = {
            .struct_size = sizeof given,
            .binding = traced.binding,
            .dispatch = traced.dispatch,
            .function = to_text(traced.function),
            .data = traced.bytes.data(),
            .size = traced.bytes.size(),
            .after = traced.after,
            .reserved = 0,
            .before = traced.before.data(),
            .execution = traced.execution,
            .command = traced.command,
            .operation = to_text(traced.operation),
            .device = to_text(traced.device),
            .place = to_text(traced.place),
            .workgroups = {traced.workgroups[0], traced.workgroups[1], traced.workgroups[2]},
            .buffer = traced.buffer,
            .offset = traced.offset,
            .source = to_text(traced.source)};
        return to_result(Status::adopt(tensor(user, &given)));
      },
      steps);
}

}  // namespace halyard::c
