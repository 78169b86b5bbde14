// Traces of tensors for callbacks of the C ABI, shared by contexts and replays.
#pragma once

#include <string>

#include "hal/capture/tensor_trace.h"
#include "halyard/halyard.h"

namespace halyard::c {

Ref<hal::TensorTrace> tensor_trace(std::string pattern, halyard_tensor_fn tensor, void* user,
                                   hal::TracedSteps steps);
inline Ref<hal::TensorTrace> step_trace(std::string pattern, halyard_tensor_fn tensor, void* user) {
  return tensor_trace(std::move(pattern), tensor, user, hal::TracedSteps::all);
}

}  // namespace halyard::c
