// Sending writes to the socket on the sender's thread, because a wake-up takes longer. Asio waits until the
// socket can be read or, with Full::queue, written. A sender that waits holds no lock, so others receive.
#include "remote/stream.h"

#include <poll.h>
#include <sys/epoll.h>
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

constexpr size_t kBuffer = 16 << 10;  // bytes that are received at once, if their place is not known
constexpr size_t kBehind = 4 << 10;   // bytes that are received behind those that go to their place
constexpr size_t kDirect = 4 << 10;   // so many bytes go straight to their place
constexpr size_t kSmall = 16 << 10;   // data up to this size are copied to be sent with other frames
// More bytes are sent even if they could wait: at a server, or at a client, whose server can begin with them.
constexpr size_t kUnsent = 64 << 10, kUnsentByClient = 8 << 10;
constexpr int kFramesAtOnce = 64;    // before the receiver is told
constexpr size_t kSpare = 64 << 10;  // larger blocks are not used again
constexpr size_t kParts = 16;        // of one write
constexpr size_t kSealed =
    64 << 10;  // is encrypted and sent at once, so that the other side decrypts meanwhile

std::string error_text(int error) {
  char buffer[128];
  return ::strerror_r(error, buffer, sizeof buffer);
}

Bytes bytes_of(const uint32_t (&header)[2]) {
  return {reinterpret_cast<const uint8_t*>(header), sizeof header};
}

static_assert(std::endian::native == std::endian::little);

// Linux writes so many bytes to a Unix socket in one step, or none, even if the writer is killed meanwhile.
constexpr size_t kAtomicOfUnix = 2 << 10;

size_t most_at_once(int socket) {
  int family = 0;
  socklen_t size = sizeof family;
  const bool is_unix = ::getsockopt(socket, SOL_SOCKET, SO_DOMAIN, &family, &size) == 0 && family == AF_UNIX;
  return is_unix ? kAtomicOfUnix : 0;
}

// An epoll file that contains the socket; -1: the system has no more files.
int epoll_of(int socket) {
  const int made = ::epoll_create1(EPOLL_CLOEXEC);
  epoll_event event = {.events = EPOLLIN, .data = {}};
  if (made >= 0) ::epoll_ctl(made, EPOLL_CTL_ADD, socket, &event);
  return made;
}

}  // namespace

Stream::Stream(boost::asio::io_context& io, Descriptor socket, std::unique_ptr<Tls> tls, Full full,
               std::chrono::milliseconds patience, std::chrono::microseconds busy_poll)
    : full_(full),
      patience_(patience),
      polling_(busy_poll),
      descriptor_(socket.get()),
      most_at_once_(most_at_once(descriptor_)),
      watched_(io),
      tls_(std::move(tls)),
      in_(kBuffer),
      last_received_(Clock::now().time_since_epoch().count()) {
  if (full_ == Full::block) {
    socket_ = std::move(socket);
    watched_.assign(epoll_of(descriptor_));  // throws if there is none
  } else {
    watched_.assign(socket.release());
  }
}

Stream::~Stream() = default;

