// Implements the kinds of collectives of all ranks.
#include "collective.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <span>
#include <vector>

#include "halyard/channel.hpp"
#include "pipeline.h"
#include "requests.h"
#include "rounds.h"

namespace halyard::mpi {

namespace {

// Maximum bytes in all first messages of one rank, if all ranks compute the result.
constexpr uint64_t kMaxSpread = 64 << 10;

bool agree(const Header& a, const Header& b) {
  return a.version == b.version && a.kind == b.kind && a.reduction == b.reduction && a.element == b.element &&
         a.root == b.root && a.element_count == b.element_count && a.sequence == b.sequence;
}

std::string text_of(const Header& header) {
  if (header.kind == kSplit || header.kind == kVote) return "a split";
  if (header.kind >= channel::kKindNames.size() || header.element >= channel::kElementTypes.size() ||
      header.reduction >= channel::kReductionNames.size())
    return "an unknown operation";
  halyard_collective_t collective = {};
  collective.kind = header.kind;
  collective.reduction = header.reduction;
  collective.element = header.element;
  collective.root = header.root;
  collective.target = HALYARD_NO_RANK;
  collective.source = HALYARD_NO_RANK;
  collective.element_count = header.element_count;
  return channel::text_of(collective);
}

class Collective final : public Operation {
 public:
  Collective(Channel& channel, const halyard_collective_t& given)
      : channel_(channel),
        given_(given),
        block_(given.element_count * channel::element_size(given.element)),
        round_(channel),
        moves_(channel) {
    collective_ = &given_;
  }

  void start() override;
  bool advance() override;
  void cancel() override {
    round_.cancel();
    moves_.cancel();
    if (pipeline_) pipeline_->cancel();
  }
  Left left() override {
    return std::max({round_.left(), moves_.left(), pipeline_ ? pipeline_->left() : Left::nothing});
  }
  bool moves_bytes() const override { return state_ == State::bytes; }
  bool awaits(uint32_t rank) const override {
    return round_.awaits(rank) || moves_.awaits(rank) || (pipeline_ && pipeline_->awaits(rank));
  }
  bool receives_from(uint32_t rank) const override {
    return round_.receives_from(rank) || moves_.receives_from(rank) ||
           (pipeline_ && pipeline_->receives_from(rank));
  }
  std::string awaited() const override {
    return state_ == State::round ? round_.awaited() : "bytes of other ranks";
  }
  std::string text() const override {
    return channel::text_of(given_) + ", number " + std::to_string(given_.number) + ",";
  }
  void broken(const Failure&) override {}

 private:
  enum class State : uint8_t { round, bytes };

  const uint8_t* sent() const { return static_cast<const uint8_t*>(given_.send); }
  uint8_t* received() const { return static_cast<uint8_t*>(given_.receive); }
  bool is_root() const { return given_.root == channel_.rank(); }
  // The part of `send` in the first message to this rank, if it is not too large.
  std::span<const uint8_t> payload_for(uint32_t to) const;
  bool is_small() const;
  void finish_small();
  void copy_own();
  void start_bytes();
  void reduce_small(std::span<const void* const> inputs, uint64_t elements) {
    channel::reduce(given_.element, given_.reduction, inputs, received(), elements);
  }
  bool check();

