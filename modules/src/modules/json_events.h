// Parses JSON of an untrusted file into events, in the order of the text, without building a document.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "base/status.h"

namespace halyard::modules {

struct JsonEvent {
  enum class Kind : uint8_t {
    other,   // null, true, false, and numbers with a sign, a point or an exponent, or of at least 2^64
    whole,   // any other number
    string,  // a value
    object,  // begin
    array,   // begin
    key,     // of the next value
    end,     // of an object or an array
  };
  Kind kind;
  int depth;                   // the number of enclosing objects and arrays
  uint64_t whole = 0;          // for `whole`
  std::string_view text = {};  // for `string` and `key`: UTF-8, without escapes; may contain any character
};

// Parses one value, surrounded only by white space. INVALID_ARGUMENT: invalid JSON, with the byte and the
// reason, or nested more than 64 deep. A failure of `sink` ends the parsing and is returned.
Result<> read_json(std::string_view text, const std::function<Result<>(const JsonEvent&)>& sink);

}  // namespace halyard::modules
