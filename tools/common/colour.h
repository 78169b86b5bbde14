// Output for terminals: colours, and lines that fit the width.
#pragma once

#include <unistd.h>

#include <string>
#include <string_view>

namespace halyard::tools {

enum class Colour { none, bold, dim, red, green, yellow, error };

// The text, in that colour if the descriptor is a terminal and NO_COLOR is not set.
std::string coloured(Colour colour, std::string_view text, int descriptor = STDOUT_FILENO);

// The value of COLUMNS if it is set, else the columns of the terminal, else 100. At least 40.
size_t terminal_width(int descriptor = STDOUT_FILENO);

// Breaks the text into lines of at most `width` characters. The first line starts in the column `indent`, the
// others begin with as many blanks. Newlines in the text count as blanks; a word that is too long gets a line
// of its own. There is no newline at the end.
std::string wrapped(std::string_view text, size_t indent, size_t width);

}  // namespace halyard::tools
