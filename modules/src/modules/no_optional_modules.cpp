// Replaces all built-in modules except `hal` in small builds (HALYARD_SMALL). Programs that need one of them
// cannot start.
#include "modules/check_module.h"
#include "modules/hal_inline_module.h"
#include "modules/hal_loader_module.h"
#include "modules/parameters.h"

namespace halyard::modules {

namespace {

Ref<vm::NativeModule> left_out(const char* name) {
  return vm::NativeModule::create(
      {.name = name, .version = 0, .exports = {}, .create_state = [name]() -> Result<vm::NativeState> {
         return fail(
             Code::UNIMPLEMENTED,
             "the program needs module `{}`, which this build of Halyard lacks (HALYARD_SMALL); use an "
             "ordinary build",
             name);
       }});
}

}  // namespace

Ref<vm::NativeModule> create_check_module(CheckOptions /*options*/) { return left_out("check"); }
Ref<vm::NativeModule> create_hal_inline_module(HalInlineOptions /*options*/) {
  return left_out("hal_inline");
}
Ref<vm::NativeModule> create_hal_loader_module(HalLoaderOptions /*options*/) {
  return left_out("hal_loader");
}
bool runs_loader_kernels(const hal::Device& /*device*/) { return false; }

const ObjectType ParameterScope::kType = object_type<ParameterScope>("parameter_scope");

Result<ParameterScopes> load_parameters(std::span<const ParameterFile> files, ParameterMode /*mode*/,
                                        const ParameterProgress& /*progress*/) {
  if (files.empty()) return {};
  return fail(
      Code::UNIMPLEMENTED,
      "'{}' is a parameter file, and this build of Halyard (HALYARD_SMALL) cannot read parameters; use "
      "an ordinary build",
      files.front().path);
}

Ref<vm::NativeModule> create_io_parameters_module(ParameterScopes /*scopes*/, Ref<Budget> /*memory*/,
                                                  Ref<Loop> /*loop*/, ParameterWarning /*warn*/) {
  return left_out("io_parameters");
}

}  // namespace halyard::modules
