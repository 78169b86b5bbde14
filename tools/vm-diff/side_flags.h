// The flags of one side: those of the command line, with those of --a or --b in their place.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "common/failure.h"
#include "common/flags.h"

namespace halyard::tools {

// Splits at blanks; quotes and backslashes protect them as in a shell. INVALID_ARGUMENT: an open quote.
Result<std::vector<std::string>> split_words(std::string_view text);

// `arguments` are those of the tool, without its name; `words` those of the side. INVALID_ARGUMENT: a word
// that is not a flag, or one of the flags `of_both` sides.
Result<Flags> side_flags(const ToolDescription& tool, const std::vector<std::string>& arguments,
                         const List& side, const std::vector<std::string>& words,
                         std::span<const Flag* const> of_both);

}  // namespace halyard::tools
