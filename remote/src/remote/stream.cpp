// Sending writes to the socket on the sender's thread, because a wake-up takes longer. Asio waits until the
// socket can be read or, with Full::queue, written.
#include "remote/stream.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/post.hpp>
#include <cerrno>
#include <cstring>
#include <new>

namespace halyard::remote {

namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kBuffer = 64 << 10;  // bytes that are received at once
constexpr size_t kSmall = 16 << 10;   // data up to this size are copied to be sent with other frames
constexpr size_t kUnsent = 64 << 10;  // more bytes are sent even if they could wait
constexpr int kFramesAtOnce = 64;     // before the receiver is told that it may take long

std::string error_text(int error) {
  char buffer[128];
  return ::strerror_r(error, buffer, sizeof buffer);
}

Bytes bytes_of(const uint32_t (&header)[2]) {
  return {reinterpret_cast<const uint8_t*>(header), sizeof header};
}

static_assert(std::endian::native == std::endian::little);

}  // namespace

Stream::Stream(boost::asio::io_context& io, Descriptor socket, std::unique_ptr<Tls> tls, Full full,
               std::chrono::milliseconds patience)
    : full_(full),
      patience_(patience),
      asio_socket_(io),
      descriptor_(socket.get()),
      tls_(std::move(tls)),
      in_(kBuffer),
      last_received_(Clock::now().time_since_epoch().count()) {
  sockaddr_storage own = {};
  socklen_t size = sizeof own;
  ::getsockname(descriptor_, reinterpret_cast<sockaddr*>(&own), &size);
  asio_socket_.assign(boost::asio::generic::stream_protocol(own.ss_family, 0), socket.release());
  asio_socket_.non_blocking(true);
}

Stream::~Stream() = default;

Result<> Stream::shake_hands(Clock::time_point deadline) {
  if (!tls_) return {};
  for (;;) {
    std::vector<uint8_t> wire;
    const Result<bool> done = tls_->shake_hands(wire);
    {
      const std::lock_guard lock(mutex_);
      append(wire);
      write_out({});
    }
    if (!done) return std::unexpected(done.error());
    if (*done) return {};
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
    pollfd wait = {descriptor_, POLLIN, 0};
    if (left.count() <= 0 || ::poll(&wait, 1, static_cast<int>(left.count())) == 0)
      return fail(HALYARD_DEADLINE_EXCEEDED, "the server did not answer the TLS handshake in time");
    const size_t count = REMOTE_TRY(read_wire(in_));
    tls_->feed({in_.data(), count});
  }
}

void Stream::start(std::shared_ptr<Receiver> receiver) {
  receiver_ = std::move(receiver);
  boost::asio::post(asio_socket_.get_executor(), [self = shared_from_this()] { self->on_readable(); });
}

void Stream::resume() {
  if (!is_paused_.load() || !is_paused_.exchange(false)) return;
  boost::asio::post(asio_socket_.get_executor(), [self = shared_from_this()] { self->on_readable(); });
}

// ---- Receiving

void Stream::await_readable() {
  asio_socket_.async_wait(boost::asio::socket_base::wait_read,
                          [self = shared_from_this()](boost::system::error_code) { self->on_readable(); });
}

void Stream::on_readable() {
  const std::shared_ptr<Receiver> receiver = receiver_;
  Result<bool> more = true;
  try {
    for (int i = 0; i < kFramesAtOnce && more && *more && !wants_pause_; ++i) more = receive();
  } catch (const std::bad_alloc&) {
    more = fail(HALYARD_RESOURCE_EXHAUSTED, "this process has no memory for what the other side sends");
  }
  if (!more) {
    Failure reason = std::move(more.error());
    {
      const std::lock_guard lock(mutex_);
      give_up(reason);
      reason = *reason_;
    }
    receiver->received_some();
    receiver->lost(reason);
    receiver_.reset();
    return;
  }
  // Another thread may go on from here, so nothing of this object's reading side is used after that.
  if (std::exchange(wants_pause_, false)) {
    is_paused_.store(true);
  } else {
    if (*more) {
      boost::asio::post(asio_socket_.get_executor(), [self = shared_from_this()] { self->on_readable(); });
    } else {
      await_readable();
    }
  }
  receiver->received_some();
}

