// SOCK_SEQPACKET keeps the borders of messages, and tells the end of the other process.
#include "server/control.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>

namespace halyard::device_server {

namespace {

struct Head {
  Control kind;
  int32_t code;
  uint64_t first, second;
};

union Ancillary {
  cmsghdr align;
  char bytes[CMSG_SPACE(kMaxControlDescriptors * sizeof(int))];
};

}  // namespace

std::optional<std::pair<remote::Descriptor, remote::Descriptor>> control_pair() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return std::nullopt;
  return std::pair(remote::Descriptor(ends[0]), remote::Descriptor(ends[1]));
}

bool send_control(int socket, const ControlMessage& message, bool waits) {
  Head head = {message.kind, message.code, message.first, message.second};
  iovec parts[2] = {{&head, sizeof head}, {const_cast<char*>(message.bytes.data()), message.bytes.size()}};
  msghdr sent = {};
  sent.msg_iov = parts;
  sent.msg_iovlen = 2;
  Ancillary ancillary = {};
  if (const size_t count = message.descriptors.size(); count > 0) {
    sent.msg_control = ancillary.bytes;
    sent.msg_controllen = CMSG_SPACE(count * sizeof(int));
    cmsghdr* const rights = CMSG_FIRSTHDR(&sent);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(count * sizeof(int));
    for (size_t i = 0; i < count; ++i) {
      const int descriptor = message.descriptors[i].get();
      std::memcpy(CMSG_DATA(rights) + i * sizeof(int), &descriptor, sizeof(int));
    }
  }
  for (;;) {
    if (::sendmsg(socket, &sent, MSG_NOSIGNAL | (waits ? 0 : MSG_DONTWAIT)) >= 0) return true;
    if (errno != EINTR) return false;
  }
}

std::optional<ControlMessage> receive_control(int socket, bool waits, bool& is_over) {
  is_over = false;
  Head head = {};
  ControlMessage message;
  message.bytes.resize(kMaxControlBytes);
  iovec parts[2] = {{&head, sizeof head}, {message.bytes.data(), message.bytes.size()}};
  msghdr received = {};
  received.msg_iov = parts;
  received.msg_iovlen = 2;
  Ancillary ancillary = {};
  received.msg_control = ancillary.bytes;
  received.msg_controllen = sizeof ancillary.bytes;
  ssize_t size = -1;
  do {
    size = ::recvmsg(socket, &received, MSG_CMSG_CLOEXEC | (waits ? 0 : MSG_DONTWAIT));
  } while (size < 0 && errno == EINTR);
  if (size < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return std::nullopt;
  for (cmsghdr* it = CMSG_FIRSTHDR(&received); it; it = CMSG_NXTHDR(&received, it)) {
    if (it->cmsg_level != SOL_SOCKET || it->cmsg_type != SCM_RIGHTS) continue;
    for (size_t at = 0; at + sizeof(int) <= it->cmsg_len - CMSG_LEN(0); at += sizeof(int)) {
      int descriptor = -1;
      std::memcpy(&descriptor, CMSG_DATA(it) + at, sizeof(int));
      message.descriptors.emplace_back(descriptor);
    }
  }
  if (size < static_cast<ssize_t>(sizeof head) || (received.msg_flags & (MSG_TRUNC | MSG_CTRUNC))) {
    is_over = true;
    return std::nullopt;
  }
  message.kind = head.kind;
  message.code = head.code;
  message.first = head.first;
  message.second = head.second;
  message.bytes.resize(static_cast<size_t>(size) - sizeof head);
  return message;
}

}  // namespace halyard::device_server
