// What a person at a terminal gets and a pipe does not: colours, and lines of a fitting length.
#pragma once

#include <unistd.h>

#include <string>
#include <string_view>

namespace halyard::tools {

enum class Colour { none, bold, dim, red, green, yellow, error };

// The text, in that colour where what it is written to is a terminal and NO_COLOR is not set.
std::string coloured(Colour colour, std::string_view text, int descriptor = STDOUT_FILENO);

// Columns of the terminal that is written to; COLUMNS where it is set; 100 elsewhere. At least 40.
size_t terminal_width(int descriptor = STDOUT_FILENO);

// The text in lines of at most so many characters, the first of which starts in the column `indent` and the
// others with as many blanks. Newlines of the text count as blanks; a longer word stands alone. No newline at
// the end.
std::string wrapped(std::string_view text, size_t indent, size_t width);

}  // namespace halyard::tools
