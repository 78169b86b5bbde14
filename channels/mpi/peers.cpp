// Watches process file descriptors: poll() reports the end of a process that is not a child.
#include "peers.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "pause.h"

namespace halyard::mpi {

namespace {

// The messages of a rank that has ended have arrived after this time: through memory of the machine, or over
// a network.
constexpr uint64_t kMachineNs = 500'000;
constexpr uint64_t kNetworkNs = 100'000'000;

// The PID namespace: process numbers of different namespaces (containers) are not comparable.
int64_t process_namespace() {
  struct stat about = {};
  return ::stat("/proc/self/ns/pid", &about) == 0 ? static_cast<int64_t>(about.st_ino) : -1;
}

}  // namespace

void Peers::begin(uint32_t own, uint32_t count) {
  own_ = own;
  peers_.assign(count, {});
}

void Peers::watch(MPI_Comm local) {
  struct Card {
    int64_t rank;
    int64_t process;
    int64_t space;
  };
  int count = 0;
  MPI_Comm_size(local, &count);
  const Card own = {own_, ::getpid(), process_namespace()};
  std::vector<Card> cards(static_cast<size_t>(count));
  if (MPI_Allgather(&own, sizeof own, MPI_BYTE, cards.data(), sizeof own, MPI_BYTE, local) != MPI_SUCCESS)
    return;
  for (const Card& card : cards) {
    if (card.rank == own.rank || card.space != own.space || own.space < 0) continue;
    Peer& peer = peers_[static_cast<size_t>(card.rank)];
    peer.process = card.process;
    peer.handle = static_cast<int>(::syscall(SYS_pidfd_open, card.process, 0));
  }
}

void Peers::announce_end(uint32_t rank) {
  peers_[rank].ended_at = now();
  peers_[rank].has_announced = true;
}

void Peers::look() {
  std::vector<pollfd> watched;
  std::vector<Peer*> whose;
  for (Peer& peer : peers_) {
    if (peer.handle < 0 || peer.ended_at != 0) continue;
    watched.push_back({peer.handle, POLLIN, 0});
    whose.push_back(&peer);
  }
  if (watched.empty() || ::poll(watched.data(), watched.size(), 0) <= 0) return;
  for (size_t i = 0; i < watched.size(); ++i)
    if (watched[i].revents != 0) whose[i]->ended_at = now();
}

bool Peers::is_silent(uint32_t rank, uint64_t moved_at, uint64_t time) const {
  const Peer& peer = peers_[rank];
  return peer.ended_at != 0 &&
         time > std::max(peer.ended_at, moved_at) + (peer.has_announced ? kNetworkNs : kMachineNs);
}

std::string Peers::text(uint32_t rank) const {
  const Peer& peer = peers_[rank];
  return peer.has_announced
             ? "whose program has ended"
             : "whose process, " + std::to_string(peer.process) + ", has been killed or has ended";
}

bool Peers::all_have_ended() const {
  for (uint32_t rank = 0; rank < peers_.size(); ++rank)
    if (rank != own_ && !has_ended(rank)) return false;
  return true;
}

bool Peers::any_is_gone() const {
  for (uint32_t rank = 0; rank < peers_.size(); ++rank)
    if (is_gone(rank)) return true;
  return false;
}

}  // namespace halyard::mpi
