// The header Accept-Encoding: the coding of a response.
#pragma once

#include <string_view>

#include "decoder.h"

namespace halyard::tools::serve {

// The coding that the client prefers among gzip, deflate and identity; gzip first if it has no preference.
// identity if the header is "" or malformed. Specified by RFC 9110, section 12.5.3.
Coding chosen_coding(std::string_view accept_encoding);

// The name in Content-Encoding.
std::string_view name_of(Coding coding);

}  // namespace halyard::tools::serve
