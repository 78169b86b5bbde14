// Peers: the other processes of the job, and which of them have ended. One that ends well tells the others
// (Channel::tell_end). One that is killed cannot; on the same machine the system says that it is gone. All
// functions are called under the lock of the job.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <string>
#include <vector>

namespace halyard::mpi {

class Peers {
 public:
  // `own` is this process's rank in the job.
  void begin(uint32_t own, uint32_t count);
  // A collective call of the processes of `local`, which share a machine: each watches the others.
  void watch(MPI_Comm local);
  // The rank has told that it ends.
  void told(uint32_t rank);
  // Asks the system about the watched processes.
  void look();

  bool has_ended(uint32_t rank) const { return peers_[rank].ended_at != 0; }
  // Whether its process has ended without having told. One that has told waits for the others.
  bool is_gone(uint32_t rank) const { return has_ended(rank) && !peers_[rank].was_told; }
  // Whether it had ended long before `time`, and nothing has moved since `moved_at` for as long: what it had
  // sent has come.
  bool is_silent(uint32_t rank, uint64_t moved_at, uint64_t time) const;
  // "whose process, 1234, has ...", for messages.
  std::string text(uint32_t rank) const;
  bool all_have_ended() const;
  bool any_is_gone() const;

 private:
  struct Peer {
    int handle = -1;  // a pidfd; -1: not watched
    int64_t process = 0;
    uint64_t ended_at = 0;  // 0: it has not
    bool was_told = false;
  };
  std::vector<Peer> peers_;  // by rank in the job
  uint32_t own_ = 0;
};

}  // namespace halyard::mpi
