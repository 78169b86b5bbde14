// Round: one message from each rank to each other rank, which describes the sender's operation.
#pragma once

#include <cstring>
#include <span>
#include <string>

#include "channel.h"
#include "requests.h"

namespace halyard::mpi {

class Round {
 public:
  explicit Round(Channel& channel) : channel_(channel), requests_(channel) {}

  // Sends channel.outgoing(), by rank. `fill` sets the header and bytes of each message.
  template <typename Fill>
  void begin(Fill fill) {
    const uint32_t rank = channel_.rank();
    for (uint32_t from = 0; from < channel_.count(); ++from)
      if (from != rank)
        requests_.receive(&channel_.incoming()[from], kMessage, from, Tag::header, static_cast<int>(from));
    for (uint32_t to = 0; to < channel_.count(); ++to) {
      Message& message = channel_.outgoing()[to];
      fill(to, message);
      if (to != rank) requests_.send(&message, sizeof(Header) + message.header.size, to, Tag::header, -1);
    }
    missing_ = channel_.count() - 1;
    has_come_.assign(channel_.count(), false);
  }
  // Returns whether any message has ended.
  bool advance() {
    return requests_.test([&](int from) {
      if (from < 0) return;
      has_come_[static_cast<size_t>(from)] = true;
      --missing_;
    }) > 0;
  }
  bool is_done() const { return missing_ == 0 && requests_.empty(); }
  const Failure& failure() const { return requests_.failure(); }
  bool awaits(uint32_t rank) const { return requests_.awaits(rank); }
  bool receives_from(uint32_t rank) const { return requests_.receives_from(rank); }
  void cancel() { requests_.cancel(); }
  Operation::Left left() { return requests_.left(); }

  std::string awaited() const {
    std::string ranks;
    int count = 0;
    for (uint32_t i = 0; i < has_come_.size(); ++i) {
      if (i == channel_.rank() || has_come_[i]) continue;
      ranks += (count++ ? ", " : "") + std::to_string(i);
    }
    return count == 0 ? "" : (count == 1 ? "rank " : "ranks ") + ranks;
  }

 private:
  Channel& channel_;
  Requests<int> requests_;
  uint32_t missing_ = 0;
  std::vector<bool> has_come_;
};

}  // namespace halyard::mpi
