// Direct: SEND, RECV and SEND_RECV. A first message describes the elements and contains them if they are
// small. The send ends when the receiver has this message, so that a send without a receiver is noticed.
#pragma once

#include <memory>

#include "channel.h"
#include "operation.h"

namespace halyard::mpi {

std::unique_ptr<Operation> make_direct(Channel& channel, const halyard_collective_t& collective);

}  // namespace halyard::mpi
