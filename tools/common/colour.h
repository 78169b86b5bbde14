// Output for terminals: colours, and lines that fit the width of the terminal.
#pragma once

#include <unistd.h>

#include <string>
#include <string_view>

namespace halyard::tools {

enum class Colour { none, bold, dim, red, green, yellow, error };

// Adds the colour if the descriptor is a terminal and NO_COLOR is not set.
std::string coloured(Colour colour, std::string_view text, int descriptor = STDOUT_FILENO);

// The value of COLUMNS if set, else the columns of the terminal, else 100. At least 40.
size_t terminal_width(int descriptor = STDOUT_FILENO);

// Breaks the text into lines of at most `width` characters. The first line starts at the column `indent`; the
// others are indented by as many blanks. Newlines in the text count as blanks. A word that is too long gets
// its own line. The result does not end with a newline.
std::string wrapped(std::string_view text, size_t indent, size_t width);

}  // namespace halyard::tools
