// Session: one connection. Messages are handled one after the other: on the thread that receives them, which
// other connections share, or on a thread of a pool if that may take long; only requests to stop go past
// them. The client may be anybody: every message is verified, every number looked up, every object charged,
// and what the driver gets was validated by the host.
#pragma once

#include <atomic>
#include <boost/asio/basic_waitable_timer.hpp>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <memory_resource>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/work_scope.h"
#include "hal/device/device.h"
#include "remote/message.h"
#include "remote/stream.h"
#include "server/objects.h"
#include "server/recording.h"
#include "server/shared.h"
#include "server/spans.h"

namespace halyard::device_server {

// The bytes of an update, which come in pieces. (clang takes no member with a default value for an optional
// of the class around it.)
struct Stage {
  uint64_t number = 0;
  uint64_t size = 0;
  std::vector<uint8_t> bytes;
  Charge charge;
};

// A blob that comes in pieces.
struct ArrivingBlob {
  remote::Sha256 digest = {};
  std::optional<BlobUpload> upload;  // none: there is no room, and the pieces are dropped
};

class Session final : public remote::Receiver, public std::enable_shared_from_this<Session> {
 public:
  using Clock = std::chrono::steady_clock;

  // `key` and `name`: who the client is, if that is known before the handshake; otherwise empty.
  Session(Shared& shared, ReceivingThread& receiver, std::shared_ptr<remote::Stream> stream, std::string key,
          std::string name);
  ~Session() override;
  void start();
  // Instead of start(): tells the client why it is not served. Reads nothing of what it has sent.
  void refuse(const Status& why);
  // Whether it has said who its client is. Any thread.
  bool is_known() const { return is_known_.load(); }
  bool is_over() const { return is_over_.load(); }
  // Ends the connection. Messages that have come and were not handled are dropped. Any thread.
  void end(const Status& why);
  // Asks the work of the client to stop. Any thread.
  void stop_work(Code code);
  // Whether work that has begun was asked to stop because of its time, and has not ended for this long. Any
  // thread.
  bool has_stuck_work(std::chrono::milliseconds patience);

 private:
  std::span<uint8_t> place(remote::Bytes message, size_t size) override;
  bool received(remote::Frame& frame) override;
  void received_some(bool more) override;
  void lost(const remote::Failure& reason) override;

  // A failed result ends the connection: the client has broken the protocol.
  Result<> handle(const wire::ToServer* message, const remote::Frame& frame);
  void handle_or_end(const wire::ToServer* message, const remote::Frame& frame);
  void handle_backlog();
  bool handle_at_once(const wire::ToServer& message);
  // Whether the message is handled in a moment.
  bool is_quick(const wire::ToServer& message, const remote::Frame& frame);
  // Whether the client has promised to write the memory, and has not written all of it; any memory.
  bool is_unwritten(uint64_t number);
  bool has_unwritten();
  Result<> greet(const wire::Hello& hello);

  Result<> on(const wire::Query& asked);
  Result<> on(const wire::Grade& asked, remote::Bytes data);
  Result<> on(const wire::MemoryCreate& asked);
  Result<> on(const wire::MemoryImport& asked);
  Result<> on(const wire::BlobsWanted& asked);
  Result<> on(const wire::MemoryDestroy& asked);
  Result<> destroy_memory(uint64_t number);
  Result<> on(const wire::MemoryWrite& asked, remote::Bytes data);
  Result<> on(const wire::MemoryRead& asked);
  Result<> on(const wire::MemoryWatch& asked);
  Result<> on(const wire::Credit& asked);
  Result<> on(const wire::SemaphoreCreate& asked);
  Result<> create_semaphore(uint64_t number, uint64_t initial);
  Result<> on(const wire::SemaphoreDestroy& asked);
  Result<> destroy_semaphore(uint64_t number);
  Result<> on(const wire::Destroy& asked);
  Result<> on(const wire::SemaphoreSignal& asked);
  Result<> on(const wire::SemaphoreFail& asked);
  Result<> on(const wire::BlobWrite& asked, remote::Bytes data);
  Result<> on(const wire::ExecutableCreate& asked);
  Result<> on(const wire::ListCreate& asked);
  Result<> on(const wire::StageWrite& asked, remote::Bytes data);
  Result<> on(const wire::Submit& asked, remote::Bytes data);

