// Limits: what one client, and all of them, may use of a server.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace halyard::device_server {

struct Limits {
  size_t connections = 256;             // of all clients
  size_t connections_of_client = 32;    // of one
  size_t strangers = 64;                // connections whose clients have not said who they are
  size_t handles = 65536;               // objects and submissions in flight of a connection
  uint64_t memory = uint64_t{4} << 30;  // bytes of a client: memory of devices, recordings, constants, code
  uint64_t cache =
      uint64_t{2} << 30;  // bytes of constants and code that are kept for a client's next connection
  std::chrono::milliseconds work_time{600000};  // of a submission, with its waits; 0: no limit
  std::chrono::milliseconds greeting{10000};    // from the connection to the first message
  std::chrono::milliseconds silence{120000};    // without any message
  std::chrono::microseconds busy_poll{50};      // before a thread that receives sleeps; 0: never
  size_t backlog = 16 << 20;                    // bytes that were received and not handled yet
  size_t unsent = 256 << 20;                    // bytes that the client has not received
  // The same two, and a message, of a client that has not said who it is.
  size_t of_stranger = 64 << 10;
};

}  // namespace halyard::device_server
