// String literals that are longer than C compilers must accept.
#pragma once

#include <string>

namespace halyard::aot {

// The C with an array of characters in place of each string literal of more than 4,095 characters, of which
// compilers warn. The arrays follow the comment that begins the text.
std::string without_long_texts(std::string code);

}  // namespace halyard::aot
