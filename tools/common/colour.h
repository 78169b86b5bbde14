// Colours of standard output, on a terminal only.
#pragma once

#include <string>
#include <string_view>

namespace halyard::tools {

enum class Colour { none, bold, dim, red, green };

// The text, in that colour where standard output is a terminal and NO_COLOR is not set.
std::string coloured(Colour colour, std::string_view text);

// Columns of the terminal; COLUMNS where it is set; 100 elsewhere. At least 40.
size_t terminal_width();

}  // namespace halyard::tools
