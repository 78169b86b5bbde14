// Stream: frames over a connected socket, with or without TLS. A frame is a message and bytes that belong to
// it:
//
//   uint32 size of the message    uint32 number of bytes    the message    the bytes
//
// Numbers are little endian. Sending is thread-safe. Frames are received one at a time, in order: on a
// thread that runs the io_context or, with Full::block, on a thread that waits for one of them. No thread
// belongs to a stream.
#pragma once

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "remote/address.h"
#include "remote/busy_polling.h"
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
  // Must be short, because the next frame is not received before it returns. May take the frame's block,
  // which is otherwise used for the next frame. False: stop receiving until Stream::resume().
  virtual bool received(Frame& frame) = 0;
  // Called after some frames on a thread of the io_context, when other threads can receive: may overlap with
  // received(). `more`: bytes that have come already are received next.
  virtual void received_some(bool more) = 0;
  // Called in its place on a thread that waits.
  virtual void received_by_waiter() {}
  // Called once, after the last frame, unless the stream was dropped before.
  virtual void lost(const Failure& reason) = 0;
};

class Stream : public std::enable_shared_from_this<Stream> {
 public:
  enum class Full : uint8_t {
    block,  // a sender waits while the other side does not receive; threads that wait can receive
    queue,  // bytes are kept; the user looks at queued(). One thread runs the io_context
  };
  // `patience`: how long a sender waits for the other side to receive something.
  // `tls` may be null.
  // `busy_poll`: how long a thread in receive_until() looks for bytes before it sleeps.
  Stream(boost::asio::io_context& io, Descriptor socket, std::unique_ptr<Tls> tls, Full full,
         std::chrono::milliseconds patience, std::chrono::microseconds busy_poll = {});
  ~Stream();

  // For clients, before start(): blocks until both sides are authenticated.
  Result<> shake_hands(std::chrono::steady_clock::time_point deadline);
  // Before start(): a flag that is 1 while the other side may have got a part of a frame. May be null.
  void mark_frames(std::atomic<uint32_t>* is_within_frame) { is_within_frame_ = is_within_frame; }
  // Any time: a larger message, or data of one, ends the connection. The other limits hold as well.
  void set_largest(uint32_t bytes) { largest_.store(bytes, std::memory_order_relaxed); }
  // Begins to receive. The receiver lives as long as the stream receives.
  void start(std::shared_ptr<Receiver> receiver);
  // After the last thread has left the io_context: drops the receiver, which may own this stream, and does
  // not tell it of the end.
  void drop_receiver() { receiver_.reset(); }
  // Any thread. No effect unless received() has returned false.
  void resume();

  enum class Urgency : uint8_t {
    later,  // it may wait for the next frame
    now,
    soon,  // as `now`, but never waits for the other side: threads that receive send so
  };
  // Sends a frame. Fails silently if the connection is lost: the receiver is told. With Full::queue data that
  // `keep` (may be null) owns are not copied.
  void send(Bytes message, Bytes data = {}, Urgency urgency = Urgency::now,
            const std::shared_ptr<void>& keep = nullptr);
  // Sends the frames that may wait.
  void flush();
  // The same, but never waits for the other side. False: some bytes are left, for the next call or sender.
  bool flush_some();
  // While this is true, a sender waits longer than the patience if the other side sends something meanwhile:
  // it has a reason not to receive.
  void set_patient(bool is_patient) { is_patient_.store(is_patient); }
  // Bytes that wait for the other side (Full::queue).
  size_t queued() const;
  // Those of them that were copied for that.
  size_t queued_copies() const;
  bool has_unsent() const;
  bool is_ended() const;
  bool is_paused() const { return is_paused_.load(); }

  // With Full::block: receives on this thread, in place of the io_context, until `is_over` returns true, a
  // frame has come that pauses the stream, or the time is over. Sends meanwhile what others have left. False:
  // another thread receives.
  template <typename IsOver>
  bool receive_until(IsOver is_over, std::chrono::steady_clock::time_point end) {
    if (!begin_waiting()) return false;
    while (!is_over() && receive_once(end)) {
    }
    end_waiting();
    return true;
  }

