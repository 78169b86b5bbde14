// Stream: frames over a connected socket, with or without TLS. A frame is a message and bytes that belong to
// it:
//
//   uint32 size of the message    uint32 number of bytes    the message    the bytes
//
// Numbers are little endian. Sending is thread-safe. Frames are received on the threads that run the
// io_context: one at a time, in order. No thread belongs to a stream.
#pragma once

#include <atomic>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "remote/address.h"
#include "remote/failure.h"
#include "remote/tls.h"

namespace halyard::remote {

using Bytes = std::span<const uint8_t>;

inline constexpr size_t kMaxMessage = 16 << 20;  // bytes of a message
inline constexpr size_t kPiece = 256 << 10;      // bulk data is sent in pieces of this size
inline constexpr size_t kMaxData = 1 << 20;      // bytes that belong to a message

struct Frame {
  std::unique_ptr<uint8_t[]> block;  // aligned for messages
  size_t message_size = 0;
  uint8_t* data = nullptr;  // in `block`, or where Receiver::place() has put it
  size_t data_size = 0;

  Bytes message() const { return {block.get(), message_size}; }
  Bytes bytes() const { return {data, data_size}; }
};

class Receiver {
 public:
  virtual ~Receiver() = default;
  // A memory for the bytes of a message of which nothing else is known yet; empty: they become a part of the
  // frame.
  virtual std::span<uint8_t> place(Bytes message, size_t size) {
    return (void)message, (void)size, std::span<uint8_t>();
  }
  // Must be short, because the next frame is not received before it returns. False: stop receiving until
  // Stream::resume().
  virtual bool received(Frame frame) = 0;
  // Called after some frames, when other threads can receive: may take long, and overlap with received().
  // Calls Stream::resume() at its end.
  virtual void received_some() = 0;
  // Called once, after the last frame, unless the stream was dropped before.
  virtual void lost(const Failure& reason) = 0;
};

class Stream : public std::enable_shared_from_this<Stream> {
 public:
  enum class Full : uint8_t {
    block,  // a sender waits while the other side does not receive
    queue,  // bytes are kept; the user looks at queued()
  };
  // `tls` may be null.
  Stream(boost::asio::io_context& io, Descriptor socket, std::unique_ptr<Tls> tls, Full full,
         std::chrono::milliseconds patience);
  ~Stream();

  // For clients, before start(): blocks until both sides are authenticated.
  Result<> shake_hands(std::chrono::steady_clock::time_point deadline);
  // Begins to receive. The receiver lives as long as the stream receives.
  void start(std::shared_ptr<Receiver> receiver);
  // Any thread. No effect unless received() has returned false.
  void resume();

  enum class Urgency : uint8_t { later, now };
  // Sends a frame; `later` allows it to wait for the next frame. Fails silently if the connection is lost:
  // the receiver is told.
  void send(Bytes message, Bytes data = {}, Urgency urgency = Urgency::now);
  void flush();
  // Bytes that wait for the other side (Full::queue).
  size_t queued() const;
  bool has_unsent() const;
  bool is_ended() const;

  // Sends queued bytes if possible, then ends the connection. The receiver gets the reason, or an earlier
  // one.
  void end(Failure reason);
  // The last time at which bytes have arrived.
  std::chrono::steady_clock::time_point last_received() const;
  int socket() const { return descriptor_; }
  const Tls* tls() const { return tls_.get(); }  // after the handshake

 private:
  enum class Reading : uint8_t { header, message, data };

  void await_readable();
  void on_readable();
  // False: no more bytes for now. A failure ends the connection.
  Result<bool> receive();
  Result<size_t> read_some(std::span<uint8_t> target);  // 0: none for now
  Result<size_t> read_wire(std::span<uint8_t> target);
  Result<> begin_message();
  Result<> begin_data();
  bool finish_frame();
  void append(Bytes bytes);
  void write_out(Bytes direct);
  size_t write_once(Bytes direct);  // bytes of `direct` that were written
  void await_writable();
  void give_up(Failure reason);  // under mutex_

  const Full full_;
  const std::chrono::milliseconds patience_;
  boost::asio::generic::stream_protocol::socket asio_socket_;
  const int descriptor_;
  const std::unique_ptr<Tls> tls_;

  mutable std::mutex mutex_;  // guards sending, TLS and the members up to the next comment
  std::vector<uint8_t> out_;
  size_t out_begin_ = 0;
  bool is_writing_ = false;  // waits until the socket is writable
  bool is_ended_ = false;
  std::optional<Failure> reason_;

  // Of the thread that receives:
  std::shared_ptr<Receiver> receiver_;
  std::vector<uint8_t> in_;
  size_t in_begin_ = 0, in_end_ = 0;
  Reading reading_ = Reading::header;
  uint32_t header_[2] = {};
  size_t done_ = 0;  // bytes of the current part
  Frame frame_;
  bool wants_pause_ = false;
  std::atomic<bool> is_paused_ = false;  // nothing is received until resume()
  std::atomic<int64_t> last_received_;
};

}  // namespace halyard::remote
