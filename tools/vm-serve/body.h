// The body of a request, read from the connection: with a length or chunked, decoded if it is compressed. The
// client must send kMinRate bytes a second on average, after kGrace, and something in every kGrace.
#pragma once

#include <algorithm>
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
#include "socket.h"

namespace halyard::tools::serve {

using RequestParser = boost::beast::http::request_parser<boost::beast::http::buffer_body>;

inline constexpr uint64_t kMinRate = 64 << 10;     // bytes a second, for bodies and responses
inline constexpr std::chrono::seconds kGrace(10);  // before the rate applies, and without any byte
inline constexpr size_t kPiece = 64 << 10;         // bytes read at a time if the length is unknown

// The time limit, from the start, for the next byte after `bytes` bytes have been sent or received.
inline Clock::duration time_for(uint64_t bytes) {
  return kGrace + std::chrono::milliseconds(bytes * 1000 / kMinRate);
}
// The deadline of the next byte if the last of `bytes` bytes has been transferred now, so that a client that
// stops after a fast beginning does not keep its memory for long.
inline Clock::time_point deadline_after(Clock::time_point begin, uint64_t bytes) {
  return std::min(begin + time_for(bytes), Clock::now() + kGrace);
}

// The body of one request. Used on the connection's strand.
class Body {
 public:
  // `buffer` contains the bytes that were read after the header. `expire_at` is called with each new
  // deadline.
  Body(ClientSocket& socket, boost::beast::flat_buffer& buffer, RequestParser& parser, bool is_chunked,
       uint64_t length, std::function<void(Clock::time_point)> expire_at)
      : socket_(socket),
        buffer_(buffer),
        parser_(parser),
        is_chunked_(is_chunked),
        remaining_(length),
        expire_at_(std::move(expire_at)) {}

  // Decodes the bytes that are read from now on, if they are coded. They may decode to at most `most` bytes.
  void decode(Coding coding, uint64_t most);
  // The limit of decoded bytes; nullopt if the body is not coded.
  std::optional<uint64_t> most_decoded() const { return decoder_ ? std::optional(most_) : std::nullopt; }
  // Starts the time limit of the body.
  void begin();

  // Reads up to `size` bytes, at least one; 0 at the end of the body and after errors.
  Task<size_t> read_some(char* target, size_t size);
  // Reads bytes as sent, without decoding.
  Task<size_t> read_sent(char* target, size_t size);
  // Skips `size` bytes that the caller has read in the buffer.
  void skip_buffered(size_t size);

  // Called at a deadline: whether bytes that have come into the socket since the last read or call extend the
  // deadline.
  bool puts_off();

  bool is_coded() const { return decoder_.has_value(); }
  bool is_chunked() const { return is_chunked_; }
  // The number of unread bytes, as sent, of a body that is not chunked.
  uint64_t remaining() const { return remaining_; }
  // Whether the whole body, as sent, has been read.
  bool is_at_end() const { return is_chunked_ ? parser_.is_done() : remaining_ == 0; }

  const boost::system::error_code& error() const { return error_; }
  bool is_too_large() const;
  bool is_malformed() const { return is_malformed_; }  // cannot be decoded, or ends too early
  void forget_error() { error_ = {}; }

 private:
  Task<size_t> receive(char* target, size_t size);
  Task<size_t> read_chunks(char* target, size_t size);
  void set_ready_bytes(size_t bytes);
  void count(size_t bytes);

  ClientSocket& socket_;
  boost::beast::flat_buffer& buffer_;
  RequestParser& parser_;
  const bool is_chunked_;
  uint64_t remaining_;
  const std::function<void(Clock::time_point)> expire_at_;
  boost::system::error_code error_;
  Clock::time_point begin_;
  uint64_t received_ = 0;  // since begin_
  size_t collected_ = 0;   // bytes in the socket at the last call of puts_off(), since the last read
  size_t ready_bytes_ = 1;
  bool is_receiving_ = false;

  std::optional<Decoder> decoder_;
  std::vector<char> sent_;       // compressed bytes
  std::span<const char> coded_;  // the part of sent_ that is not decoded yet
  uint64_t most_ = 0;            // limit of decoded bytes
  uint64_t decoded_ = 0;
  bool is_decoded_too_large_ = false;
  bool is_malformed_ = false;
};

}  // namespace halyard::tools::serve
