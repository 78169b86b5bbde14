// The body of a request as it comes from the connection: with a length or in chunks, decoded if it is
// compressed. Whoever sends it must make kLeastRate bytes a second on the average, after kGrace.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/buffer_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "decoder.h"
#include "metrics.h"
#include "session.h"

namespace halyard::tools::serve {

template <typename T = void>
using Task = boost::asio::awaitable<T, SessionExecutor>;

using RequestParser = boost::beast::http::request_parser<boost::beast::http::buffer_body>;

inline constexpr uint64_t kLeastRate = 64 << 10;   // bytes a second, of bodies and answers
inline constexpr std::chrono::seconds kGrace(10);  // before that counts
inline constexpr size_t kPiece = 64 << 10;         // of what has no length, at a time

// When somebody who has sent or taken so many bytes has to have made the next.
inline Clock::duration time_for(uint64_t bytes) {
  return kGrace + std::chrono::milliseconds(bytes * 1000 / kLeastRate);
}

// One body. On the connection's strand.
class Body {
 public:
  // `buffer` has what was read behind the header. `expire_at` is told the deadline again and again.
  Body(SessionSocket& socket, boost::beast::flat_buffer& buffer, RequestParser& parser, bool is_chunked,
       uint64_t length, std::function<void(Clock::time_point)> expire_at)
      : socket_(socket),
        buffer_(buffer),
        parser_(parser),
        is_chunked_(is_chunked),
        remaining_(length),
        expire_at_(std::move(expire_at)) {}

  // What is read from now on is decoded. It may have no more than `most` bytes.
  void decode(Coding coding, uint64_t most);
  // The time of the body counts from now on.
  void begin();

  // Up to `size` bytes, at least one; 0 at the end of the body and at errors.
  Task<size_t> read_some(char* target, size_t size);
  // The same of the bytes as they are sent, which are not decoded.
  Task<size_t> read_sent(char* target, size_t size);
  // Takes `size` bytes that stand in the buffer already, which the caller has read there.
  void skip_buffered(size_t size);

  // At a deadline: whether bytes that the socket has collected, and that were not read, put it off.
  bool puts_off();

  bool is_coded() const { return decoder_.has_value(); }
  bool is_chunked() const { return is_chunked_; }
  // Bytes that were announced and not read, of a body that is not chunked, as it is sent.
  uint64_t remaining() const { return remaining_; }
  // Whether all of it was read, as it is sent.
  bool is_at_end() const { return is_chunked_ ? parser_.is_done() : remaining_ == 0; }

  const boost::system::error_code& error() const { return error_; }
  bool is_too_large() const;
  bool is_malformed() const { return is_malformed_; }  // it cannot be decoded, or ends too early
  void forget_error() { error_ = {}; }

 private:
  Task<size_t> receive(char* target, size_t size);
  Task<size_t> read_chunks(char* target, size_t size);
  void set_ready_bytes(size_t bytes);
  void count(size_t bytes);

  SessionSocket& socket_;
  boost::beast::flat_buffer& buffer_;
  RequestParser& parser_;
  const bool is_chunked_;
  uint64_t remaining_;
  const std::function<void(Clock::time_point)> expire_at_;
  boost::system::error_code error_;
  Clock::time_point begin_;
  uint64_t received_ = 0;  // since then
  size_t ready_bytes_ = 1;
  bool is_receiving_ = false;

  std::optional<Decoder> decoder_;
  std::vector<char> sent_;       // compressed bytes, of which
  std::span<const char> coded_;  // these were not decoded
  uint64_t most_ = 0;            // decoded bytes
  uint64_t decoded_ = 0;
  bool is_decoded_too_large_ = false;
  bool is_malformed_ = false;
};

}  // namespace halyard::tools::serve
