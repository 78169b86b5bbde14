// Calls frame functions as native functions. Frame functions are C functions that receive their call as a
// struct, to which values are copied from the caller's registers and back. They may take a variable number of
// arguments and may defer.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "halyard/module.h"
#include "vm/module/calling_convention.h"
#include "vm/module/native_module.h"

namespace halyard::vm {

class FrameFunction {
 public:
  // `types` and `program` (may be null) must outlive the function. INVALID_ARGUMENT: unknown flags.
  static Result<std::unique_ptr<const FrameFunction>> prepare(const Convention& convention,
                                                              halyard_frame_function_t function,
                                                              uint32_t flags, const halyard_type_t* types,
                                                              uint32_t export_index,
                                                              const NativeProgram* program);
  // A NativeFunction; its data is a FrameFunction.
  static Status call(NativeCall& call);

 private:
  // A span C...D of the arguments, and the values between the previous span and this one.
  struct Span {
    uint32_t segment;    // index of its segment size in the call
    std::string before;  // types of the values between the previous span and this one
    std::string types;   // types of one tuple
  };

  FrameFunction(const Convention& convention, halyard_frame_function_t function, const halyard_type_t* types,
                uint32_t export_index, const NativeProgram* program);

  halyard_frame_function_t function_;
  const halyard_type_t* types_;
  uint32_t export_index_;
  const NativeProgram* program_;  // of the module; may be null
  std::vector<Span> spans_;
  std::string arguments_;  // types of the values after the last span
  std::string results_;
  size_t fixed_count_ = 0;  // number of arguments outside of spans
};

}  // namespace halyard::vm
