// Channel: some ranks of a communicator, told apart from other channels by the tags of its messages. Its
// collectives are carried out one after another; sends and receives begin at once. All functions are called
// under the lock of the job.
#pragma once

#include <mpi.h>

#include <bitset>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "failure.h"
#include "message.h"
#include "operation.h"

namespace halyard::mpi {

class Job;
class Channel;

inline constexpr uint32_t kNotInWorld = UINT32_MAX;

// A communicator, and which numbers of channels are taken on it here.
struct Fabric {
  Job* job = nullptr;
  MPI_Comm comm = MPI_COMM_NULL;
  uint32_t rank = 0;
  uint32_t count = 1;
  uint32_t channels = kMostChannels;  // that there are tags for
  std::bitset<kMostChannels> taken;
  std::vector<uint32_t> world_ranks;  // of each rank; kNotInWorld: of another job
  std::unique_ptr<Channel> root;      // of all ranks, for opening others
};

class Channel {
 public:
  Channel(Fabric& fabric, std::string label);
  // Of all ranks of the fabric, which is there at once.
  static std::unique_ptr<Channel> root_of(Fabric& fabric);
  ~Channel();

  Fabric& fabric() const { return fabric_; }
  Job& job() const { return *fabric_.job; }
  MPI_Comm comm() const { return fabric_.comm; }
  int peer(uint32_t rank) const { return static_cast<int>(ranks_[rank]); }
  int tag(Tag tag) const { return static_cast<int>(number_) * kTags + static_cast<int>(tag); }
  uint32_t rank() const { return rank_; }
  uint32_t count() const { return static_cast<uint32_t>(ranks_.size()); }
  const std::string& label() const { return label_; }
  std::string child_label() { return label_ + "." + std::to_string(splits_++); }
  std::string name() const;  // "channel 'default' (rank 0 of 4)"

  // Its ranks, as ranks of the fabric, in the order of this channel.
  void set_ranks(std::vector<uint32_t> ranks);
  bool has_ranks() const { return !ranks_.empty(); }
  // Its number is agreed: what was queued begins.
  void open(uint32_t number);
  bool is_open() const { return is_open_; }

  void add(std::unique_ptr<Operation> operation);
  // Nobody stays for the operation any more, if it is still there.
  void forget(const Operation& operation);
  bool has_work() const { return !queue_.empty() || !direct_.empty() || !draining_.empty() || failing_; }
  // As Operation::moves_bytes, of any that is under way.
  bool moves_bytes() const;
  // Does what can be done now; whether anything has been done.
  bool advance();
  // Ends everything with the failure; `tells`: the other ranks too.
  void fail(Failure failure, bool tells);
  // As fail(failure, true), the next time that the channel advances: calls no MPI.
  void fail_soon(Failure failure) {
    if (!failing_) failing_ = std::move(failure);
  }
  // Fails where something waits for a rank that has ended (peers.h).
  void check_peers(uint64_t moved_at, uint64_t time);
  // Of the channel of all ranks of the job: tells them that this one has ended well, and takes note of those
  // that do.
  void tell_end();
  void listen() { look_at_notices(); }
  bool has_told() const { return notices_.empty(); }  // messages to others have been sent
  const Failure& broken() const { return broken_; }
  // The host has closed it, perhaps before it was open.
  void close();
  bool is_closed() const { return is_closed_; }
  // Whether it can be destroyed: nothing of it is under way, and nobody is about to open it.
  bool is_idle() const {
    return (is_open_ || broken_) && !has_work() && notices_.empty() && leftovers_.empty();
  }
  uint64_t next_sequence() { return sequence_++; }
  // First messages of the collective under way, to and from each rank.
  std::vector<Message>& incoming() { return incoming_; }
  std::vector<Message>& outgoing() { return outgoing_; }
  // Memory for the collective under way, which the channel keeps: fresh pages cost more than moving bytes.
  uint8_t* scratch(uint64_t size) {
    if (size > scratch_size_) {
      scratch_ = std::make_unique_for_overwrite<uint8_t[]>(size);
      scratch_size_ = size;
    }
    return scratch_.get();
  }

 private:
  bool look_at_notices();
  void receive_notice();
  void send_notice(uint32_t kind, const Failure& failure);
  uint32_t world_rank(uint32_t rank) const { return fabric_.world_ranks[ranks_[rank]]; }
  bool check_stop(Operation& operation);
  void end(std::unique_ptr<Operation> operation);
  bool drain();

  Fabric& fabric_;
  std::string label_;
  std::vector<uint32_t> ranks_;
  uint32_t rank_ = 0;
  uint32_t number_ = 0;
  bool is_open_ = false;
  bool is_closed_ = false;
  bool is_started_ = false;  // the first of the queue
  uint64_t sequence_ = 0;
  uint32_t splits_ = 0;
  Failure broken_;
  Failure failing_;  // what breaks it soon
  std::deque<std::unique_ptr<Operation>> queue_;
  std::vector<std::unique_ptr<Operation>> direct_;
  struct Draining {
    std::unique_ptr<Operation> operation;
    uint64_t until;
  };
  std::vector<Draining> draining_;                     // failed, while bytes may arrive
  std::vector<std::unique_ptr<Operation>> leftovers_;  // ended, with messages under way
  struct Notice {
    std::unique_ptr<Message> message;
    MPI_Request request;
  };
  std::vector<Notice> notices_;  // being sent
  std::unique_ptr<Message> notice_;
  MPI_Request notice_request_ = MPI_REQUEST_NULL;
  std::vector<Message> incoming_;
  std::vector<Message> outgoing_;
  std::unique_ptr<uint8_t[]> scratch_;
  uint64_t scratch_size_ = 0;
};

}  // namespace halyard::mpi
