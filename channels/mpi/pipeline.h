// Pipeline: a reduction divided among the ranks. Each rank owns a chunk. All contributors send the owner
// their elements of the chunk, piece by piece. The owner reduces each piece in the order of the ranks, and
// sends the result to the receivers. Messages of several pieces are under way at once. A broadcast has one
// contributor. Only contributions are copied.
#pragma once

#include <cstdint>
#include <vector>

#include "channel.h"
#include "requests.h"

namespace halyard::mpi {

struct PipelinePlan {
  uint32_t element = 0;
  uint32_t reduction = 0;
  // The first element of each rank's chunk, as an offset into the contributions, and the end: count() + 1
  // offsets.
  std::vector<uint64_t> chunks;
  uint32_t only_contributor = HALYARD_NO_RANK;  // HALYARD_NO_RANK: all ranks contribute
  uint32_t only_receiver = HALYARD_NO_RANK;     // HALYARD_NO_RANK: all, except the only contributor
  bool owners_keep = false;                     // no rank receives other ranks' chunks
  const uint8_t* send = nullptr;                // all chunks; null if this rank contributes nothing
  uint8_t* receive = nullptr;                   // all chunks, or this rank's with owners_keep; may be null
};

class Pipeline {
 public:
  Pipeline(Channel& channel, PipelinePlan plan);

  // Begins messages and handles those that have ended. Returns whether any has.
  bool advance();
  bool is_done() const;
  const Failure& failure() const { return requests_.failure(); }
  bool awaits(uint32_t rank) const { return requests_.awaits(rank); }
  bool receives_from(uint32_t rank) const { return requests_.receives_from(rank); }
  void cancel() { requests_.cancel(); }
  Operation::Left left() { return requests_.left(); }

 private:
  enum class What : uint8_t { contribution_sent, contribution, result_sent, result };
  struct Message {
    What what;
    uint32_t peer;
    uint32_t piece;
  };

  uint64_t pieces_of(uint32_t owner) const;
  uint64_t offset_of(uint32_t owner, uint64_t piece) const;  // bytes, in the contributions
  uint64_t size_of(uint32_t owner, uint64_t piece) const;    // bytes
  bool contributes(uint32_t rank) const;
  bool receives(uint32_t rank, uint32_t owner) const;
  uint8_t* place_of(uint32_t owner, uint64_t piece) const;  // where this rank keeps a result
  uint8_t* slot(uint64_t piece, uint32_t contributor);
  void begin();
  void reduce_ready();
  void reduce(uint64_t piece);

  Channel& channel_;
  const PipelinePlan plan_;
  const uint64_t element_size_;
  uint64_t piece_elements_ = 1;
  Requests<Message> requests_;
  uint8_t* slots_ = nullptr;  // contributions to the pieces under way; memory of the channel
  uint64_t slots_size_ = 0;
  std::vector<uint8_t> results_;  // own results, if this rank has no `receive`
  // For the pieces of the own chunk, by piece modulo the window.
  std::vector<uint32_t> missing_;  // contributions
  std::vector<uint32_t> results_under_way_;
  uint64_t posted_ = 0;   // pieces whose contributions are being received
  uint64_t reduced_ = 0;  // pieces
  // By peer.
  std::vector<uint64_t> sent_;  // contributions whose sends have begun
  std::vector<uint64_t> sent_done_;
  std::vector<uint64_t> awaited_;  // results that are being received
  std::vector<uint64_t> received_;
};

}  // namespace halyard::mpi
