// Channel: some ranks of a communicator, with message tags of its own. Its collectives run one after another;
// sends and receives begin at once. All functions are called under the lock of the job.
#pragma once

#include <mpi.h>

#include <bitset>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "failure.h"
#include "message.h"
#include "operation.h"
#include "peers.h"

namespace halyard::mpi {

class Channel;

inline constexpr uint32_t kNotInWorld = UINT32_MAX;

// State of this process that its channels and its job share. Under the lock of the job.
struct Process {
  Peers peers;
  std::vector<Channel*> channels;
  struct Completion {
    halyard_collective_t collective;
    Failure failure;
  };
  std::vector<Completion> completions;  // the host is notified of them after the lock has been released
  std::condition_variable changed;      // notified after operations advance
};

// A communicator, and the numbers of its channels that are in use on this rank.
struct Fabric {
  Process* process = nullptr;
  MPI_Comm comm = MPI_COMM_NULL;
  uint32_t rank = 0;
  uint32_t count = 1;
  uint32_t channels = kMaxChannels;  // maximum number, limited by the tags
  std::bitset<kMaxChannels> taken;
  std::vector<uint32_t> world_ranks;  // by rank; kNotInWorld: a rank of another job
  std::unique_ptr<Channel> root;      // has all ranks; used to open other channels
};

class Channel {
 public:
  Channel(Fabric& fabric, std::string label);
  // Creates the channel of all ranks of the fabric, which is open at once.
  static std::unique_ptr<Channel> root_of(Fabric& fabric);
  ~Channel();

  Fabric& fabric() const { return fabric_; }
  Process& process() const { return *fabric_.process; }
  MPI_Comm comm() const { return fabric_.comm; }
  int peer(uint32_t rank) const { return static_cast<int>(ranks_[rank]); }
  int tag(Tag tag) const { return static_cast<int>(number_) * kTags + static_cast<int>(tag); }
  uint32_t rank() const { return rank_; }
  uint32_t count() const { return static_cast<uint32_t>(ranks_.size()); }
  const std::string& label() const { return label_; }
  std::string child_label() { return label_ + "." + std::to_string(splits_++); }
  std::string name() const;  // "channel 'default' (rank 0 of 4)"

  // The ranks of the channel in order, as ranks of the fabric.
  void set_ranks(std::vector<uint32_t> ranks);
  bool has_ranks() const { return !ranks_.empty(); }
  // A split of the base has a pointer to this channel, until it calls open() or forget_split().
  void expect_split() { has_split_ = true; }
  void forget_split() { has_split_ = false; }
  // The ranks have agreed on the channel's number: queued operations begin.
  void open(uint32_t number);
  bool is_open() const { return is_open_; }

  void add(std::unique_ptr<Operation> operation);
  // No thread waits for the operation any more. The operation may have ended already.
  void forget(const Operation& operation);
  bool has_work() const {
    return has_operations() || !draining_.empty() || !leftovers_.empty() || !notices_.empty();
  }
  // Whether Operation::moves_bytes() is true for an operation under way.
  bool moves_bytes() const;
  // Advances all operations as far as possible. Returns whether anything has changed.
  bool advance();
  // Ends all operations with the failure. `tells`: also notifies the other ranks.
  void fail(Failure failure, bool tells);
  // Like fail(failure, true), but at the next advance(), because it must not call MPI.
  void fail_soon(Failure failure) {
    if (!failing_) failing_ = std::move(failure);
  }
  // Fails the channel if an operation waits for a rank that has ended (peers.h).
  void check_peers(uint64_t moved_at, uint64_t time);
  // For the channel of all ranks of the job: tells the others that this rank has ended well, and notes which
  // other ranks have ended.
  void tell_end();
  void listen() { look_at_notices(); }
  // Before MPI_Finalize: receives no more notices.
  void stop_listening();
  bool has_told() const { return notices_.empty(); }  // the messages to others have been sent
  const Failure& broken() const { return broken_; }
  // Called when the host closes the channel, perhaps before it was open. Operations under way continue, and
  // then the number becomes free.
  void close();
  bool is_closed() const { return is_closed_; }
  // Whether it can be destroyed: no message is under way, and no split is about to open it.
  bool is_idle() const {
    return (is_open_ || broken_) && !has_split_ && !has_work() && notice_request_ == MPI_REQUEST_NULL;
  }
  uint64_t next_sequence() { return sequence_++; }
  // Receives from one rank take its first messages in turn.
  uint64_t draw_turn(uint32_t source) { return turns_[source].drawn++; }
  bool is_turn(uint32_t source, uint64_t turn) const { return turns_[source].ended == turn; }
  void end_turn(uint32_t source) { ++turns_[source].ended; }
  // The first messages of the collective under way, from and to each rank.
  std::vector<Message>& incoming() { return incoming_; }
  std::vector<Message>& outgoing() { return outgoing_; }
  // Memory for the collective under way. The channel keeps it, because fresh pages cost more than moving
  // bytes.
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
  bool is_member(uint32_t fabric_rank) const;
  bool has_operations() const { return !queue_.empty() || !direct_.empty() || failing_; }
  void give_number_back();
  // Why the operation must not wait any longer.
  Failure stop_of(const Operation& operation) const;
  // Checks all operations: those whose turn has not come have time limits and stop words too.
  bool check_stops();
  // What the operation waits for, for error messages.
  std::string awaited(const Operation& operation) const;
  bool may_receive(const Operation& operation) const;
  void end(std::unique_ptr<Operation> operation);
  bool drain();

  Fabric& fabric_;
  std::string label_;
  std::vector<uint32_t> ranks_;
  uint32_t rank_ = 0;
  uint32_t number_ = 0;
  bool has_split_ = false;
  bool is_open_ = false;
  bool is_closed_ = false;
  bool has_number_ = false;
  bool is_started_ = false;  // whether the first operation of the queue has started
  uint64_t sequence_ = 0;
  uint32_t splits_ = 0;
  Failure broken_;
  Failure failing_;  // breaks the channel at the next advance()
  std::deque<std::unique_ptr<Operation>> queue_;
  std::vector<std::unique_ptr<Operation>> direct_;
  struct Draining {
    std::unique_ptr<Operation> operation;
    uint64_t until;
  };
  std::vector<Draining> draining_;                     // failed operations for which bytes may still arrive
  std::vector<std::unique_ptr<Operation>> leftovers_;  // ended operations with messages under way
  struct Notice {
    std::unique_ptr<Message> message;
    MPI_Request request;
  };
  std::vector<Notice> notices_;  // being sent
  std::unique_ptr<Message> notice_;
  MPI_Request notice_request_ = MPI_REQUEST_NULL;
  struct Turns {
    uint64_t drawn = 0;
    uint64_t ended = 0;
  };
  std::vector<Turns> turns_;  // by source
  std::vector<Message> incoming_;
  std::vector<Message> outgoing_;
  std::unique_ptr<uint8_t[]> scratch_;
  uint64_t scratch_size_ = 0;
};

}  // namespace halyard::mpi