Result<bool> Stream::receive() {
  for (;;) {
    std::span<uint8_t> target;
    switch (reading_) {
      case Reading::header:
        target = {reinterpret_cast<uint8_t*>(header_), sizeof header_};
        break;
      case Reading::message:
        target = {frame_.block.get(), frame_.message_size};
        break;
      case Reading::data:
        target = {frame_.data, frame_.data_size};
        break;
    }
    while (done_ < target.size()) {
      if (in_begin_ < in_end_) {
        const size_t count = std::min(target.size() - done_, in_end_ - in_begin_);
        std::memcpy(target.data() + done_, in_.data() + in_begin_, count);
        in_begin_ += count;
        done_ += count;
        continue;
      }
      // Many bytes go straight to their place.
      if (target.size() - done_ >= kBuffer) {
        const size_t count = REMOTE_TRY(read_some(target.subspan(done_)));
        if (count == 0) return false;
        done_ += count;
        continue;
      }
      in_begin_ = in_end_ = 0;
      in_end_ = REMOTE_TRY(read_some(in_));
      if (in_end_ == 0) return false;
    }
    done_ = 0;
    if (reading_ == Reading::header) {
      REMOTE_TRY(begin_message());
    } else if (reading_ == Reading::message) {
      REMOTE_TRY(begin_data());
    } else {
      return finish_frame();
    }
  }
}

Result<> Stream::begin_message() {
  const auto [message, data] = header_;
  if (message == 0 || message > kMaxMessage || data > kMaxData)
    return fail(HALYARD_INVALID_ARGUMENT,
                "the other side sent a frame with a message of {} bytes and {} bytes of data; expected 1 to "
                "{} and at most {}: "
                "it does not speak this protocol",
                message, data, kMaxMessage, kMaxData);
  frame_ = {};
  frame_.message_size = message;
  frame_.data_size = data;
  // Bytes that do not fit a receive buffer may have a better place.
  const size_t begin = (message + 15) & ~size_t{15};
  const bool is_bulk = data >= kSmall;
  frame_.block = std::make_unique_for_overwrite<uint8_t[]>(begin + (is_bulk ? 0 : data));
  frame_.data = is_bulk ? nullptr : frame_.block.get() + begin;
  reading_ = Reading::message;
  return {};
}

Result<> Stream::begin_data() {
  reading_ = Reading::data;
  if (frame_.data) return {};
  const std::span<uint8_t> place = receiver_->place(frame_.message(), frame_.data_size);
  if (place.size() == frame_.data_size) {
    frame_.data = place.data();
    return {};
  }
  const size_t begin = (frame_.message_size + 15) & ~size_t{15};
  auto block = std::make_unique_for_overwrite<uint8_t[]>(begin + frame_.data_size);
  std::memcpy(block.get(), frame_.block.get(), frame_.message_size);
  frame_.block = std::move(block);
  frame_.data = frame_.block.get() + begin;
  return {};
}

bool Stream::finish_frame() {
  reading_ = Reading::header;
  if (!receiver_->received(std::move(frame_))) wants_pause_ = true;
  return true;
}

Result<size_t> Stream::read_some(std::span<uint8_t> target) {
  if (!tls_) return read_wire(target);
  uint8_t wire[16 << 10];
  for (;;) {
    {
      const std::lock_guard lock(mutex_);
      std::vector<uint8_t> output;
      const Result<size_t> opened = tls_->open(target, output);
      if (!output.empty()) {
        append(output);
        write_out({});
      }
      if (!opened || *opened > 0) return opened;
    }
    const size_t count = REMOTE_TRY(read_wire(wire));
    if (count == 0) return size_t{0};
    const std::lock_guard lock(mutex_);
    tls_->feed({wire, count});
  }
}

Result<size_t> Stream::read_wire(std::span<uint8_t> target) {
  for (;;) {
    const ssize_t count = ::recv(descriptor_, target.data(), target.size(), MSG_DONTWAIT);
    if (count > 0) {
      last_received_.store(Clock::now().time_since_epoch().count(), std::memory_order_relaxed);
      return static_cast<size_t>(count);
    }
    if (count == 0) return fail(HALYARD_UNAVAILABLE, "the other side has ended the connection");
    if (errno == EAGAIN || errno == EWOULDBLOCK) return size_t{0};
    if (errno != EINTR) return fail(HALYARD_UNAVAILABLE, "{}", error_text(errno));
  }
}

Clock::time_point Stream::last_received() const {
  return Clock::time_point(Clock::duration(last_received_.load(std::memory_order_relaxed)));
}

// ---- Sending

