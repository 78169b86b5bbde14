// Calling-convention strings: "0rIiCrD_i". Specified by calling-convention.md, section 1.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace halyard::vm {

// One argument or result: 'i' 'I' 'f' 'F' 'r', or 'C' for a span whose types are in `span`.
struct ConventionItem {
  char type;
  std::string span;
  // Of an argument: which number of a variadic call's segment sizes is its own. Its position among the
  // arguments, except that a stray 'v' counts there though it stands for nothing.
  uint32_t segment = 0;
};

// Whether a value of that type takes two registers.
constexpr bool is_wide(char type) { return type == 'I' || type == 'F'; }

// "i32", "i64", "f32", "f64"; "ref" for the rest.
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
  std::vector<ConventionItem> results;  // never spans
  bool has_span = false;                // among the arguments

  std::string result_types() const {  // a character each
    std::string types;
    for (const ConventionItem& item : results) types += item.type;
    return types;
  }

  // The empty string means () -> (). UNIMPLEMENTED: a version other than '0', or an unknown character.
  // INVALID_ARGUMENT: a nested or empty span, a span in the results.
  static Result<Convention> parse(std::string_view text);
};

// The types of a convention that has nothing but types, "0rIi_i": one character for each argument and result.
struct PlainTypes {
  std::string_view arguments;
  std::string_view results;
};
// Allocates nothing. Empty where there is anything else, spans or mistakes: then see Convention::parse.
std::optional<PlainTypes> plain_types(std::string_view text);

}  // namespace halyard::vm
