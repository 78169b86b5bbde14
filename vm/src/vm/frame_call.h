// Frame functions as natives: C functions that get their call as a struct, with values copied out of the
// caller's registers and back. They may take a variable number of arguments and may defer.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "halyard/module.h"
#include "vm/calling_convention.h"
#include "vm/native_module.h"

namespace halyard::vm {

class FrameFunction {
 public:
  // `types` lives as long as the function. INVALID_ARGUMENT: flags, of which there are none.
  static Result<std::unique_ptr<const FrameFunction>> prepare(const Convention& convention,
                                                              halyard_frame_function_t function,
                                                              uint32_t flags, const halyard_type_t* types);
  // The NativeFunction whose data is a FrameFunction.
  static Status call(NativeCall& call);

 private:
  FrameFunction(const Convention& convention, halyard_frame_function_t function, const halyard_type_t* types)
      : convention_(convention), function_(function), types_(types) {}

  size_t argument_count(const NativeCall& call) const;
  void load_arguments(const NativeCall& call, halyard_value_t* arguments, uint32_t* spans) const;

  Convention convention_;
  halyard_frame_function_t function_;
  const halyard_type_t* types_;
};

}  // namespace halyard::vm
