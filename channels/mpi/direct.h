// Direct: SEND, RECV and SEND_RECV. A first message says what is sent, and holds it where it is small; it
// ends when the receiver has it, so that a send without a receiver is noticed.
#pragma once

#include <memory>

#include "channel.h"
#include "operation.h"

namespace halyard::mpi {

std::unique_ptr<Operation> make_direct(Channel& channel, const halyard_collective_t& collective);

}  // namespace halyard::mpi
