// The page at "/": models, their states, and a form to call one. It is self-contained.
#pragma once

#include <string_view>

namespace halyard::tools::serve {

extern const std::string_view kPage;
// Header lines that forbid the browser to load anything else for the page.
extern const std::string_view kPageHeaders;

}  // namespace halyard::tools::serve
