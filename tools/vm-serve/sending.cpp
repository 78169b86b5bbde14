// Bytes that the client has not received are in the socket's queue.
#include "sending.h"

#include <linux/sockios.h>
#include <sys/ioctl.h>

#include "body.h"

namespace halyard::tools::serve {

Sending::Sending(ClientSocket& socket, uint64_t size, std::function<void(Clock::time_point)> expire_at)
    : socket_(socket), size_(size), expire_at_(std::move(expire_at)) {
  expire_at_(begin_ + kGrace);
}

void Sending::count(uint64_t bytes) {
  if (bytes == accepted_ || bytes == size_) return;
  accepted_ = bytes;
  unreceived_ = unreceived();
  expire_at_(deadline_after(begin_, accepted_));
}

bool Sending::puts_off() {
  const int before = std::exchange(unreceived_, unreceived());
  const Clock::time_point deadline = deadline_after(begin_, accepted_);
  if (unreceived_ >= before || deadline <= Clock::now()) return false;
  expire_at_(deadline);
  return true;
}

// 0 if the socket does not say: then the client must make room for further bytes in every kGrace.
int Sending::unreceived() const {
  int bytes = 0;
  return ::ioctl(socket_.native_handle(), SIOCOUTQ, &bytes) == 0 ? bytes : 0;
}

}  // namespace halyard::tools::serve
