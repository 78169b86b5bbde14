// LocalGroup: the ranks of one channel within a process. A collective is a round: the last rank to submit its
// part executes the round for all ranks. Sends and receives are matched in pairs. The functions are called
// under the lock of the world, and put the work that needs no lock into a LocalOutcome.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "halyard/channel.h"

namespace halyard::hal {

struct LocalMember;

// One rank's part of a round: a collective or a split. `child` is the member that the split creates.
struct LocalPart {
  bool has_come = false;
  bool is_split = false;
  halyard_collective_t collective = {};
  uint64_t came = 0;  // when it was submitted: nanoseconds of CLOCK_MONOTONIC
  int32_t color = 0;
  int32_t key = 0;
  std::shared_ptr<LocalMember> child;  // for a split with a color
};

struct LocalRound {
  uint64_t number = 0;
  uint32_t come = 0;
  std::vector<LocalPart> parts;  // by rank
};

// A point-to-point transfer. It completes when all of its parts have ended: its submission, its send and its
// receive. Several threads may copy for one transfer, so the last one completes it: the memory of a transfer
// belongs to its submitter again as soon as it is complete.
struct LocalTransfer {
  halyard_collective_t collective;
  uint64_t came = 0;
  std::atomic<uint32_t> parts{0};  // that have not ended
  Status failure;                  // set under the lock, before the part that failed ends

  void end_part() noexcept {
    if (parts.fetch_sub(1, std::memory_order_acq_rel) == 1)
      collective.completed(collective.user, std::move(failure).release());
  }
};

// Work that is done after the lock is released.
struct LocalOutcome {
  std::vector<LocalRound> rounds;  // complete rounds of collectives, to be executed
  struct Copy {
    const void* from;
    void* to;
    uint64_t size;
    std::shared_ptr<LocalTransfer> sender, receiver;
  };
  std::vector<Copy> copies;
  std::vector<std::shared_ptr<LocalTransfer>> ended;  // a part of each ends without a copy
  struct Completion {
    halyard_collective_t collective;
    Status status;
  };
  std::vector<Completion> completions;                 // called after the copies
  std::vector<std::shared_ptr<LocalMember>> resolved;  // their split is complete: queued parts begin

  bool is_empty() const {
    return rounds.empty() && copies.empty() && ended.empty() && completions.empty() && resolved.empty();
  }
  void carry_out();
};

class LocalGroup {
 public:
  LocalGroup(std::string label, uint32_t count) : label_(std::move(label)), members_(count) {}

  const std::string& label() const { return label_; }
  uint32_t count() const { return static_cast<uint32_t>(members_.size()); }
  const Status& broken() const { return broken_; }

  void join(uint32_t rank) { members_[rank].is_here = true; }
  // The rank has closed the channel: collectives that wait for the rank, now or later, fail.
  void leave(uint32_t rank, LocalOutcome& outcome);
  // `came`: when the collective was submitted, if it has waited for the group; otherwise 0.
  void submit(uint32_t rank, const halyard_collective_t& collective, LocalOutcome& outcome,
              uint64_t came = 0);
  void split(uint32_t rank, LocalPart part, LocalOutcome& outcome);
  // Fails all pending and all later collectives.
  void fail(Status status, LocalOutcome& outcome);
  // Fails the group if a pending collective has been stopped or has exceeded its time limit. Returns whether
  // pending collectives have a stop word or a time limit.
  bool check_stops(LocalOutcome& outcome);

 private:
  struct Half {
    std::shared_ptr<LocalTransfer> transfer;
    bool is_send;
  };
  struct Member {
    bool is_here = false;
    bool has_left = false;
    uint64_t next = 0;  // number of its next round
  };

  void add(uint32_t rank, LocalPart part, LocalOutcome& outcome);
  void match(uint32_t source, uint32_t target, Half half, LocalOutcome& outcome);
  void resolve(const LocalRound& round, LocalOutcome& outcome);
  std::string missing(const LocalRound& round) const;

  const std::string label_;
  std::vector<Member> members_;
  std::deque<LocalRound> rounds_;                                        // incomplete rounds, in order
  std::map<std::pair<uint32_t, uint32_t>, std::deque<Half>> unmatched_;  // by source and target
  Status broken_;
};

// Why a collective that came at a time must not wait any longer: its stop word or its time limit. Otherwise
// ok. `where` and `awaited` are for the message: "channel 'default'", "rank 1".
Status stop_of(const halyard_collective_t& collective, uint64_t came, std::string_view where,
               std::string_view awaited);

// One rank's membership of a group. The group is known when all ranks have submitted the split.
struct LocalMember {
  std::shared_ptr<LocalGroup> group;
  uint32_t rank = 0;
  Status broken;                  // why the split that creates the group, or this rank before, failed
  std::vector<LocalPart> queued;  // parts submitted before the group was known
};

}  // namespace halyard::hal
