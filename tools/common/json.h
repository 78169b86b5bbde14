// JSON, with nlohmann-json: members stay in the order in which they are added.
#pragma once

#include <climits>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "common/failure.h"

namespace halyard::tools {

using Json = nlohmann::ordered_json;

// ASCII only: other characters and control characters, which a terminal could obey, are escaped, and bytes
// that are not UTF-8 become U+FFFD. Blanks follow commas and colons.
std::string json_line(const Json& value);
// The same as a document of several lines: what nests less than `depth` deep has its members on lines of
// their own. Ends with a newline.
std::string json_document(const Json& value, int depth = INT_MAX);

// A whole number where the value is one (1, not 1.0), and a string where JSON has no number (NaN, infinity).
// Otherwise the shortest number that reads back as the same float or double.
Json json_number(float value);
Json json_number(double value);
// To so many decimal places, which must be few.
Json json_rounded(double value, int places);

// Reads the JSON value at the start of `text`. INVALID_ARGUMENT says at which byte it goes wrong. Google
// Benchmark writes NaN, Infinity and -Infinity, which JSON has not: they are read as null.
Result<Json> parse_json(std::string_view text);

}  // namespace halyard::tools
