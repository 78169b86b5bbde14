// Beast reads chunks. A body of known length is read from the socket directly into the target.
#include "body.h"

#include <algorithm>
#include <boost/asio/redirect_error.hpp>
#include <boost/beast/http/read.hpp>
#include <cstring>

namespace halyard::tools::serve {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using boost::system::error_code;

namespace {

constexpr size_t kReadyBytes = 256 << 10;  // bytes of a large body before the socket is ready
constexpr size_t kCodedPiece = 16 << 10;   // bytes of a compressed body that are read at a time

}  // namespace

void Body::decode(Coding coding, uint64_t most) {
  if (coding == Coding::identity) return;
  decoder_.emplace(coding);
  sent_.resize(kCodedPiece);
  most_ = most;
}

void Body::begin() {
  begin_ = Clock::now();
  received_ = 0;
  expire_at_(begin_ + kGrace);
}

void Body::count(size_t bytes) {
  received_ += bytes;
  collected_ = 0;
  if (bytes > 0) expire_at_(deadline_after(begin_, received_));
}

bool Body::is_too_large() const { return is_decoded_too_large_ || error_ == http::error::body_limit; }

void Body::skip_buffered(size_t size) {
  buffer_.consume(size);
  remaining_ -= size;
}

Task<size_t> Body::read_some(char* target, size_t size) {
  if (!decoder_) co_return co_await read_sent(target, size);
  if (decoded_ > most_) {
    is_decoded_too_large_ = true;
    co_return 0;
  }
  std::span<char> room(target, size);
  Decoder::State state = Decoder::State::more;
  while (room.size() == size && !error_) {
    state = decoder_->step(coded_, room);
    if (state == Decoder::State::malformed || room.size() < size) break;
    if (is_at_end()) {
      is_malformed_ = state != Decoder::State::at_end;
      co_return 0;
    }
    const size_t read = co_await read_sent(sent_.data(), sent_.size());
    coded_ = std::span<const char>(sent_).first(read);
  }
  // Bytes before the limit or before a malformed byte are handed out, and the next call finds the error
  // again: the response does not depend on how the body arrived.
  const size_t made = size - room.size();
  const uint64_t allowed = most_ - std::min(most_, decoded_);
  decoded_ += made;
  is_decoded_too_large_ = made > 0 && allowed == 0;
  is_malformed_ |= made == 0 && state == Decoder::State::malformed;
  co_return std::min<uint64_t>(made, allowed);
}

// Reads bytes as sent.
Task<size_t> Body::read_sent(char* target, size_t size) {
  error_ = {};
  if (is_chunked_) co_return co_await read_chunks(target, size);
  size = std::min<uint64_t>(size, remaining_);
  if (size == 0) co_return 0;
  if (const size_t buffered = std::min(size, buffer_.size()); buffered > 0) {
    std::memcpy(target, buffer_.data().data(), buffered);
    skip_buffered(buffered);
    count(buffered);
    co_return buffered;
  }
  const size_t read = co_await receive(target, size);
  remaining_ -= read;
  co_return read;
}

// For a large body, the socket becomes ready only after kReadyBytes, or at the end, because each time a
// thread is woken.
Task<size_t> Body::receive(char* target, size_t size) {
  set_ready_bytes(remaining_ >= kReadyBytes && size >= kReadyBytes ? kReadyBytes : 1);
  is_receiving_ = true;
  const size_t read =
      co_await socket_.async_read_some(asio::buffer(target, size), asio::redirect_error(use_task, error_));
  is_receiving_ = false;
  count(read);
  if (error_ || remaining_ - read < kReadyBytes) set_ready_bytes(1);
  co_return read;
}

bool Body::puts_off() {
  error_code ignored;
  const size_t collected = is_receiving_ ? socket_.available(ignored) : 0;
  if (collected <= collected_) return false;
  collected_ = collected;
  const Clock::time_point deadline = deadline_after(begin_, received_ + collected);
  if (deadline <= Clock::now()) return false;
  expire_at_(deadline);
  return true;
}

void Body::set_ready_bytes(size_t bytes) {
  if (std::exchange(ready_bytes_, bytes) == bytes) return;
  error_code ignored;  // a socket without this option is ready at each byte
  (void)socket_.set_option(asio::socket_base::receive_low_watermark(static_cast<int>(bytes)), ignored);
}

Task<size_t> Body::read_chunks(char* target, size_t size) {
  auto& body = parser_.get().body();
  body.data = target;
  body.size = size;
  body.more = true;
  while (body.size == size && !parser_.is_done() && !error_) {
    co_await http::async_read_some(socket_, buffer_, parser_, asio::redirect_error(use_task, error_));
    if (error_ == http::error::need_buffer) error_ = {};
  }
  const size_t read = size - body.size;
  count(read);
  co_return read;
}

}  // namespace halyard::tools::serve
