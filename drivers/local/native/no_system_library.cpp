// Refuses system libraries in a static program, because it has no loader. Replaces system_library.cpp.
#include "native_code.h"

namespace halyard::local {

Result<> judge_system_library(FileBytes) {
  return fail(
      Code::UNIMPLEMENTED,
      "this Halyard is part of a static program, which has no loader for system libraries; compile with "
      "--iree-llvmcpu-link-embedded=true");
}

Result<std::unique_ptr<NativeCode>> load_system_library(FileBytes file) {
  HALYARD_TRY(judge_system_library(file));
  return nullptr;
}

Result<std::unique_ptr<NativeCode>> load_system_library_file(const std::string& path) {
  return fail(Code::UNIMPLEMENTED,
              "this Halyard is part of a static program, which cannot load the plugin '{}'", path);
}

}  // namespace halyard::local
