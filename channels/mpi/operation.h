// Operation: a collective under way. All functions are called under the lock of the job.
#pragma once

#include <cstdint>
#include <string>

#include "failure.h"
#include "halyard/channel.h"

namespace halyard::mpi {

class Operation {
 public:
  virtual ~Operation() = default;

  // Called once, when the operation's turn comes.
  virtual void start() = 0;
  // Advances as far as possible and returns whether anything has changed. Calls done() at the end.
  virtual bool advance() = 0;
  // Called after a failure: stops receiving.
  virtual void cancel() = 0;
  // The messages that are still under way after cancel().
  enum class Left { nothing, sends, receives };
  virtual Left left() = 0;
  // Whether the bytes of a large operation are being moved: MPI may then work for long before a message ends.
  virtual bool moves_bytes() const = 0;
  // Whether a message to or from this rank of the channel is still under way.
  virtual bool awaits(uint32_t rank) const = 0;
  // Whether a message from this rank of the channel is still being received.
  virtual bool receives_from(uint32_t rank) const = 0;
  // The ranks for which the operation waits, for error messages: "rank 1", "ranks 1, 3".
  virtual std::string awaited() const = 0;
  // A description for error messages: "all_reduce sum f32 x 8, number 3".
  virtual std::string text() const = 0;
  // Called instead of the end, when the channel has failed.
  virtual void broken(const Failure& failure) = 0;

  bool is_done() const { return is_done_; }
  const Failure& failure() const { return failure_; }
  // The host's collective; null for other operations.
  const halyard_collective_t* collective() const { return collective_; }
  uint64_t added = 0;     // time of Channel::add(), nanoseconds of CLOCK_MONOTONIC
  bool* ended = nullptr;  // set to true at the end, for a thread that waits

 protected:
  void done() { is_done_ = true; }
  void fail(Failure failure) {
    if (!failure_) failure_ = std::move(failure);
  }
  const halyard_collective_t* collective_ = nullptr;

 private:
  bool is_done_ = false;
  Failure failure_;
};

}  // namespace halyard::mpi
