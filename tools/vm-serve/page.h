// The page at "/": models, their states, and a form to try one. Everything is in it; it loads nothing from
// elsewhere.
#pragma once

#include <string_view>

namespace halyard::tools::serve {

extern const std::string_view kPage;
// Header lines that keep a browser from loading anything else for it.
extern const std::string_view kPageHeaders;

}  // namespace halyard::tools::serve
