// Frame functions as natives: C functions that get their call as a struct, with values copied out of the
// caller's registers and back. They may take a variable number of arguments and may defer.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "halyard/module.h"
#include "vm/module/calling_convention.h"
#include "vm/native/native_module.h"

namespace halyard::vm {

// A call as the function has it, and what its services have to know about it. Only on the stack of
// FrameFunction::call.
struct FrameCall : halyard_module_call_t {
  NativeCall* native;
  bool waits;
};

class FrameFunction {
 public:
  // `types` lives as long as the function. INVALID_ARGUMENT: flags, of which there are none.
  static Result<std::unique_ptr<const FrameFunction>> prepare(const Convention& convention,
                                                              halyard_frame_function_t function,
                                                              uint32_t flags, const halyard_type_t* types,
                                                              uint32_t export_index);
  // The NativeFunction whose data is a FrameFunction.
  static Status call(NativeCall& call);

 private:
  // C...D in the arguments, with the values around it.
  struct Span {
    uint32_t segment;    // which of the call's segment sizes is its own
    std::string before;  // types of the values between it and the span before
    std::string types;   // of a tuple
  };

  FrameFunction(const Convention& convention, halyard_frame_function_t function, const halyard_type_t* types,
                uint32_t export_index);

  halyard_frame_function_t function_;
  const halyard_type_t* types_;
  uint32_t export_index_;
  std::vector<Span> spans_;
  std::string arguments_;  // types of the values after the last span
  std::string results_;
  size_t fixed_count_ = 0;  // arguments outside of spans
};

}  // namespace halyard::vm