  // ---- Memory

  Result<> check_request(const wire::Request* request) const;
  // The host's bits for a request of a client.
  struct Wishes {
    uint32_t memory_type;
    uint32_t usage;
    uint64_t owner;
  };
  Wishes wishes_of(const wire::Request& request);
  Result<> read(hal::Buffer& buffer, uint64_t offset, std::span<uint8_t> target);
  // The bytes of a file of the server as a blob, if they are those of the digest.
  Ref<Bytes> find_in_files(const wire::MemoryImport& asked);
  Result<Ref<hal::Buffer>> import_blob(const wire::Request& request, const Ref<Bytes>& blob);
  struct Reading {
    Ref<hal::Buffer> buffer;
    uint64_t offset = 0;
    uint64_t length = 0;
    uint64_t sent = 0;
    uint64_t credit = 0;
  };
  void go_on(uint64_t request, Reading& reading);

  // ---- Work

  struct Work {
    Ref<WorkScope> scope;
    Clock::time_point deadline;
    MemoryNumbers memories;                         // that it may write to, besides those of its recording
    std::shared_ptr<const MemoryNumbers> recorded;  // null: it executes none
    Ref<hal::Fence> wait;                           // null: it waits for nothing
    Ref<hal::Fence> done;
    template <typename Visit>
    void for_each_memory(Visit visit) const {
      for (const uint64_t number : memories) visit(number);
      if (recorded)
        for (const uint64_t number : *recorded) visit(number);
    }
  };
  Result<> check_room_for_work() const;  // under mutex_
  Clock::time_point deadline_of_work() const;
  void stop_late_work(Clock::time_point now);
  Result<hal::Timepoints> timepoints_of(const flatbuffers::Vector<const wire::Point*>* points,
                                        Status& failure);
  // Submits the operation; a failure of that goes to `failure`.
  Result<> submit(const wire::Submit& asked, remote::Bytes data, const hal::QueuePoint& point, Work& work,
                  Status& failure);
  Result<> tell_when_done(uint64_t number, const hal::Fence& done);
  void finish_begun();
  void completed(uint64_t number, const Status& status);
  // Whether the client can be told of the work that has succeeded together with other work; then it is not in
  // flight any more.
  bool can_tell_together(uint64_t number);
  void send_spans(uint64_t submission);
  // Sends bytes of watched memories. False: the connection has ended.
  struct Changed {
    uint64_t memory;
    uint64_t offset = 0;  // within the memory
    uint64_t length = UINT64_MAX;
  };
  bool send_contents(const std::vector<Changed>& changes);
  // What the client is told of work that has ended or, with a request, as the answer to a read.
  struct News {
    uint64_t submission = 0;
    Status status;
    std::vector<Changed> contents;  // before its completion
    bool is_long = false;           // waits for copies by the device, or for the client
    uint64_t request = 0;
  };
  void add_news(News news, std::unique_lock<std::mutex> lock);
  // Under mutex_:
  void add_contents(const Work& work, News& news);
  void add_contents_of_reached_work(News& news);
  // Tells all news in order. Long news are told on a thread of the pool.
  void tell(bool is_in_pool);
  void tell_one(const News& news);

  // ---- Answers

  // `build(message)` returns the body.
  template <typename Build>
  void send(Build build, remote::Bytes data = {}, const std::shared_ptr<void>& keep = nullptr);
  void done(uint64_t request, const Status& status);
  void send_pong(uint64_t request);
  // Charges bytes that wait to the client. False: it has no memory left for them.
  bool charge_unsent();
  // Waits until the client has received most of what was sent, but not while messages are handled on the
  // thread that receives. False: the connection has ended.
  bool await_receiver();
  bool has_much_unsent() const;

  void tick();
  void look_around();

