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

  // Called once, when it is its turn.
  virtual void start() = 0;
  // Does what can be done now; whether anything has been done. Sets is_done() at the end.
  virtual bool advance() = 0;
  // After a failure: receives nothing more.
  virtual void cancel() = 0;
  // After cancel(): what is still under way.
  enum class Left { nothing, sends, receives };
  virtual Left left() = 0;
  // Whether the bytes of a large one are on their way: MPI may then work long without the end of a message.
  virtual bool moves_bytes() const = 0;
  // Whether a message to or from this rank of the channel is still under way.
  virtual bool awaits(uint32_t rank) const = 0;
  // The ranks that it waits for, for messages: "rank 1", "ranks 1, 3".
  virtual std::string awaited() const = 0;
  // What it is, for messages: "all_reduce sum f32 x 8, number 3".
  virtual std::string text() const = 0;
  // Called when the channel has broken, in place of the end.
  virtual void broken(const Failure& failure) = 0;

  bool is_done() const { return is_done_; }
  const Failure& failure() const { return failure_; }
  // Of the host; null for others.
  const halyard_collective_t* collective() const { return collective_; }
  uint64_t added = 0;     // nanoseconds of CLOCK_MONOTONIC
  bool* ended = nullptr;  // set to true at the end, for a thread that stays

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