Result<> Stream::shake_hands(Clock::time_point deadline) {
  if (!tls_) return {};
  for (;;) {
    std::vector<uint8_t> wire;
    const Result<bool> done = tls_->shake_hands(wire);
    {
      std::unique_lock lock(mutex_);
      append(wire);
      write_out({});
      await_written(lock);
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
  boost::asio::post(watched_.get_executor(), [self = shared_from_this()] { self->on_readable(); });
}

void Stream::resume() {
  if (!is_paused_.load()) return;
  last_received_.store(Clock::now().time_since_epoch().count(), std::memory_order_relaxed);
  if (!is_paused_.exchange(false)) return;
  boost::asio::post(watched_.get_executor(), [self = shared_from_this()] { self->on_readable(); });
}

// ---- Who receives

// Either this thread or the handler of the last wait sees what the other one has written, so that somebody
// receives afterwards.
void Stream::await_readable() {
  reader_.store(Reader::nobody);
  if (is_watched_.exchange(true)) return;
  watched_.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                      [self = shared_from_this()](boost::system::error_code) {
                        self->is_watched_.store(false);
                        self->on_readable();
                      });
}

void Stream::on_readable() {
  Reader expected = Reader::nobody;
  if (!reader_.compare_exchange_strong(expected, Reader::loop)) return;
  if (receiver_) return read_in_loop();
  reader_.store(Reader::nobody);  // lost already
}

void Stream::read_in_loop() {
  const std::shared_ptr<Receiver> receiver = receiver_;
  Result<bool> more = true;
  if (loss_) more = std::unexpected(*std::exchange(loss_, std::nullopt));
  for (int i = 0; i < kFramesAtOnce && more && *more && !wants_pause_; ++i) more = receive_or_fail();
  if (!more) {
    Failure reason = std::move(more.error());
    {
      const std::lock_guard lock(mutex_);
      give_up(reason);
      reason = *reason_;
    }
    receiver->received_some(false);
    receiver_.reset();
    reader_.store(Reader::nobody);
    receiver->lost(reason);
    return;
  }
  // Another thread may go on from here, so nothing of this object's reading side is used after that.
  const bool goes_on = !wants_pause_ && *more;
  if (std::exchange(wants_pause_, false)) {
    reader_.store(Reader::nobody);
    is_paused_.store(true);
  } else if (goes_on) {
    reader_.store(Reader::nobody);
    boost::asio::post(watched_.get_executor(), [self = shared_from_this()] { self->on_readable(); });
  } else {
    await_readable();
  }
  receiver->received_some(goes_on);
}

void Stream::watch(bool on) {
  epoll_event event = {.events = on ? uint32_t{EPOLLIN} : 0u, .data = {}};
  ::epoll_ctl(watched_.native_handle(), EPOLL_CTL_MOD, descriptor_, &event);
}

bool Stream::begin_waiting() {
  Reader expected = Reader::nobody;
  if (full_ != Full::block || is_paused_.load() || has_loss_.load() ||
      !reader_.compare_exchange_strong(expected, Reader::waiter))
    return false;
  if (!receiver_ || loss_) {
    const bool is_to_be_told = loss_.has_value();
    reader_.store(Reader::nobody);
    // The handler that tells the receiver has no effect if it ran while this thread was the reader.
    if (is_to_be_told)
      boost::asio::post(watched_.get_executor(), [self = shared_from_this()] { self->on_readable(); });
    return false;
  }
  watch(false);
  return true;
}

bool Stream::receive_once(Clock::time_point end) {
  if (!has_buffered() && !await_bytes(end)) return false;
  Result<bool> more = receive_or_fail();
  if (!more) {
    loss_ = std::move(more.error());
    has_loss_.store(true);
    return false;
  }
  return !wants_pause_;
}

bool Stream::await_bytes(Clock::time_point end) {
  pollfd wait = {descriptor_, POLLIN, 0};
  if (has_unsent()) wait.events |= POLLOUT;
  if (!polling_.poll([&] { return ::poll(&wait, 1, 0) != 0; })) {
    const Clock::duration left = end - Clock::now();
    if (left.count() <= 0) return false;
    const timespec time = {std::chrono::duration_cast<std::chrono::seconds>(left).count(),
                           std::chrono::nanoseconds(left % std::chrono::seconds(1)).count()};
    if (::ppoll(&wait, 1, &time, nullptr) == 0) return false;
  }
  if (wait.revents & POLLOUT) flush_some();
  if (wait.revents & POLLIN) polling_.arrived();
  return true;
}

bool Stream::has_buffered() {
  if (in_begin_ < in_end_) return true;
  if (!tls_) return false;
  const std::lock_guard lock(mutex_);
  return tls_->has_pending();
}

void Stream::end_waiting() {
  const std::shared_ptr<Receiver> receiver = receiver_;
  const bool is_lost = loss_.has_value();
  const bool has_more = has_buffered();  // bytes that no event will announce
  if (std::exchange(wants_pause_, false)) {
    reader_.store(Reader::nobody);
    is_paused_.store(true);
  } else {
    watch(true);
    await_readable();
    if (is_lost || has_more)
      boost::asio::post(watched_.get_executor(), [self = shared_from_this()] { self->on_readable(); });
  }
  receiver->received_by_waiter();
}

// ---- Receiving

Result<bool> Stream::receive_or_fail() {
  try {
    return receive();
  } catch (const std::bad_alloc&) {
    return fail(HALYARD_RESOURCE_EXHAUSTED, "this process has no memory for what the other side sends");
  }
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
      const std::span<uint8_t> rest = target.subspan(done_);
      if (in_begin_ < in_end_) {
        const size_t count = std::min(rest.size(), in_end_ - in_begin_);
        std::memcpy(rest.data(), in_.data() + in_begin_, count);
        in_begin_ += count;
        done_ += count;
        continue;
      }
      in_begin_ = in_end_ = 0;
      if (rest.size() >= kDirect) {
        const size_t count = REMOTE_TRY(read_some(rest, std::span(in_).first(kBehind)));
        if (count == 0) return false;
        done_ += std::min(count, rest.size());
        in_end_ = count - std::min(count, rest.size());
      } else {
        in_end_ = REMOTE_TRY(read_some(in_, {}));
        if (in_end_ == 0) return false;
      }
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
  const uint32_t message = header_[0], data = header_[1];
  const size_t largest = largest_.load(std::memory_order_relaxed);
  const size_t most_message = std::min(largest, kMaxMessage), most_data = std::min(largest, kMaxData);
  if (message == 0 || message > most_message || data > most_data)
    return fail(HALYARD_INVALID_ARGUMENT,
                "the other side sent a frame with a message of {} bytes and {} bytes of data; expected 1 to "
                "{} and at most {}: "
                "it does not speak this protocol",
                message, data, most_message, most_data);
  frame_ = {};
  frame_.message_size = message;
  frame_.data_size = data;
  // Bytes that do not fit a receive buffer may have a better place.
  const size_t begin = (message + 15) & ~size_t{15};
  const bool is_bulk = data >= kSmall;
  block_size_ = begin + (is_bulk ? 0 : data);
  if (spare_ && spare_size_ >= block_size_) {
    frame_.block = std::move(spare_);
    block_size_ = spare_size_;
  } else {
    frame_.block = std::make_unique_for_overwrite<uint8_t[]>(block_size_);
  }
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
  block_size_ = begin + frame_.data_size;
  frame_.data = frame_.block.get() + begin;
  return {};
}

bool Stream::finish_frame() {
  reading_ = Reading::header;
  if (!receiver_->received(frame_)) wants_pause_ = true;
  if (frame_.block && block_size_ <= kSpare) {
    spare_ = std::move(frame_.block);
    spare_size_ = block_size_;
  }
  frame_ = {};
  return true;
}

Result<size_t> Stream::read_some(std::span<uint8_t> target, std::span<uint8_t> behind) {
  if (!tls_) return read_wire(target, behind);
  uint8_t wire[64 << 10];  // several records of TLS
  for (;;) {
    {
      const std::lock_guard lock(mutex_);
      sealed_.clear();
      const Result<size_t> opened = tls_->open(target, sealed_);
      if (!sealed_.empty()) {
        append(sealed_);
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

Result<size_t> Stream::read_wire(std::span<uint8_t> target, std::span<uint8_t> behind) {
  for (;;) {
    iovec parts[2] = {{target.data(), target.size()}, {behind.data(), behind.size()}};
    msghdr message = {};
    message.msg_iov = parts;
    message.msg_iovlen = behind.empty() ? 1 : 2;
    const ssize_t count = ::recvmsg(descriptor_, &message, MSG_DONTWAIT);
    if (count > 0) {
      last_received_.store(Clock::now().time_since_epoch().count(), std::memory_order_relaxed);
      return static_cast<size_t>(count);
    }
    if (count == 0 || errno == ECONNRESET)
      return fail(HALYARD_UNAVAILABLE, "the other side has ended the connection{}",
                  full_ == Full::block
                      ? " without a reason; its process may have crashed: the log of the server tells"
                      : "");
    if (errno == EAGAIN || errno == EWOULDBLOCK) return size_t{0};
    if (errno != EINTR) return fail(HALYARD_UNAVAILABLE, "{}", error_text(errno));
  }
}

Clock::time_point Stream::last_received() const {
  if (is_paused_.load()) return Clock::now();
  return Clock::time_point(Clock::duration(last_received_.load(std::memory_order_relaxed)));
}

// ---- Sending

void Stream::send(Bytes message, Bytes data, Urgency urgency, const std::shared_ptr<void>& keep) {
  const uint32_t header[2] = {static_cast<uint32_t>(message.size()), static_cast<uint32_t>(data.size())};
  std::unique_lock lock(mutex_);
  if (is_ended_) return;
  const bool is_small = data.size() < kSmall;
  const bool waits = full_ == Full::block && urgency != Urgency::soon;
  if (tls_) {
    sealed_.clear();
    const Bytes start[] = {bytes_of(header), message, is_small ? data : Bytes()};
    for (const Bytes part : start) sealed_.insert(sealed_.end(), part.begin(), part.end());
    Result<> sealed = tls_->seal(sealed_, out_);
    if (is_small) data = {};
    while (sealed && !data.empty() && !is_ended_) {
      const size_t size = std::min(data.size(), kSealed);
      sealed = tls_->seal(data.first(size), out_);
      data = data.subspan(size);
      if (sealed) write_out({});
    }
    if (!sealed) return give_up(std::move(sealed.error()));
    data = {};
  } else {
    append(bytes_of(header));
    append(message);
    if (is_small) {
      append(data);
      data = {};
    }
  }
  const size_t most = full_ == Full::block ? kUnsentByClient : kUnsent;
  if (urgency == Urgency::later && data.empty() && unsent() <= most) return;
  // The data of a sender that waits stay where they are until it returns.
  const std::shared_ptr<void> of_sender(std::shared_ptr<void>(), const_cast<uint8_t*>(data.data()));
  write_out(data, waits ? of_sender : keep);
  if (waits) await_written(lock);
}

void Stream::flush() {
  std::unique_lock lock(mutex_);
  if (is_ended_ || unsent() == 0) return;
  write_out({});
  if (full_ == Full::block) await_written(lock);
}

bool Stream::flush_some() {
  const std::lock_guard lock(mutex_);
  if (!is_ended_ && unsent() > 0) write_out({});
  return is_ended_ || unsent() == 0;
}

size_t Stream::queued() const {
  const std::lock_guard lock(mutex_);
  return unsent();
}

size_t Stream::queued_copies() const {
  const std::lock_guard lock(mutex_);
  return unsent() - borrowed_bytes_;
}

bool Stream::has_unsent() const { return queued() > 0; }

bool Stream::is_ended() const {
  const std::lock_guard lock(mutex_);
  return is_ended_;
}

void Stream::append(Bytes bytes) {
  if (kept_.empty()) {
    out_.insert(out_.end(), bytes.begin(), bytes.end());
    return;
  }
  // The last part grows unless it is being written, is somebody else's, or is so large that twice its memory,
  // which a vector takes to grow, would count.
  constexpr size_t kLarge = 4096;
  Kept& last = kept_.back();
  const bool may_grow = !last.keep && last.rest.size() == last.own.size() && last.own.size() < kLarge;
  Kept& to = may_grow ? last : kept_.emplace_back();
  to.own.insert(to.own.end(), bytes.begin(), bytes.end());
  to.rest = to.own;
  kept_bytes_ += bytes.size();
}

void Stream::keep_rest(Bytes rest, const std::shared_ptr<void>& keep) {
  if (rest.empty()) return;
  Kept& kept = kept_.emplace_back();
  if (keep) {
    kept.keep = keep;
    kept.rest = rest;
    borrowed_bytes_ += rest.size();
  } else {
    kept.own.assign(rest.begin(), rest.end());
    kept.rest = kept.own;
  }
  kept_bytes_ += rest.size();
}

// Writes what is there, then `direct`; keeps what the other side does not take now.
void Stream::write_out(Bytes direct, const std::shared_ptr<void>& keep) {
  if (full_ == Full::queue && is_writing_) return keep_rest(direct, keep);
  if (!kept_.empty()) {
    keep_rest(direct, keep);
    direct = {};
  }
  const size_t size = unsent() + direct.size();
  if (is_within_frame_ && size > most_at_once_) is_within_frame_->store(1);
  while (!is_ended_) {
    const uint64_t before = written_;
    direct = direct.subspan(write_once(direct));
    if (unsent() == 0) {
      out_.clear();
      out_begin_ = 0;
      if (direct.empty()) {
        if (is_within_frame_ && !is_ended_) is_within_frame_->store(0);
        return;
      }
    }
    if (written_ == before) break;
  }
  if (is_ended_) return;
  keep_rest(direct, keep);
  if (out_begin_ > (out_.size() / 2) + kBuffer) {
    out_.erase(out_.begin(), out_.begin() + static_cast<ptrdiff_t>(out_begin_));
    out_begin_ = 0;
  }
  if (full_ == Full::queue) await_writable();
}

// Until what is there now is written. One of the threads that wait looks at the socket.
void Stream::await_written(std::unique_lock<std::mutex>& lock) {
  const uint64_t end = written_ + unsent();
  while (!is_ended_ && written_ < end) {
    if (is_writing_) {
      was_writable_.wait(lock);
      continue;
    }
    is_writing_ = true;
    const uint64_t before = written_;
    lock.unlock();
    pollfd wait = {descriptor_, POLLOUT, 0};
    const int ready = ::poll(&wait, 1, static_cast<int>(patience_.count()));
    lock.lock();
    is_writing_ = false;
    const bool is_late = ready == 0 && written_ == before &&
                         !(is_patient_.load() && Clock::now() - last_received() < patience_);
    if (is_late)
      give_up({HALYARD_DEADLINE_EXCEEDED,
               fmt::format("the other side has received nothing for {} ms", patience_.count())});
    if (!is_ended_) write_out({});
    was_writable_.notify_all();
  }
}

size_t Stream::write_once(Bytes direct) {
  for (;;) {
    iovec parts[kParts];
    size_t count = 0;
    const auto add = [&](const uint8_t* data, size_t size) {
      if (size > 0) parts[count++] = {const_cast<uint8_t*>(data), size};
    };
    add(out_.data() + out_begin_, out_.size() - out_begin_);
    for (size_t i = 0; i < kept_.size() && count < kParts - 1; ++i)
      add(kept_[i].rest.data(), kept_[i].rest.size());
    add(direct.data(), direct.size());
    if (count == 0) return 0;
    msghdr message = {};
    message.msg_iov = parts;
    message.msg_iovlen = count;
    const ssize_t written = ::sendmsg(descriptor_, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (written >= 0) {
      auto left = static_cast<size_t>(written);
      written_ += left;
      const size_t of_out = std::min(left, out_.size() - out_begin_);
      out_begin_ += of_out;
      left -= of_out;
      while (left > 0 && !kept_.empty()) {
        Kept& first = kept_.front();
        const size_t of_first = std::min(left, first.rest.size());
        first.rest = first.rest.subspan(of_first);
        kept_bytes_ -= of_first;
        if (first.keep) borrowed_bytes_ -= of_first;
        left -= of_first;
        if (first.rest.empty()) kept_.pop_front();
      }
      return left;
    }
    if (errno == EAGAIN || errno == EWOULDBLOCK) return 0;
    if (errno == EINTR) continue;
    // The other side has ended the connection. The bytes that it sent before may tell the reason.
    if (errno == EPIPE || errno == ECONNRESET)
      stop();
    else
      give_up({HALYARD_UNAVAILABLE, error_text(errno)});
    return 0;
  }
}

void Stream::await_writable() {
  is_writing_ = true;
  watched_.async_wait(boost::asio::posix::stream_descriptor::wait_write,
                      [self = shared_from_this()](boost::system::error_code) {
                        const std::lock_guard lock(self->mutex_);
                        self->is_writing_ = false;
                        if (!self->is_ended_) self->write_out({});
                      });
}

void Stream::give_up(Failure reason) {
  if (!reason_) reason_ = std::move(reason);
  stop();
}

void Stream::stop() {
  is_ended_ = true;
  // Wakes the thread that receives, which takes the bytes that have come already and tells the receiver.
  ::shutdown(descriptor_, SHUT_RDWR);
}

void Stream::end(Failure reason) {
  const std::lock_guard lock(mutex_);
  if (!is_ended_ && unsent() > 0) write_once({});
  give_up(std::move(reason));
}

}  // namespace halyard::remote