  Channel& channel_;
  const halyard_collective_t given_;
  const uint64_t block_;  // bytes
  State state_ = State::round;
  Round round_;
  Requests<int> moves_;
  std::optional<Pipeline> pipeline_;
};

bool Collective::is_small() const {
  const uint64_t count = channel_.count();
  switch (given_.kind) {
    case HALYARD_COLLECTIVE_ALL_TO_ALL:
      return block_ / count <= kInline;
    case HALYARD_COLLECTIVE_ALL_REDUCE:
    case HALYARD_COLLECTIVE_ALL_GATHER:
      return block_ <= kInline && (count == 2 || block_ * (count - 1) <= kMaxSpread);
    default:
      return block_ <= kInline;
  }
}

std::span<const uint8_t> Collective::payload_for(uint32_t to) const {
  switch (given_.kind) {
    case HALYARD_COLLECTIVE_ALL_GATHER:
    case HALYARD_COLLECTIVE_ALL_REDUCE:
      return {sent(), block_};
    case HALYARD_COLLECTIVE_ALL_TO_ALL:
      return {sent() + to * (block_ / channel_.count()), block_ / channel_.count()};
    case HALYARD_COLLECTIVE_BROADCAST:
      return {sent(), is_root() ? block_ : 0};
    case HALYARD_COLLECTIVE_REDUCE:
      return {sent(), to == given_.root ? block_ : 0};
    default:  // REDUCE_SCATTER
      return {sent() + to * block_, block_};
  }
}

void Collective::start() {
  if (channel_.count() == 1) {
    if (channel::reduces(given_.kind)) {
      const void* const own = sent();
      reduce_small({&own, 1}, given_.element_count);
    } else if (block_ != 0 && received() != sent()) {
      std::memcpy(received(), sent(), block_);
    }
    return done();
  }
  const bool is_small_one = is_small();
  const uint64_t sequence = channel_.next_sequence();
  round_.begin([&](uint32_t to, Message& message) {
    message.header = {};
    message.header.version = kVersion;
    message.header.kind = given_.kind;
    message.header.reduction = given_.reduction;
    message.header.element = given_.element;
    message.header.root = given_.root;
    message.header.element_count = given_.element_count;
    message.header.sequence = sequence;
    if (!is_small_one || to == channel_.rank()) return;
    const std::span<const uint8_t> payload = payload_for(to);
    message.header.size = static_cast<uint32_t>(payload.size());
    if (!payload.empty()) std::memcpy(message.bytes, payload.data(), payload.size());
  });
}

bool Collective::check() {
  const Header& own = channel_.outgoing()[channel_.rank()].header;
  for (uint32_t from = 0; from < channel_.count(); ++from) {
    if (from == channel_.rank()) continue;
    const Header& other = channel_.incoming()[from].header;
    if (agree(own, other)) continue;
    if (other.version != own.version) {
      fail({HALYARD_INCOMPATIBLE,
            "rank " + std::to_string(from) + " of " + channel_.name() +
                " has a channel provider of another version; use one build on all machines"});
    } else {
      fail({HALYARD_INVALID_ARGUMENT,
            "expected the same collective of every rank as number " + std::to_string(given_.number) + " of " +
                channel_.name() + ", found " + text_of(own) + " here and " + text_of(other) + " of rank " +
                std::to_string(from) + "; compile all ranks from one program"});
    }
    return false;
  }
  return true;
}

void Collective::copy_own() {
  const uint32_t rank = channel_.rank();
  const auto copy = [](uint8_t* to, const uint8_t* from, uint64_t size) {
    if (size != 0 && to != from) std::memcpy(to, from, size);
  };
  const uint64_t part = block_ / channel_.count();
  if (given_.kind == HALYARD_COLLECTIVE_ALL_GATHER) copy(received() + rank * block_, sent(), block_);
  if (given_.kind == HALYARD_COLLECTIVE_ALL_TO_ALL)
    copy(received() + rank * part, sent() + rank * part, part);
  if (given_.kind == HALYARD_COLLECTIVE_BROADCAST && is_root()) copy(received(), sent(), block_);
}

void Collective::finish_small() {
  const uint32_t rank = channel_.rank();
  const uint32_t count = channel_.count();
  const std::vector<Message>& incoming = channel_.incoming();
  copy_own();
  std::vector<const void*> inputs(count);
  const auto gather_inputs = [&](const uint8_t* own) {
    for (uint32_t from = 0; from < count; ++from) inputs[from] = from == rank ? own : incoming[from].bytes;
  };
  switch (given_.kind) {
    case HALYARD_COLLECTIVE_ALL_GATHER:
    case HALYARD_COLLECTIVE_ALL_TO_ALL: {
      const uint64_t part = given_.kind == HALYARD_COLLECTIVE_ALL_GATHER ? block_ : block_ / count;
      for (uint32_t from = 0; from < count; ++from)
        if (from != rank && part != 0) std::memcpy(received() + from * part, incoming[from].bytes, part);
      break;
    }
    case HALYARD_COLLECTIVE_BROADCAST:
      if (!is_root() && block_ != 0) std::memcpy(received(), incoming[given_.root].bytes, block_);
      break;
    case HALYARD_COLLECTIVE_REDUCE:
      if (!is_root()) break;
      [[fallthrough]];
    case HALYARD_COLLECTIVE_ALL_REDUCE:
      gather_inputs(sent());
      reduce_small(inputs, given_.element_count);
      break;
    default:  // REDUCE_SCATTER
      gather_inputs(sent() + rank * block_);
      reduce_small(inputs, given_.element_count);
      break;
  }
}

void Collective::start_bytes() {
  const uint32_t rank = channel_.rank();
  const uint32_t count = channel_.count();
  state_ = State::bytes;
  copy_own();
  if (given_.kind == HALYARD_COLLECTIVE_ALL_GATHER || given_.kind == HALYARD_COLLECTIVE_ALL_TO_ALL) {
    const bool gathers = given_.kind == HALYARD_COLLECTIVE_ALL_GATHER;
    const uint64_t part = gathers ? block_ : block_ / count;
    for (uint32_t step = 1; step < count; ++step) {
      const uint32_t from = (rank + count - step) % count;
      moves_.receive(received() + from * part, part, from, Tag::move, 0);
    }
    for (uint32_t step = 1; step < count; ++step) {
      const uint32_t to = (rank + step) % count;
      moves_.send(sent() + (gathers ? 0 : to * part), part, to, Tag::move, 0);
    }
    return;
  }
  PipelinePlan plan;
  plan.element = given_.element;
  plan.reduction = given_.reduction;
  plan.send = sent();
  plan.receive = received();
  plan.chunks.assign(count + 1, 0);
  if (given_.kind == HALYARD_COLLECTIVE_REDUCE_SCATTER) {
    plan.owners_keep = true;
    for (uint32_t i = 0; i < count; ++i) plan.chunks[i + 1] = plan.chunks[i] + given_.element_count;
  } else if (given_.kind == HALYARD_COLLECTIVE_BROADCAST) {
    // The root's chunk is empty.
    plan.only_contributor = given_.root;
    if (!is_root()) plan.send = nullptr;
    uint32_t owner = 0;
    for (uint32_t i = 0; i < count; ++i) {
      if (i != given_.root) ++owner;
      plan.chunks[i + 1] = given_.element_count * owner / (count - 1);
    }
  } else {
    if (given_.kind == HALYARD_COLLECTIVE_REDUCE) {
      plan.only_receiver = given_.root;
      if (!is_root()) plan.receive = nullptr;
    }
    for (uint32_t i = 0; i < count; ++i) plan.chunks[i + 1] = given_.element_count * (i + 1) / count;
  }
  pipeline_.emplace(channel_, std::move(plan));
}

bool Collective::advance() {
  bool moved = false;
  if (state_ == State::round) {
    moved = round_.advance();
    if (round_.failure()) fail(round_.failure());
    if (failure() || !round_.is_done()) return moved;
    if (!check()) return true;
    if (is_small()) {
      finish_small();
      done();
      return true;
    }
    start_bytes();
    moved = true;
  }
  if (pipeline_) {
    moved = pipeline_->advance() || moved;
    if (pipeline_->failure()) {
      fail(pipeline_->failure());
    } else if (pipeline_->is_done()) {
      done();
    }
    return moved;
  }
  moved = moves_.test([](int) {}) > 0 || moved;
  if (moves_.failure()) {
    fail(moves_.failure());
  } else if (moves_.empty()) {
    done();
  }
  return moved;
}

}  // namespace

std::unique_ptr<Operation> make_collective(Channel& channel, const halyard_collective_t& collective) {
  return std::make_unique<Collective>(channel, collective);
}

}  // namespace halyard::mpi
