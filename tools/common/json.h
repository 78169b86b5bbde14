// JSON, with nlohmann-json. Members stay in insertion order.
#pragma once

#include <climits>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "common/failure.h"

namespace halyard::tools {

using Json = nlohmann::ordered_json;

// One line of ASCII. Other characters, and control characters, which could control a terminal, are escaped.
// Bytes that are not UTF-8 become U+FFFD. A blank follows each comma and colon.
std::string json_line(const Json& value);
// Several lines: members of values at a nesting depth below `depth` are on separate lines. Ends with a
// newline.
std::string json_document(const Json& value, int depth = INT_MAX);

// A whole number if the value is whole (1, not 1.0). A string if JSON has no such number (NaN, infinity).
// Otherwise the shortest number that parses as the same float or double.
Json json_number(float value);
Json json_number(double value);
// Rounds to `places` decimal places; `places` must be small.
Json json_rounded(double value, int places);

// Parses the JSON value at the start of `text`. INVALID_ARGUMENT names the byte of the error. NaN, Infinity
// and -Infinity are parsed as null, because Google Benchmark writes them although JSON does not have them.
Result<Json> parse_json(std::string_view text);

// The message of an exception without the name of its type; a part of the exception.
std::string_view json_reason(const Json::exception& error);

}  // namespace halyard::tools
