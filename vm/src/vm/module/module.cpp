// Finds exports of a module.
#include "vm/module/module.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "text/suggest.h"

namespace halyard::vm {

std::string_view Export::attribute(std::string_view key) const {
  const auto found = std::ranges::find(attributes, key, &Attribute::key);
  return found == attributes.end() ? std::string_view() : found->value;
}

const Export* Module::find_export(std::string_view name) const {
  const auto found = std::ranges::find(exports_, name, &Export::name);
  return found == exports_.end() ? nullptr : &*found;
}

std::unexpected<Status> Module::no_export(std::string_view name) const {
  constexpr size_t kListed = 12;
  std::vector<std::string_view> names;
  for (const Export& function : exports_) names.push_back(function.name);
  std::string hint = did_you_mean(name, names);
  if (hint.empty() && !names.empty() && names.size() <= kListed)
    hint = fmt::format("; it exports {}", fmt::join(names, ", "));
  return fail(Code::NOT_FOUND, "no function '{}' in module '{}'{}", name, name_, hint);
}

Result<const Export*> Module::resolve(std::string_view name, std::string_view convention) const {
  const Export* last = nullptr;
  std::vector<std::string_view> conventions;
  for (const Export& function : exports_) {
    if (function.name != name) continue;
    if (!convention.empty() && function.convention == convention) return &function;
    // If exports of a compiled module share a name, only the first one is visible.
    if (!last || kind_ == ModuleKind::native) last = &function;
    conventions.push_back(function.convention);
  }
  if (!last) return no_export(name);
  if (convention.empty()) return last;
  return fail(Code::INCOMPATIBLE,
              "'{}.{}' is imported as '{}', but the module has it as '{}'; use an importer and a module from "
              "releases that agree on its signature",
              name_, name, convention, fmt::join(conventions, "', '"));
}

}  // namespace halyard::vm
