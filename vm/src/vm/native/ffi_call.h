// Calls plain C functions as native functions. libffi passes arguments directly from the caller's registers.
// halyard/module.h defines how a convention maps to C parameters. Calls are prepared once, and a call does
// not allocate.
#pragma once

#include <ffi.h>

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "halyard/module.h"
#include "vm/module/calling_convention.h"
#include "vm/module/native_module.h"

namespace halyard::vm {

// One C function. The values of a call are on the C stack.
class PlainFunction {
 public:
  // The convention must be within the limits of arguments and results. INVALID_ARGUMENT: it has a span, which
  // has no C parameter. UNIMPLEMENTED: unknown flags, or a signature that libffi cannot call.
  static Result<std::unique_ptr<const PlainFunction>> prepare(const Convention& convention,
                                                              halyard_any_function_t function,
                                                              uint32_t flags);
  // A NativeFunction; its data is a PlainFunction.
  static Status call(NativeCall& call);

  PlainFunction(const PlainFunction&) = delete;
  PlainFunction& operator=(const PlainFunction&) = delete;

 private:
  PlainFunction(halyard_any_function_t function, uint32_t flags) : function_(function), flags_(flags) {}

  halyard_any_function_t function_;
  uint32_t flags_;
  bool results_by_pointer_ = false;
  std::string arguments_;  // one character for each argument
  std::string results_;
  std::vector<ffi_type*> parameters_;
  ffi_cif cif_ = {};
};

}  // namespace halyard::vm
