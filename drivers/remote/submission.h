// Submission: queue work as a message.
#pragma once

#include <memory>

#include "connection.h"
#include "halyard/driver.hpp"
#include "memory.h"

namespace halyard::remote {

// Sends the work. `transient`: the memory of an alloca, else null.
kit::Result<> send_submission(const std::shared_ptr<Connection>& server,
                              const halyard_submission_t& submission, Memory* transient);

}  // namespace halyard::remote
