// Reading JSON (RFC 8259): what other runners print. They are not trusted: whatever they print is either
// understood or an error.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "common/failure.h"

namespace halyard::tools {

struct Json {
  using Members = std::vector<std::pair<std::string, Json>>;
  std::variant<std::nullptr_t, bool, double, std::string, std::vector<Json>, Members> value = nullptr;

  const Json* find(std::string_view name) const;  // of an object; null where it has none
  // What it is, or null where it is something else.
  const std::string* text() const { return std::get_if<std::string>(&value); }
  const double* number() const { return std::get_if<double>(&value); }
  const std::vector<Json>* elements() const { return std::get_if<std::vector<Json>>(&value); }
  bool is_true() const { return std::get_if<bool>(&value) && std::get<bool>(value); }
};

// One value; what follows it is left alone. INVALID_ARGUMENT says where it ends to be JSON.
Result<Json> parse_json(std::string_view text);

}  // namespace halyard::tools
