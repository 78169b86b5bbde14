// Plain C functions as natives: libffi calls them with arguments straight out of the caller's registers. How
// a convention becomes C parameters is stated in halyard/module.h. What a call needs is prepared once; a call
// allocates nothing.
#pragma once

#include <ffi.h>

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "halyard/module.h"
#include "vm/module/calling_convention.h"
#include "vm/native/native_module.h"

namespace halyard::vm {

// Of one function. The values of a call stand on the C stack.
constexpr size_t kMostNativeArguments = 256;
constexpr size_t kMostNativeResults = 256;

class PlainFunction {
 public:
  // The convention has no more than the most arguments and results. INVALID_ARGUMENT: a span, which has no
  // parameter in C; UNIMPLEMENTED: unknown flags, or a signature that libffi has no way to call.
  static Result<std::unique_ptr<const PlainFunction>> prepare(const Convention& convention,
                                                              halyard_any_function_t function,
                                                              uint32_t flags);
  // The NativeFunction whose data is a PlainFunction.
  static Status call(NativeCall& call);

  PlainFunction(const PlainFunction&) = delete;
  PlainFunction& operator=(const PlainFunction&) = delete;

 private:
  PlainFunction(halyard_any_function_t function, uint32_t flags) : function_(function), flags_(flags) {}

  halyard_any_function_t function_;
  uint32_t flags_;
  bool results_by_pointer_ = false;
  std::string arguments_;  // characters of the convention
  std::string results_;
  std::vector<ffi_type*> parameters_;
  ffi_cif cif_ = {};
};

}  // namespace halyard::vm
