// LocalGroup: the ranks of one channel within a process. A collective is a round: when the parts of all ranks
// have come, the last one carries it out, on the bytes of all. Sends and receives are matched in pairs. The
// functions are called under the lock of the world, and leave in an Outcome what is done without it.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "halyard/channel.h"

namespace halyard::hal {

struct LocalMember;

// One rank's part of a round: a collective; or, with a child, of a split.
struct LocalPart {
  bool has_come = false;
  bool is_split = false;
  halyard_collective_t collective = {};
  uint64_t came = 0;  // nanoseconds of CLOCK_MONOTONIC
  int32_t color = 0;
  int32_t key = 0;
  std::shared_ptr<LocalMember> child;  // of a split with a color
};

struct LocalRound {
  uint64_t number = 0;
  uint32_t come = 0;
  std::vector<LocalPart> parts;  // by rank
};

// The completion of a collective that has one or two halves.
struct LocalTransfer {
  halyard_collective_t collective;
  uint32_t halves = 0;
  uint64_t came = 0;
};

// To be done without the lock.
struct LocalOutcome {
  std::vector<LocalRound> rounds;  // complete ones of collectives, to be carried out
  struct Copy {
    const void* from;
    void* to;
    uint64_t size;
  };
  std::vector<Copy> copies;
  struct Completion {
    halyard_collective_t collective;
    Status status;
  };
  std::vector<Completion> completions;                 // after the copies
  std::vector<std::shared_ptr<LocalMember>> resolved;  // of splits: what was submitted to them begins

  void carry_out();
};

class LocalGroup {
 public:
  LocalGroup(std::string label, uint32_t count) : label_(std::move(label)), members_(count) {}

  const std::string& label() const { return label_; }
  uint32_t count() const { return static_cast<uint32_t>(members_.size()); }
  const Status& broken() const { return broken_; }

  void join(uint32_t rank) { members_[rank].is_here = true; }
  // Closed: what waits for it, and what will, fails.
  void leave(uint32_t rank, LocalOutcome& outcome);
  void submit(uint32_t rank, const halyard_collective_t& collective, LocalOutcome& outcome);
  void split(uint32_t rank, LocalPart part, LocalOutcome& outcome);
  // Everything that waits fails, and what follows.
  void fail(Status status, LocalOutcome& outcome);
  // Fails if something waits whose stop word is set, or longer than it may. Whether something waits that may
  // be stopped so.
  bool check_stops(LocalOutcome& outcome);

 private:
  struct Half {
    std::shared_ptr<LocalTransfer> transfer;
    bool is_send;
  };
  struct Member {
    bool is_here = false;
    bool has_left = false;
    uint64_t next = 0;  // round
  };

  void add(uint32_t rank, LocalPart part, LocalOutcome& outcome);
  void match(uint32_t source, uint32_t target, Half half, LocalOutcome& outcome);
  void finish_half(const std::shared_ptr<LocalTransfer>& transfer, LocalOutcome& outcome) const;
  void resolve(const LocalRound& round, LocalOutcome& outcome);
  std::string missing(const LocalRound& round) const;

  const std::string label_;
  std::vector<Member> members_;
  std::deque<LocalRound> rounds_;                                        // not complete, in order
  std::map<std::pair<uint32_t, uint32_t>, std::deque<Half>> unmatched_;  // by source and target
  Status broken_;
};

// A rank's end. Its group is known as soon as all ranks of a split have come.
struct LocalMember {
  std::shared_ptr<LocalGroup> group;
  uint32_t rank = 0;
  Status broken;                  // the split that makes it has failed
  std::vector<LocalPart> queued;  // before the group was known
};

}  // namespace halyard::hal
