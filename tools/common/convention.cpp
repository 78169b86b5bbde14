// Splits calling conventions.
#include "common/convention.h"

namespace halyard::tools {

std::string convention_results(std::string_view convention) {
  const size_t split = convention.find('_');
  std::string types;
  if (split == std::string_view::npos) return types;
  for (const char type : convention.substr(split + 1))
    if (type != 'v') types += type;
  return types;
}

std::string convention_arguments(std::string_view convention) {
  std::string types;
  for (const char type : convention.substr(convention.empty() ? 0 : 1)) {
    if (type == '_') break;
    if (type != 'v') types += type;
  }
  return types;
}

Result<std::string> input_types(const halyard_function_description_t& function) {
  std::string types = convention_arguments(view(function.convention));
  if (types.contains('C'))
    return fail(HALYARD_INVALID_ARGUMENT,
                "function '{}' takes a variable number of arguments; only modules can call it",
                view(function.name));
  if (function.is_async && types.size() >= 2) types.resize(types.size() - 2);
  return types;
}

Result<Handle<halyard_object_t>> add_fences(halyard_device_t device, Arguments& arguments) {
  arguments.add({});
  Handle<halyard_object_t> signal;
  TOOL_TRY(check(halyard_fence_create(device, signal.out())));
  halyard_value_t fence = {};
  fence.kind = HALYARD_VALUE_OBJECT;
  fence.object = signal.get();
  halyard_retain(fence.object);
  arguments.add(fence);
  return signal;
}

}  // namespace halyard::tools
