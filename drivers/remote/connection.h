// Connection: one device of a server, as messages. It numbers objects, waits for answers, knows the work in
// flight, and keeps mapped bytes in step. Thread-safe.
#pragma once

#include <atomic>
#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "halyard/driver.hpp"
#include "halyard/driver/trace.hpp"
#include "in_flight.h"
#include "place.h"
#include "remote/message.h"
#include "remote/stream.h"
#include "runtime.h"
#include "semaphore_server.h"

namespace halyard::remote {

class MappedBytes;

inline constexpr uint64_t kCredit = 4 << 20;  // bytes of a read under way

// A request and its answer. On the stack of the thread that waits.
struct Request {
  uint64_t number = 0;
  bool may_take_long = false;  // loading code: the caller's stop ends it, not the connection's patience
  bool is_stopped = false;     // by its caller
  bool is_done = false;
  bool needs_blob = false;
  Failure failure = {HALYARD_OK, ""};
  bool known = false;
  int64_t value = 0;
  std::string text;
  struct Function {
    std::string name;
    std::string source;
    halyard_function_info_t info;
  };
  std::vector<Function> functions;
  std::vector<bool> has_blobs;
  // Of a read: where the bytes go, and how many have come. The bytes of a read without a target come as the
  // contents of a memory, and no more than `merged` of them count.
  std::span<uint8_t> target;
  uint64_t merged_memory = 0;
  uint64_t merged = 0;
  uint64_t received = 0;
  uint64_t uncredited = 0;  // received since the server was allowed to send more
};

class Connection final : public Receiver,
                         public SemaphoreServer,
                         public std::enable_shared_from_this<Connection> {
 public:
  using Clock = std::chrono::steady_clock;

  // UNAVAILABLE, DEADLINE_EXCEEDED, UNAUTHENTICATED, PERMISSION_DENIED, NOT_FOUND: no such device.
  static kit::Result<std::shared_ptr<Connection>> open(const kit::Services& services, Runtime& runtime,
                                                       Place place);
  // The same over a connected socket.
  static kit::Result<std::shared_ptr<Connection>> over(const kit::Services& services, Runtime& runtime,
                                                       Place place, Descriptor socket);
  Connection(const kit::Services& services, Runtime& runtime, Place place);
  ~Connection() override;
  // The device is closed.
  void close();

  const kit::Services& services() const override { return services_; }
  const halyard_device_properties_t& properties() const { return properties_; }
  const Place& place() const { return place_; }
  uint32_t version() const { return version_; }  // of the protocol
  bool is_traced() const { return trace_span_ != nullptr; }
  uint64_t new_number() override { return next_number_.fetch_add(1, std::memory_order_relaxed); }
  // UNAVAILABLE: the connection is lost.
  kit::Result<> check() const;
  Failure failure_of(const kit::Status& status) const override;

  void send(Bytes message, Bytes data = {}, Stream::Urgency urgency = Stream::Urgency::later) {
    const bool waits = urgency != Stream::Urgency::soon;
    send_destroyed(waits ? Stream::Urgency::later : urgency);
    stream_->send(message, data, urgency);
  }
  // The server forgets the memory, with the next message.
  void destroy_memory(uint64_t number);
  // Sends work that waits to be sent with more, as far as the server receives it now.
  void flush() override;
  // Sends what waits, and receives on this thread until `is_over` returns true, for a short time. False:
  // another thread receives.
  template <typename IsOver>
  bool help_until(IsOver is_over, Clock::duration time) {
    send_destroyed(Stream::Urgency::later);
    has_unsent_work_.store(false);
    stream_->flush_some();
    if (stream_->receive_until(is_over, Clock::now() + time)) return true;
    stream_->flush();
    return false;
  }

  // ---- Semaphores

  void create_semaphore(uint64_t number, uint64_t initial) override;
  void destroy_semaphore(uint64_t number) override;
  void signal_semaphore(uint64_t number, uint64_t value) override;
  void fail_semaphore(uint64_t number, const Failure& failure) override;

  // Semaphores that the server does not know yet are created by the next submission. Its message is built and
  // sent in `send(created)`, before any other one that may use them.
  template <typename Send>
  kit::Result<> with_created(Send send) {
    const std::lock_guard lock(created_mutex_);
    return send(std::exchange(created_, {}));
  }

  // Sends the bytes of a large update, then calls `send()`, which sends the submission that uses them. The
  // server keeps the bytes of one update at a time. No effect of its own without bytes.
  template <typename Send>
  kit::Result<> with_staged(uint64_t number, Bytes bytes, Send send) {
    if (bytes.empty()) return send();
    const std::lock_guard lock(staging_mutex_);
    stage(number, bytes);
    return send();
  }

  // ---- Requests: sends a message and waits for the answer

  // `ask(number)` sends the message. A `stop` ends the wait, with its code.
  template <typename Ask>
  kit::Result<> request(Request& request, Ask ask, const kit::Stop& stop = {}) {
    begin(request);
    ask(request.number);
    return wait(request, stop);
  }
  // Sends the bytes of a blob. The server takes one blob at a time.
  kit::Result<> send_blob(const Sha256& digest, Bytes bytes);

  // ---- Work in flight

  // Owns the work until it has completed. Fails if the connection is lost; then the work is dropped. `send`
  // sends its message: at once if the work computes and the server computes nothing yet, otherwise together
  // with what follows, at the latest when somebody looks at its signals or waits, when other work completes,
  // or, if it computes, after a millisecond.
  template <typename Send>
  kit::Result<> add(std::unique_ptr<InFlight> work, Send send) {
    const bool computes = work->computes;
    const bool is_first = HALYARD_KIT_TRY(add(std::move(work)));
    if (computes && is_first) {
      send(Stream::Urgency::now);
    } else {
      send(Stream::Urgency::later);
      wait_for_more(computes);
    }
    return {};
  }
  size_t in_flight() const;

  // ---- Mapped bytes

  void add_mapped(uint64_t memory, MappedBytes& bytes);
  void remove_mapped(uint64_t memory);
  // Sends what the host has written to mapped bytes. Called before anything that may let work read them.
  void send_changes();

 private:
  std::span<uint8_t> place(Bytes message, size_t size) override;
  bool received(Frame& frame) override;
  void received_some(bool more) override;
  void received_by_waiter() override;
  void lost(const Failure& reason) override;

  kit::Result<> greet();
  kit::Result<> match_clocks();
  void take_spans(const wire::Spans& spans);
  kit::Result<bool> add(std::unique_ptr<InFlight> work);  // whether none that computes is in flight
  void wait_for_more(bool computes);
  void flush_after(Clock::duration time);
  void send_created();
  void send_destroyed(Stream::Urgency urgency) {
    if (has_destroyed_.load(std::memory_order_acquire)) send_destroyed_now(urgency);
  }
  void send_destroyed_now(Stream::Urgency urgency);
  void stage(uint64_t number, Bytes bytes);
  void begin(Request& request);
  kit::Result<> wait(Request& request, const kit::Stop& stop);
  // Under mutex_:
  void end_patience(Request& request);
  uint64_t received_until(const Request& request) const;
  template <typename Take>
  void answer(uint64_t number, Take take, bool is_welcome = false);
  void take_data(const wire::Data& data, const Frame& frame);
  void take_contents(const wire::Contents& contents, Bytes bytes);
  void take_functions(const wire::Functions& functions, size_t message_size);
  void completed(uint64_t submission, const Failure& failure);
  void complete(std::unique_ptr<InFlight> work, const Failure& failure);
  void tell_completed();
  void run_calls();
  void broken(std::string what);
  void tick();
  void look_around();
  void look_at_stops();
  void send_stop(uint64_t number, halyard_status_code_t reason);

  const kit::Services& services_;
  Runtime& runtime_;
  const Place place_;
  std::shared_ptr<Stream> stream_;
  const kit::TraceSpanFunction trace_span_;  // null: the host records no trace
  halyard_device_properties_t properties_ = {};
  uint32_t version_ = kOldestVersion;    // of the protocol
  std::atomic<int64_t> clock_ahead_{0};  // nanoseconds by which the server's clock is ahead
  std::atomic<uint64_t> next_number_{1};
  std::atomic<bool> has_unsent_work_{false};  // perhaps
  std::atomic<bool> is_moment_set_{false};    // moment_ is awaited

  mutable std::mutex mutex_;  // guards the members below
  boost::asio::basic_waitable_timer<Clock> timer_;
  boost::asio::basic_waitable_timer<Clock> moment_;  // after which work is sent
  std::condition_variable answered_;
  std::unordered_map<uint64_t, Request*> requests_;
  size_t long_requests_ = 0;     // of requests_
  size_t patient_requests_ = 0;  // of these: those that their callers have not stopped
  std::unordered_map<uint64_t, std::unique_ptr<InFlight>> in_flight_;
  size_t computing_ = 0;  // of in_flight_: those that compute
  bool is_closed_ = false;
  bool is_lost_ = false;
  Failure loss_;

  Clock::time_point last_ping_{};  // of the thread that the timer calls

  std::mutex staging_mutex_;  // held while an update and its submission are sent
  std::mutex blob_mutex_;     // held while a blob is sent

  std::mutex created_mutex_;          // guards the member below; held while it is sent
  std::vector<wire::Point> created_;  // semaphores that no message has created yet

  std::mutex destroyed_mutex_;  // guards the members below
  std::vector<uint64_t> destroyed_semaphores_, destroyed_memories_;
  std::atomic<bool> has_destroyed_{false};

  std::mutex completed_mutex_;  // guards the member below
  kit::TaskQueue completed_;    // calls that tell the host

  std::atomic<size_t> mapped_count_{0};
  std::mutex mapped_mutex_;  // guards the member below, and keeps its elements
  std::unordered_map<uint64_t, MappedBytes*> mapped_;
};

}  // namespace halyard::remote
