// Requests: messages under way, each with a value that is reported when the message ends.
#pragma once

#include <mpi.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

#include "channel.h"
#include "failure.h"
#include "message.h"

namespace halyard::mpi {

// Maximum bytes of one MPI message, because its count is an int.
inline constexpr uint64_t kMaxBytes = uint64_t{1} << 30;

template <typename Value>
class Requests {
 public:
  explicit Requests(Channel& channel) : channel_(channel) {}

  bool empty() const { return requests_.empty(); }
  const Failure& failure() const { return failure_; }

  // `peer` is a rank of the channel. Larger data becomes several messages with the same value.
  void send(const void* bytes, uint64_t size, uint32_t peer, Tag tag, Value value) {
    each(
        size, peer,
        [&](uint64_t at, int count, MPI_Request* request) {
          return MPI_Isend(static_cast<const uint8_t*>(bytes) + at, count, MPI_BYTE, channel_.peer(peer),
                           channel_.tag(tag), channel_.comm(), request);
        },
        value, false, "MPI_Isend");
  }
  // Ends when the receiver has the message. For messages of less than 1 GiB.
  void send_synchronously(const void* bytes, uint64_t size, uint32_t peer, Tag tag, Value value) {
    each(
        size, peer,
        [&](uint64_t at, int count, MPI_Request* request) {
          return MPI_Issend(static_cast<const uint8_t*>(bytes) + at, count, MPI_BYTE, channel_.peer(peer),
                            channel_.tag(tag), channel_.comm(), request);
        },
        value, false, "MPI_Issend");
  }
  void receive(void* bytes, uint64_t size, uint32_t peer, Tag tag, Value value) {
    each(
        size, peer,
        [&](uint64_t at, int count, MPI_Request* request) {
          return MPI_Irecv(static_cast<uint8_t*>(bytes) + at, count, MPI_BYTE, channel_.peer(peer),
                           channel_.tag(tag), channel_.comm(), request);
        },
        value, true, "MPI_Irecv");
  }

  // Whether a message to or from the rank is under way.
  bool awaits(uint32_t peer) const {
    return std::any_of(what_.begin(), what_.end(), [&](const What& what) { return what.peer == peer; });
  }

  // Whether a message from the rank is being received.
  bool receives_from(uint32_t peer) const {
    return std::any_of(what_.begin(), what_.end(),
                       [&](const What& what) { return what.is_receive && what.peer == peer; });
  }

  // Calls ended(value) for each message that has ended since the last call. Returns their number.
  template <typename Ended>
  int test(Ended ended) {
    if (requests_.empty() || failure_) return 0;
    indices_.resize(requests_.size());
    int count = 0;
    const int error = MPI_Testsome(static_cast<int>(requests_.size()), requests_.data(), &count,
                                   indices_.data(), MPI_STATUSES_IGNORE);
    if (error != MPI_SUCCESS) {
      failure_ = {HALYARD_UNAVAILABLE, error_text("MPI_Testsome", error)};
      remove_ended();
      return 1;
    }
    if (count == MPI_UNDEFINED || count == 0) return 0;
    ended_.clear();
    std::sort(indices_.begin(), indices_.begin() + count, std::greater<>());
    for (int i = 0; i < count; ++i) {
      const auto index = static_cast<size_t>(indices_[static_cast<size_t>(i)]);
      ended_.push_back(what_[index].value);
      remove(index);
    }
    // Roughly in the order in which they began.
    std::reverse(ended_.begin(), ended_.end());
    const std::vector<Value> now = std::move(ended_);
    for (const Value& value : now) ended(value);
    return count;
  }

  // Called after a failure: cancels the receives for which no bytes are on their way.
  void cancel() {
    for (size_t i = 0; i < requests_.size(); ++i)
      if (what_[i].is_receive) MPI_Cancel(&requests_[i]);
  }
  // The messages that are still under way after cancel().
  Operation::Left left() {
    failure_ = {};
    test([](const Value&) {});
    if (what_.empty()) return Operation::Left::nothing;
    const bool receives =
        std::any_of(what_.begin(), what_.end(), [](const What& what) { return what.is_receive; });
    return receives ? Operation::Left::receives : Operation::Left::sends;
  }

 private:
  struct What {
    Value value;
    uint32_t peer;
    bool is_receive;
  };

  void remove(size_t index) {
    requests_[index] = requests_.back();
    what_[index] = what_.back();
    requests_.pop_back();
    what_.pop_back();
  }
  // After an error of MPI_Testsome, which may have ended some requests. A request whose own test fails has
  // ended as well.
  void remove_ended() {
    for (size_t i = requests_.size(); i-- > 0;) {
      int has_ended = 0;
      if (MPI_Test(&requests_[i], &has_ended, MPI_STATUS_IGNORE) != MPI_SUCCESS || has_ended) remove(i);
    }
  }

  template <typename Begin>
  void each(uint64_t size, uint32_t peer, Begin begin, Value value, bool is_receive, const char* function) {
    uint64_t at = 0;
    do {
      const uint64_t piece = std::min(kMaxBytes, size - at);
      MPI_Request request = MPI_REQUEST_NULL;
      if (const int error = begin(at, static_cast<int>(piece), &request); error != MPI_SUCCESS) {
        failure_ = {HALYARD_UNAVAILABLE, error_text(function, error)};
        return;
      }
      requests_.push_back(request);
      what_.push_back({value, peer, is_receive});
      at += piece;
    } while (at < size);
  }

  Channel& channel_;
  std::vector<MPI_Request> requests_;
  std::vector<What> what_;
  std::vector<int> indices_;
  std::vector<Value> ended_;
  Failure failure_;
};

}  // namespace halyard::mpi
