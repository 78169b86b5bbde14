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

Result<Fence> add_fences(const Device& device, Arguments& arguments) {
  Fence signal = TOOL_TRY(Fence::create(device));
  arguments.add({});
  arguments.add(signal);
  return signal;
}

}  // namespace halyard::tools
