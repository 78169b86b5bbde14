// JSON of an untrusted file as events, in the order of the text; nothing is built from it.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "base/status.h"

namespace halyard::modules {

struct JsonEvent {
  enum class Kind : uint8_t {
    other,   // null, true, false, and numbers with a sign, a point or an exponent, or of 2^64 and more
    whole,   // any other number
    string,  // a value
    object,  // begins
    array,   // begins
    key,     // of the next value
    end,     // of an object or an array
  };
  Kind kind;
  int depth;                   // the objects and arrays around it
  uint64_t whole = 0;          // of `whole`
  std::string_view text = {};  // of `string` and `key`: UTF-8, without escapes; may have any character
};

// Reads one value with nothing but blanks around it. INVALID_ARGUMENT: no JSON, with the byte and what is
// wrong there, or nested more than 64 deep. A failure of `sink` ends the reading and is returned.
Result<> read_json(std::string_view text, const std::function<Result<>(const JsonEvent&)>& sink);

}  // namespace halyard::modules
