// Reduces inputs to shapes: only these have an effect.
#include "common/analysis.h"

#include "common/npy.h"

namespace halyard::tools {

namespace {

// "2x3xf32=1 2 3" to "2x3xf32", and an array to its type.
Result<std::string> shape_of(const std::string& text) {
  if (text.starts_with('@') || text.starts_with('*') || text.starts_with('+')) {
    NpyFile file = TOOL_TRY(NpyFile::open(text.substr(1)));
    return TOOL_TRY(file.next()).type_text();
  }
  return text.substr(0, text.find('='));
}

// The only function that a user calls.
Result<std::string> only_function(std::span<const std::byte> module) {
  const Json description =
      TOOL_TRY(parse_json(TOOL_TRY(check(halyard::describe(module, HALYARD_DESCRIBE_JSON)))));
  std::vector<std::string> names;
  for (const Json& item : description["exports"]) {
    const std::string name = item["name"].get<std::string>();
    if (!name.starts_with("__") && !name.ends_with("$async")) names.push_back(name);
  }
  if (names.size() == 1) return names.front();
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "'" : ", '") + name + "'";
  return fail(
      HALYARD_INVALID_ARGUMENT,
      "--input gives the inputs of one function, but the module has {}; choose one with --function: {}",
      names.size(), list);
}

}  // namespace

Result<Json> analyze_module(std::span<const std::byte> module, std::string function,
                            const std::vector<std::string>& inputs) {
  auto options = halyard_analyze_options_t{.struct_size = sizeof(halyard_analyze_options_t)};
  std::vector<std::string> shapes;
  std::vector<const char*> texts;
  for (const std::string& input : inputs) shapes.push_back(TOOL_TRY(shape_of(input)));
  for (const std::string& shape : shapes) texts.push_back(shape.c_str());
  if (function.empty() && !inputs.empty()) function = TOOL_TRY(only_function(module));
  if (!function.empty()) options.function = function.c_str();
  options.inputs = texts.data();
  options.input_count = texts.size();
  return parse_json(TOOL_TRY(check(halyard::analyze(module, &options))));
}

}  // namespace halyard::tools
