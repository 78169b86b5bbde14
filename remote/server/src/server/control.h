// Messages between the process that listens and those that serve connections: datagrams of a pair of Unix
// sockets, with descriptors. Both processes run the same program, so a message is its bytes in memory; the
// one that listens still checks what it gets.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "remote/address.h"

namespace halyard::device_server {

enum class Control : uint32_t {
  // From a process that serves; the first two once, in this order.
  ready,    // it waits for a connection
  failed,   // code, text: it cannot serve
  begin,    // text: key, 0, name: counts the connection. Answer: granted, or refused
  reserve,  // first: size. Answer: placed, with one place, or refused
  publish,  // first: offset; digests: one
  find,     // digests. Answer: placed
  release,  // first: offset
  // To it:
  serve,    // first: number of the TLS context + 1, or 0; a descriptor: the connection
  granted,  // first: slot of the account; second: size of the file of blobs; descriptors: account, blobs
  refused,  // code, text
  placed,   // pairs of an offset and a size
};

struct ControlMessage {
  Control kind = Control::ready;
  int32_t code = 0;
  uint64_t first = 0;
  uint64_t second = 0;
  std::string bytes;  // text, digests or places
  std::vector<remote::Descriptor> descriptors;
};

inline constexpr size_t kMaxControlBytes = 48 << 10;
inline constexpr size_t kMaxControlDescriptors = 2;

// A pair of connected sockets.
std::optional<std::pair<remote::Descriptor, remote::Descriptor>> control_pair();
// False: the other process has gone or, without `waits`, takes no messages.
bool send_control(int socket, const ControlMessage& message, bool waits);
// No message: the other process has gone or, without `waits`, has sent none; `is_over` tells these apart.
std::optional<ControlMessage> receive_control(int socket, bool waits, bool& is_over);

}  // namespace halyard::device_server
