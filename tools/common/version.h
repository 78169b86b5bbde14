// The text of --version.
#pragma once

#include <string>
#include <string_view>

#include "common/failure.h"

namespace halyard::tools {

// The versions of the tool and of the library that it runs with; the library's path, ABIs, compiler and
// build.
Result<std::string> version_text(std::string_view tool);

}  // namespace halyard::tools