  // Sends queued bytes if possible, then ends the connection. The receiver gets the reason, or an earlier
  // one.
  void end(Failure reason);
  // The last time at which bytes have arrived, or could not because the stream was paused.
  std::chrono::steady_clock::time_point last_received() const;
  int socket() const { return descriptor_; }
  const Tls* tls() const { return tls_.get(); }  // after the handshake

 private:
  enum class Reading : uint8_t { header, message, data };
  // Who reads from the socket.
  enum class Reader : uint8_t { nobody, loop, waiter };

  void await_readable();
  void on_readable();
  void read_in_loop();
  void watch(bool on);
  bool begin_waiting();
  bool receive_once(std::chrono::steady_clock::time_point end);  // false: no more
  bool await_bytes(std::chrono::steady_clock::time_point end);   // false: the time is over
  void end_waiting();
  bool has_buffered();  // bytes that were received and not looked at
  // False: no more bytes for now. A failure ends the connection.
  Result<bool> receive();
  Result<bool> receive_or_fail();  // also if there is no memory
  // Fills `target`, then `behind`, and returns the number of bytes; 0: none for now.
  Result<size_t> read_some(std::span<uint8_t> target, std::span<uint8_t> behind);
  Result<size_t> read_wire(std::span<uint8_t> target, std::span<uint8_t> behind = {});
  Result<> begin_message();
  Result<> begin_data();
  bool finish_frame();
  void append(Bytes bytes);
  void keep_rest(Bytes rest, const std::shared_ptr<void>& keep);
  void write_out(Bytes direct, const std::shared_ptr<void>& keep = nullptr);
  size_t write_once(Bytes direct);  // bytes of `direct` that were written
  size_t unsent() const { return out_.size() - out_begin_ + kept_bytes_; }
  void await_writable();
  void await_written(std::unique_lock<std::mutex>& lock);
  // Under mutex_. The first reason is the one that the receiver gets.
  void give_up(Failure reason);
  void stop();  // without a reason: it is still to be received

  const Full full_;
  const std::chrono::milliseconds patience_;
  BusyPolling polling_;  // of the thread that waits
  Descriptor socket_;    // with Full::block
  const int descriptor_;
  const size_t most_at_once_;  // bytes: a write of them is never cut
  // With Full::block an epoll file that contains the socket, from which a thread that waits takes it out: so
  // the bytes for which that thread waits wake no other one. With Full::queue a copy of the descriptor.
  boost::asio::posix::stream_descriptor watched_;
  const std::unique_ptr<Tls> tls_;

  mutable std::mutex mutex_;  // guards sending, TLS and the members up to the next comment
  std::vector<uint8_t> out_;
  size_t out_begin_ = 0;
  // Bytes after those of out_.
  struct Kept {
    std::vector<uint8_t> own;
    Bytes rest;                  // of `own`, or of what `keep` owns
    std::shared_ptr<void> keep;  // null: own
  };
  std::deque<Kept> kept_;
  size_t kept_bytes_ = 0;
  size_t borrowed_bytes_ = 0;    // of kept_bytes_: somebody else's
  std::vector<uint8_t> sealed_;  // room for TLS
  std::atomic<uint32_t>* is_within_frame_ = nullptr;
  uint64_t written_ = 0;                  // bytes
  bool is_writing_ = false;               // somebody waits until the socket is writable
  std::condition_variable was_writable_;  // with Full::block: that wait is over
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
  std::unique_ptr<uint8_t[]> spare_;  // the block of the last frame
  size_t block_size_ = 0, spare_size_ = 0;
  bool wants_pause_ = false;
  std::optional<Failure> loss_;  // found by a thread that waits

  std::atomic<Reader> reader_{Reader::nobody};
  std::atomic<bool> is_watched_ = false;  // a wait of watched_ is under way
  std::atomic<bool> is_paused_ = false;   // nothing is received until resume()
  std::atomic<bool> has_loss_ = false;    // a thread that waits has found one: no other one begins to wait
  std::atomic<bool> is_patient_ = false;
  std::atomic<uint32_t> largest_ = kMaxMessage;  // bytes
  std::atomic<int64_t> last_received_;
};

}  // namespace halyard::remote
