#include "parameter_files.h"

#include "modules/parameters.h"

namespace halyard::tools {

std::expected<ParameterFiles, aot::Refusal> read_parameter_files(
    const std::vector<std::pair<std::string, std::string>>& files) {
  std::vector<modules::ParameterFile> named;
  for (const auto& [scope, path] : files) named.push_back({scope, path});
  Result<modules::ParameterScopes> scopes = modules::load_parameters(named);
  if (!scopes) {
    const std::string text = scopes.error().text();
    return std::unexpected(
        aot::Refusal{static_cast<int32_t>(scopes.error().code()), text.substr(text.find("; ") + 2)});
  }
  ParameterFiles all;
  for (const auto& [name, scope] : *scopes)
    for (const std::string_view key : scope->keys()) {
      const modules::Parameter& each = *scope->find(key).parameter;
      if (each.trouble.empty())
        all.parameters.push_back({name, std::string(key), each.bytes, each.pattern, each.length});
    }
  all.keep = std::make_shared<modules::ParameterScopes>(*std::move(scopes));
  return all;
}

}  // namespace halyard::tools
