// Library: the contents of a native executable. Both revisions are checked and converted to one form.
#pragma once

#include <span>
#include <vector>

#include "kernel_runner.h"
#include "library_abi.h"
#include "native_code.h"

namespace halyard::local {

struct Library {
  uint32_t constant_count = 0;
  std::span<const char* const> imports;
  std::span<const abi::EntryFunction> functions;  // none is null
  std::vector<Kernel> kernels;                    // one for each function
};

// An environment with the processor's data and no imports.
abi::Environment new_environment();

// `environment` needs no imports yet. FAILED_PRECONDITION: the library publishes nothing, or another
// revision. UNAVAILABLE: it needs a sanitizer that this program lacks. OUT_OF_RANGE: impossible counts.
// UNIMPLEMENTED: unknown features.
Result<Library> query_library(const NativeCode& code, const abi::Environment& environment);

// UNAVAILABLE: `what` was built with a sanitizer that this program lacks.
Result<> check_sanitizer(uint32_t sanitizer, std::string_view what);

}  // namespace halyard::local