  // The session whose messages this thread handles: their answers are sent together.
  static thread_local const Session* batching;

  Shared& shared_;
  ReceivingThread& receiver_;
  const std::shared_ptr<remote::Stream> stream_;
  const Clock::time_point begin_ = Clock::now();
  std::atomic<bool> is_over_ = false;   // nothing is sent or handled any more
  std::atomic<bool> is_known_ = false;  // client_ is set

  std::mutex
      mutex_;  // guards the members below; name_ and client_ change only on the thread that handles messages
  std::string key_;
  std::string name_;
  std::shared_ptr<Client> client_;  // null before the greeting
  Ref<hal::Device> device_;         // null before the greeting
  boost::asio::basic_waitable_timer<Clock> timer_;
  struct Waiting {
    const wire::ToServer* message;  // in the frame; null: it is none
    remote::Frame frame;
  };
  std::deque<Waiting> backlog_;
  size_t backlog_bytes_ = 0;
  Charge backlog_charge_;  // for backlog_bytes_, as far as the client has memory left
  std::atomic<bool> is_in_pool_ =
      false;  // a thread of the pool handles the backlog; set by the one that receives
  std::atomic<bool> is_lost_ = false;
  std::pmr::unsynchronized_pool_resource work_nodes_;
  std::pmr::unordered_map<uint64_t, Work> in_flight_{&work_nodes_};
  std::unordered_map<uint64_t, Ref<hal::Buffer>> watched_;
  std::deque<News> news_;                 // in the order in which the client is told
  std::unordered_set<uint64_t> changed_;  // memories whose whole contents are among the news
  bool is_telling_ = false;               // a thread does, or a handler of the pool will
  uint64_t loading_ = 0;                  // the request of an executable that is being loaded
  Ref<WorkScope> loading_scope_;
  Clock::time_point loading_deadline_;

  std::mutex unsent_mutex_;
  Charge unsent_charge_;  // for bytes that wait for the client; guarded by unsent_mutex_

  // Bytes are sent in the order in which they were read. Not held while somebody waits for the client.
  std::mutex contents_mutex_;

  // Of the thread that receives:
  bool has_greeted_ = false;                                 // the first message has come
  Ref<hal::Allocation> placed_;                              // mapped, for bytes that are being received
  std::vector<std::pair<uint64_t, Ref<hal::Fence>>> begun_;  // submissions of the messages that came together

  // Of the thread that handles messages:
  uint32_t version_ = 0;          // of the protocol
  std::shared_ptr<Spans> spans_;  // null: the client records no trace
  Objects objects_;
  std::vector<uint64_t> unwritten_;  // memories that the client has promised to write; some may be written
  std::unordered_map<uint64_t, uint64_t> owners_;  // of the client, to those of the device
  std::unordered_map<uint64_t, Reading> readings_;
  std::map<remote::Sha256, Ref<Bytes>> wanted_;  // blobs that the client was told of
  std::optional<ArrivingBlob> blob_;
  std::optional<Stage> stage_;
};

template <typename Build>
void Session::send(Build build, remote::Bytes data, const std::shared_ptr<void>& keep) {
  remote::Message message;
  const auto body = build(message);
  const remote::Bytes bytes = message.to_client(body);
  if (is_over_.load(std::memory_order_relaxed)) return;
  shared_.counts.sent_bytes.fetch_add(bytes.size() + data.size(), std::memory_order_relaxed);
  stream_->send(bytes, data, batching == this ? remote::Stream::Urgency::later : remote::Stream::Urgency::now,
                keep);
  const bool is_charged = charge_unsent();
  if (is_charged && stream_->queued() <= (is_known() ? shared_.limits.unsent : shared_.limits.of_stranger))
    return;
  is_over_.store(true, std::memory_order_relaxed);
  stream_->end({HALYARD_RESOURCE_EXHAUSTED,
                is_charged ? "the client does not receive what it has asked for"
                           : "what the client does not receive does not fit its memory; raise "
                             "--max_client_memory of vm-device"});
}

}  // namespace halyard::device_server
