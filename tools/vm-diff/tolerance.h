// --atol, --rtol, --ulps, --type: what the command line says about element types.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/failure.h"
#include "common/flags.h"
#include "element.h"

namespace halyard::tools {

struct Tolerance {
  double absolute = 0;
  double relative = 0;
  uint64_t ulps = 0;

  bool is_exact() const { return absolute == 0 && relative == 0 && ulps == 0; }
};

class Tolerances {
 public:
  // INVALID_ARGUMENT: not a number, or not a type.
  static Result<Tolerances> of(const Flags& flags);
  Tolerance of(const ElementKind& kind) const;

 private:
  // By type; the type "" is for all floats.
  std::map<std::string, Tolerance, std::less<>> by_type_;
};

// The types that --type gives to kernels.
class GivenTypes {
 public:
  static Result<GivenTypes> of(const Flags& flags);
  // Null: none of the patterns matches.
  const ElementKind* of(std::string_view kernel) const;

 private:
  std::vector<std::pair<std::string, const ElementKind*>> types_;
};

}  // namespace halyard::tools
