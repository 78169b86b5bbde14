// Texts for people and programs: suggestions, JSON.
#ifndef HALYARD_CPP_TEXT_HPP_
#define HALYARD_CPP_TEXT_HPP_

#include <span>
#include <string>
#include <string_view>

#include "halyard/cpp/handle.hpp"

namespace halyard::inline HALYARD_CPP_FORM {

// "; did you mean 'x'?", or "" where no candidate is near.
inline Result<std::string> did_you_mean(CString word, std::span<const char* const> candidates) {
  return detail::take_text(halyard_did_you_mean(word.get(), candidates.data(), candidates.size()));
}
// The text as a string of JSON, with its quotes.
inline Result<std::string> json_quote(std::string_view text) {
  return detail::take_text(halyard_json_quote(to_text(text)));
}

}  // namespace halyard::inline HALYARD_CPP_FORM

#endif  // HALYARD_CPP_TEXT_HPP_
