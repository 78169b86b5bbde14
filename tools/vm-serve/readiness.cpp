// Looks through the models.
#include "readiness.h"

#include <algorithm>

#include "route.h"
#include "serve_flags.h"
#include "text/suggest.h"

namespace halyard::tools::serve {

namespace {

bool is_callable(const Repository::Entry& entry) { return entry.model && entry.model->is_ready(); }

bool has_callable(const Repository::Versions& versions) {
  return std::ranges::any_of(versions, [](const auto& version) { return is_callable(version.second); });
}

}  // namespace

Result<Readiness> parse_readiness(std::string_view text) {
  if (text == "all") return Readiness{};
  if (text == "any") return Readiness{.need = Readiness::Need::any, .names = {}};
  Readiness readiness{.need = Readiness::Need::named, .names = {}};
  for (std::string_view rest = text;;) {
    const size_t comma = rest.find(',');
    const std::string_view name = rest.substr(0, comma);
    if (!is_name(name))
      return wrong_value(flag::ready, text, "all, any, or names of models such as bert,resnet");
    readiness.names.emplace_back(name);
    if (comma == std::string_view::npos) return readiness;
    rest.remove_prefix(comma + 1);
  }
}

Result<> check_names(const Readiness& readiness, const Repository& repository) {
  const auto models = repository.models();
  std::vector<std::string_view> known;
  for (const auto& [name, versions] : *models) known.push_back(name);
  for (const std::string& name : readiness.names)
    if (!models->contains(name))
      return fail(HALYARD_INVALID_ARGUMENT, "{}={}: there is no model '{}'{}", flag::ready, name, name,
                  did_you_mean(name, known));
  return {};
}

bool is_ready(const Readiness& readiness, const Repository& repository) {
  const auto models = repository.models();
  switch (readiness.need) {
    case Readiness::Need::any:
      return std::ranges::any_of(*models, [](const auto& model) { return has_callable(model.second); });
    case Readiness::Need::named:
      return std::ranges::all_of(readiness.names, [&](const std::string& name) {
        const auto model = models->find(name);
        return model != models->end() && has_callable(model->second);
      });
    case Readiness::Need::all:
      break;
  }
  return std::ranges::all_of(*models, [](const auto& model) {
    return std::ranges::all_of(model.second, [](const auto& version) {
      return version.second.is_unloaded || is_callable(version.second);
    });
  });
}

}  // namespace halyard::tools::serve
