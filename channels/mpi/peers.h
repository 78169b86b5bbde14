// Peers: the other processes of the job, and whether they have ended. A process that ends well tells the
// others (Channel::tell_end). For a process that is killed, the system reports the end, on the same machine
// only. All functions are called under the lock of the job.
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
  // A collective call by the processes of `local`, which share a machine. Each process watches the others.
  void watch(MPI_Comm local);
  // The rank has announced its end.
  void announce_end(uint32_t rank);
  // Asks the system about the watched processes.
  void look();

  bool has_ended(uint32_t rank) const { return peers_[rank].ended_at != 0; }
  // Whether the rank's process has ended without announcing it. A process that has announced its end waits
  // for the others.
  bool is_gone(uint32_t rank) const { return has_ended(rank) && !peers_[rank].has_announced; }
  // Whether the rank ended long before `time`, and nothing has moved since `moved_at` for as long, so that
  // all its messages have arrived.
  bool is_silent(uint32_t rank, uint64_t moved_at, uint64_t time) const;
  // "whose process, 1234, has ...", for error messages.
  std::string text(uint32_t rank) const;
  bool all_have_ended() const;
  bool any_is_gone() const;

 private:
  struct Peer {
    int handle = -1;  // a pidfd; -1: not watched
    int64_t process = 0;
    uint64_t ended_at = 0;  // 0: has not ended
    bool has_announced = false;
  };
  std::vector<Peer> peers_;  // by rank in the job
  uint32_t own_ = 0;
};

}  // namespace halyard::mpi
