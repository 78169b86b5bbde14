// The report of a comparison, as text and as JSON (docs/vm-diff.md).
#pragma once

#include <string>

#include "common/json.h"
#include "diff.h"

namespace halyard::tools {

struct Descriptions {
  std::string a;
  std::string b;
  std::string function;  // as given; empty: not given
};

// "same", "within tolerance", "differs", "not alike" (no two steps could be paired)
std::string_view outcome_of(const Diff& diff);
std::string text_report(const Diff& diff, const Descriptions& sides);
Json json_report(const Diff& diff, const Descriptions& sides);

}  // namespace halyard::tools
