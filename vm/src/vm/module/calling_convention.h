// Calling-convention strings: "0rIiCrD_i". Specified by calling-convention.md, section 1.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace halyard::vm {

// An argument or result: 'i' 'I' 'f' 'F' 'r', or 'C' for a span, whose types are in `span`.
struct ConventionItem {
  char type;
  std::string span;
  // The index of the argument's segment size in a variadic call. It is the position among the arguments,
  // where a stray 'v' also counts although it is not an argument.
  uint32_t segment = 0;
};

// Whether a value of this type takes two registers.
constexpr bool is_wide(char type) { return type == 'I' || type == 'F'; }

// "i32", "i64", "f32", "f64"; "ref" for other types.
constexpr std::string_view type_name(char type) {
  switch (type) {
    case 'i':
      return "i32";
    case 'I':
      return "i64";
    case 'f':
      return "f32";
    case 'F':
      return "f64";
    default:
      return "ref";
  }
}

struct Convention {
  std::vector<ConventionItem> arguments;
  std::vector<ConventionItem> results;  // without spans
  bool has_span = false;                // among the arguments

  std::string result_types() const {  // one character for each result
    std::string types;
    for (const ConventionItem& item : results) types += item.type;
    return types;
  }

  // An empty string means () -> (). UNIMPLEMENTED: a version other than '0', or an unknown character.
  // INVALID_ARGUMENT: a nested or empty span, or a span in the results.
  static Result<Convention> parse(std::string_view text);
};

// The types of a convention without spans, such as "0rIi_i": one character for each argument and result.
struct PlainTypes {
  std::string_view arguments;
  std::string_view results;
};
// Allocates nothing. nullopt if the string has spans or errors; Convention::parse handles those.
std::optional<PlainTypes> plain_types(std::string_view text);

}  // namespace halyard::vm