void Stream::send(Bytes message, Bytes data, Urgency urgency) {
  const uint32_t header[2] = {static_cast<uint32_t>(message.size()), static_cast<uint32_t>(data.size())};
  const std::lock_guard lock(mutex_);
  if (is_ended_) return;
  if (tls_) {
    std::vector<uint8_t> start;
    start.reserve(sizeof header + message.size() + (data.size() < kSmall ? data.size() : 0));
    start.insert(start.end(), bytes_of(header).begin(), bytes_of(header).end());
    start.insert(start.end(), message.begin(), message.end());
    if (data.size() < kSmall) {
      start.insert(start.end(), data.begin(), data.end());
      data = {};
    }
    Result<> sealed = tls_->seal(start, out_);
    if (sealed && !data.empty()) sealed = tls_->seal(data, out_);
    if (!sealed) return give_up(std::move(sealed.error()));
    data = {};
  } else {
    append(bytes_of(header));
    append(message);
    if (data.size() < kSmall) {
      append(data);
      data = {};
    }
  }
  if (urgency == Urgency::now || !data.empty() || out_.size() - out_begin_ > kUnsent) write_out(data);
}

void Stream::flush() {
  const std::lock_guard lock(mutex_);
  if (!is_ended_ && out_.size() > out_begin_) write_out({});
}

size_t Stream::queued() const {
  const std::lock_guard lock(mutex_);
  return out_.size() - out_begin_;
}

bool Stream::has_unsent() const { return queued() > 0; }

bool Stream::is_ended() const {
  const std::lock_guard lock(mutex_);
  return is_ended_;
}

void Stream::append(Bytes bytes) { out_.insert(out_.end(), bytes.begin(), bytes.end()); }

// Writes what is in out_, then `direct`.
void Stream::write_out(Bytes direct) {
  while (!is_ended_) {
    direct = direct.subspan(write_once(direct));
    if (is_ended_) return;
    if (out_begin_ == out_.size()) {
      out_.clear();
      out_begin_ = 0;
      if (direct.empty()) return;
    }
    if (full_ == Full::queue) {
      append(direct);
      return await_writable();
    }
    pollfd wait = {descriptor_, POLLOUT, 0};
    const int ready = ::poll(&wait, 1, static_cast<int>(patience_.count()));
    if (ready == 0)
      return give_up({HALYARD_DEADLINE_EXCEEDED,
                      fmt::format("the other side has received nothing for {} ms", patience_.count())});
  }
}

size_t Stream::write_once(Bytes direct) {
  for (;;) {
    iovec parts[2] = {{out_.data() + out_begin_, out_.size() - out_begin_},
                      {const_cast<uint8_t*>(direct.data()), direct.size()}};
    msghdr message = {};
    message.msg_iov = parts;
    message.msg_iovlen = direct.empty() ? 1 : 2;
    const ssize_t count = ::sendmsg(descriptor_, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count >= 0) {
      const size_t of_queue = std::min(static_cast<size_t>(count), parts[0].iov_len);
      out_begin_ += of_queue;
      return static_cast<size_t>(count) - of_queue;
    }
    if (errno == EAGAIN || errno == EWOULDBLOCK) return 0;
    if (errno == EINTR) continue;
    give_up({HALYARD_UNAVAILABLE, error_text(errno)});
    return 0;
  }
}

void Stream::await_writable() {
  if (out_begin_ > (out_.size() / 2) + kBuffer) {
    out_.erase(out_.begin(), out_.begin() + static_cast<ptrdiff_t>(out_begin_));
    out_begin_ = 0;
  }
  if (is_writing_) return;
  is_writing_ = true;
  asio_socket_.async_wait(boost::asio::socket_base::wait_write,
                          [self = shared_from_this()](boost::system::error_code) {
                            const std::lock_guard lock(self->mutex_);
                            self->is_writing_ = false;
                            if (!self->is_ended_) self->write_out({});
                          });
}

void Stream::give_up(Failure reason) {
  if (!reason_) reason_ = std::move(reason);
  is_ended_ = true;
  // Wakes the thread that receives, which tells the receiver.
  ::shutdown(descriptor_, SHUT_RDWR);
}

void Stream::end(Failure reason) {
  const std::lock_guard lock(mutex_);
  if (is_ended_) return;
  if (out_.size() > out_begin_) write_once({});
  give_up(std::move(reason));
}

}  // namespace halyard::remote
