// The windows of a pipeline, which limit the messages under way.
#include "pipeline.h"

#include <algorithm>
#include <cstring>

#include "halyard/channel.hpp"

namespace halyard::mpi {

namespace {

constexpr uint64_t kWindow = 4;  // pieces of each chunk under way
constexpr uint64_t kSmallPiece = 256 << 10;
constexpr uint64_t kLargePiece = 1 << 20;
constexpr uint64_t kLargeChunk = 1 << 20;

}  // namespace

Pipeline::Pipeline(Channel& channel, PipelinePlan plan)
    : channel_(channel),
      plan_(std::move(plan)),
      element_size_(channel::element_size(plan_.element)),
      requests_(channel),
      missing_(kWindow),
      results_under_way_(kWindow),
      sent_(channel.count()),
      sent_done_(channel.count()),
      awaited_(channel.count()),
      received_(channel.count()) {
  uint64_t largest = 0;
  for (uint32_t i = 0; i < channel_.count(); ++i)
    largest = std::max(largest, plan_.chunks[i + 1] - plan_.chunks[i]);
  piece_elements_ = (largest * element_size_ > kLargeChunk ? kLargePiece : kSmallPiece) / element_size_;
  const uint64_t pieces = std::min(kWindow, pieces_of(channel_.rank()));
  const uint64_t piece_bytes = std::min(piece_elements_, std::max<uint64_t>(largest, 1)) * element_size_;
  if (plan_.only_contributor == HALYARD_NO_RANK) {
    slots_size_ = pieces * (channel_.count() - 1) * piece_bytes;
    slots_ = channel_.scratch(slots_size_);
  }
  if (!plan_.receive) results_.resize(pieces * piece_bytes);
}

uint64_t Pipeline::pieces_of(uint32_t owner) const {
  const uint64_t elements = plan_.chunks[owner + 1] - plan_.chunks[owner];
  return (elements + piece_elements_ - 1) / piece_elements_;
}

uint64_t Pipeline::offset_of(uint32_t owner, uint64_t piece) const {
  return (plan_.chunks[owner] + piece * piece_elements_) * element_size_;
}

uint64_t Pipeline::size_of(uint32_t owner, uint64_t piece) const {
  const uint64_t elements = plan_.chunks[owner + 1] - plan_.chunks[owner];
  return std::min(piece_elements_, elements - piece * piece_elements_) * element_size_;
}

bool Pipeline::contributes(uint32_t rank) const {
  return plan_.only_contributor == HALYARD_NO_RANK || plan_.only_contributor == rank;
}

bool Pipeline::receives(uint32_t rank, uint32_t owner) const {
  if (rank == owner || plan_.owners_keep) return false;
  if (plan_.only_contributor == rank) return false;  // already has the elements
  return plan_.only_receiver == HALYARD_NO_RANK || plan_.only_receiver == rank;
}

uint8_t* Pipeline::place_of(uint32_t owner, uint64_t piece) const {
  const uint64_t offset = offset_of(owner, piece);
  return plan_.receive + (plan_.owners_keep ? offset - plan_.chunks[owner] * element_size_ : offset);
}

uint8_t* Pipeline::slot(uint64_t piece, uint32_t contributor) {
  if (plan_.only_contributor != HALYARD_NO_RANK) return place_of(channel_.rank(), piece);
  const uint64_t piece_bytes =
      slots_size_ / (std::min(kWindow, pieces_of(channel_.rank())) * (channel_.count() - 1));
  const uint32_t place = contributor < channel_.rank() ? contributor : contributor - 1;
  return slots_ + (piece % kWindow * (channel_.count() - 1) + place) * piece_bytes;
}

void Pipeline::begin() {
  const uint32_t rank = channel_.rank();
  const uint32_t count = channel_.count();
  // Receives contributions to the own chunk.
  const uint64_t own = pieces_of(rank);
  for (; posted_ < own && posted_ < reduced_ + kWindow && results_under_way_[posted_ % kWindow] == 0;
       ++posted_) {
    uint32_t& missing = missing_[posted_ % kWindow];
    missing = 0;
    for (uint32_t from = 0; from < count; ++from) {
      if (from == rank || !contributes(from)) continue;
      ++missing;
      requests_.receive(slot(posted_, from), size_of(rank, posted_), from, Tag::contribution,
                        {What::contribution, from, static_cast<uint32_t>(posted_)});
    }
  }
  // Sends contributions to the chunks of other ranks, and receives results from them. Begins with the rank
  // after this one, so that not all ranks send to the same rank.
  for (uint32_t step = 1; step < count; ++step) {
    const uint32_t to = (rank + step) % count;
    const uint64_t pieces = pieces_of(to);
    if (contributes(rank)) {
      for (; sent_[to] < pieces && sent_[to] < sent_done_[to] + kWindow; ++sent_[to])
        requests_.send(plan_.send + offset_of(to, sent_[to]), size_of(to, sent_[to]), to, Tag::contribution,
                       {What::contribution_sent, to, 0});
    }
    if (receives(rank, to)) {
      for (; awaited_[to] < pieces && awaited_[to] < received_[to] + kWindow; ++awaited_[to])
        requests_.receive(place_of(to, awaited_[to]), size_of(to, awaited_[to]), to, Tag::result,
                          {What::result, to, 0});
    }
  }
}

void Pipeline::reduce(uint64_t piece) {
  const uint32_t rank = channel_.rank();
  const uint64_t size = size_of(rank, piece);
  uint8_t* const to =
      plan_.receive
          ? place_of(rank, piece)
          : results_.data() + piece % kWindow * (results_.size() / std::min(kWindow, pieces_of(rank)));
  if (plan_.only_contributor == HALYARD_NO_RANK) {
    std::vector<const void*> inputs(channel_.count());
    for (uint32_t from = 0; from < channel_.count(); ++from)
      inputs[from] = from == rank ? plan_.send + offset_of(rank, piece) : slot(piece, from);
    channel::reduce(plan_.element, plan_.reduction, inputs, to, size / element_size_);
  }
  for (uint32_t step = 1; step < channel_.count(); ++step) {
    const uint32_t peer = (rank + step) % channel_.count();
    if (!receives(peer, rank)) continue;
    ++results_under_way_[piece % kWindow];
    requests_.send(to, size, peer, Tag::result, {What::result_sent, peer, static_cast<uint32_t>(piece)});
  }
  // A result that is sent from its place in `receive` needs no slot.
  if (plan_.receive) results_under_way_[piece % kWindow] = 0;
}

void Pipeline::reduce_ready() {
  while (reduced_ < posted_ && missing_[reduced_ % kWindow] == 0) reduce(reduced_++);
}

bool Pipeline::advance() {
  begin();
  reduce_ready();
  const int ended = requests_.test([&](const Message& message) {
    switch (message.what) {
      case What::contribution_sent:
        ++sent_done_[message.peer];
        break;
      case What::contribution:
        --missing_[message.piece % kWindow];
        break;
      case What::result_sent:
        if (!plan_.receive) --results_under_way_[message.piece % kWindow];
        break;
      case What::result:
        ++received_[message.peer];
        break;
    }
  });
  if (ended == 0) return false;
  reduce_ready();
  begin();
  return true;
}

bool Pipeline::is_done() const {
  if (!requests_.empty() || reduced_ < pieces_of(channel_.rank())) return false;
  for (uint32_t peer = 0; peer < channel_.count(); ++peer) {
    if (peer == channel_.rank()) continue;
    if (contributes(channel_.rank()) && sent_[peer] < pieces_of(peer)) return false;
    if (receives(channel_.rank(), peer) && received_[peer] < pieces_of(peer)) return false;
  }
  return true;
}

}  // namespace halyard::mpi
