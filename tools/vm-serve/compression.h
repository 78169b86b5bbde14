// Replaces the body of a response by its compressed form.
#pragma once

#include "budget.h"
#include "decoder.h"
#include "response.h"
#include "socket.h"

namespace halyard::tools::serve {

inline constexpr size_t kMinCompressed = 1 << 10;  // bytes; smaller bodies fit in a packet

// Leaves the response as it is if it is small, if compression saves less than a tenth, or if there is no
// memory for both forms. Lets other work of the executor run meanwhile.
Task<> compress(Response& response, Coding coding, Budget& budget);

}  // namespace halyard::tools::serve
