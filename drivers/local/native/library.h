// Library: what a native executable publishes, of either revision, checked and in one form.
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

// With the processor's data and nothing else.
abi::Environment new_environment();

// `environment` is complete but for imports. FAILED_PRECONDITION: none, or of another revision. UNAVAILABLE:
// made for a sanitizer that is not here. OUT_OF_RANGE: counts that cannot be. UNIMPLEMENTED: features that
// are not known.
Result<Library> query_library(const NativeCode& code, const abi::Environment& environment);

// UNAVAILABLE where `what` was made with a sanitizer that this program is not.
Result<> check_sanitizer(uint32_t sanitizer, std::string_view what);

}  // namespace halyard::local
