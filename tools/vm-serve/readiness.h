// --ready: which models must be ready for the server to be ready.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "repository.h"

namespace halyard::tools::serve {

struct Readiness {
  enum class Need { all, any, named } need = Need::all;
  std::vector<std::string> names;  // Need::named
};

// "all", "any", or names of models with commas between them. INVALID_ARGUMENT.
Result<Readiness> parse_readiness(std::string_view text);
// INVALID_ARGUMENT: a named model does not exist.
Result<> check_names(const Readiness& readiness, const Repository& repository);

// all: every version of every model can be called, except unloaded models. any: some model can be called.
// named: a version of each named model can be called.
bool is_ready(const Readiness& readiness, const Repository& repository);

}  // namespace halyard::tools::serve
