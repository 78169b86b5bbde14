// Runs rounds of proposals and votes.
#include "split.h"

#include <algorithm>
#include <bitset>
#include <cstring>
#include <utility>
#include <vector>

#include "job.h"
#include "rounds.h"

namespace halyard::mpi {

namespace {

constexpr size_t kLabel = 256;

// The bytes of a proposal.
struct Proposal {
  int32_t color;
  int32_t key;
  std::bitset<kMaxChannels> taken;
  char opens[kLabel];  // padded with zeros
};
static_assert(sizeof(Proposal) <= kInline);
struct Vote {
  uint32_t agrees;
};

class Split final : public Operation {
 public:
  Split(Channel& channel, int32_t color, int32_t key, Channel* child, std::string opens)
      : channel_(channel), child_(child), opens_(std::move(opens)), round_(channel) {
    own_.color = color;
    own_.key = key;
    opens_.copy(own_.opens, kLabel - 1);
    if (child_) child_->expect_split();
  }

  void start() override {
    own_.taken = channel_.fabric().taken;
    if (channel_.count() == 1) {
      if (!choose({own_})) return;
      open_child();
      return done();
    }
    propose();
  }

  bool advance() override {
    const bool moved = round_.advance();
    if (round_.failure()) fail(round_.failure());
    if (is_done() || failure() || !round_.is_done()) return moved;
    if (!check()) return true;
    if (votes_) {
      end_vote();
    } else {
      end_proposals();
    }
    return true;
  }

  void cancel() override { round_.cancel(); }
  Left left() override { return round_.left(); }
  bool moves_bytes() const override { return false; }
  bool awaits(uint32_t rank) const override { return round_.awaits(rank); }
  bool receives_from(uint32_t rank) const override { return round_.receives_from(rank); }
  std::string awaited() const override { return round_.awaited(); }
  std::string text() const override { return opens_.empty() ? "a split" : "the opening of '" + opens_ + "'"; }
  void broken(const Failure& failure) override {
    if (child_) child_->fail(failure, false);
    if (agrees_) {
      // Other ranks may have all votes, and open the channel. They learn of the failure from it.
      open_child();
    } else if (child_) {
      child_->forget_split();
    }
    channel_.process().changed.notify_all();
  }

 private:
  template <typename T>
  void begin(uint32_t kind, const T& bytes) {
    const uint64_t sequence = channel_.next_sequence();
    round_.begin([&](uint32_t, Message& message) {
      message.header = {};
      message.header.version = kVersion;
      message.header.kind = kind;
      message.header.sequence = sequence;
      message.header.size = sizeof bytes;
      std::memcpy(message.bytes, &bytes, sizeof bytes);
    });
  }

  template <typename T>
  T bytes_of(uint32_t rank) const {
    T bytes;
    const Message& message = rank == channel_.rank() ? channel_.outgoing()[rank] : channel_.incoming()[rank];
    std::memcpy(&bytes, message.bytes, sizeof bytes);
    return bytes;
  }

  bool check() {
    const Header& own = channel_.outgoing()[channel_.rank()].header;
    for (uint32_t from = 0; from < channel_.count(); ++from) {
      const Header& other = from == channel_.rank() ? own : channel_.incoming()[from].header;
      if (other.version == own.version && other.kind == own.kind && other.sequence == own.sequence) continue;
      fail({HALYARD_INVALID_ARGUMENT, "expected " + text() + " of every rank of " + channel_.name() +
                                          ", found another operation of rank " + std::to_string(from) +
                                          "; compile all ranks from one program"});
      return false;
    }
    return true;
  }

  void propose() {
    votes_ = false;
    begin(kSplit, own_);
  }

  // Whether the ranks open the same channel and a free number exists.
  bool choose(const std::vector<Proposal>& proposals) {
    std::bitset<kMaxChannels> taken;
    for (uint32_t from = 0; from < proposals.size(); ++from) {
      if (std::memcmp(proposals[from].opens, own_.opens, kLabel) != 0) {
        fail({HALYARD_INVALID_ARGUMENT,
              "expected every rank to open its channels in the same order, found '" +
                  std::string(own_.opens) + "' here (rank " + std::to_string(channel_.rank()) + ") and '" +
                  std::string(proposals[from].opens, strnlen(proposals[from].opens, kLabel)) + "' of rank " +
                  std::to_string(from)});
        return false;
      }
      taken |= proposals[from].taken;
    }
    number_ = 1;
    while (number_ < channel_.fabric().channels && taken.test(number_)) ++number_;
    if (number_ < channel_.fabric().channels) {
      proposals_ = proposals;
      return true;
    }
    number_ = 0;
    fail({HALYARD_RESOURCE_EXHAUSTED, "more than " + std::to_string(channel_.fabric().channels - 1) +
                                          " channels are open at once; close some"});
    return false;
  }

  void end_proposals() {
    std::vector<Proposal> proposals;
    for (uint32_t from = 0; from < channel_.count(); ++from) proposals.push_back(bytes_of<Proposal>(from));
    if (!choose(proposals)) return;
    agrees_ = !channel_.fabric().taken.test(number_);
    if (agrees_) channel_.fabric().taken.set(number_);
    votes_ = true;
    begin(kVote, Vote{agrees_});
  }

  void end_vote() {
    bool all = true;
    for (uint32_t from = 0; from < channel_.count(); ++from) all = all && bytes_of<Vote>(from).agrees;
    if (!all) {
      give_number_back();
      own_.taken = channel_.fabric().taken;
      return propose();
    }
    open_child();
    done();
  }

  // A number that this rank has not agreed to belongs to another channel.
  void give_number_back() {
    if (std::exchange(agrees_, false)) channel_.fabric().taken.reset(number_);
    number_ = 0;
  }

  void open_child() {
    channel_.fabric().taken.set(number_);
    if (child_) {
      std::vector<uint32_t> members;
      for (uint32_t i = 0; i < proposals_.size(); ++i)
        if (proposals_[i].color == own_.color) members.push_back(i);
      std::sort(members.begin(), members.end(), [&](uint32_t a, uint32_t b) {
        return std::pair(proposals_[a].key, a) < std::pair(proposals_[b].key, b);
      });
      std::vector<uint32_t> ranks;
      for (const uint32_t member : members) ranks.push_back(static_cast<uint32_t>(channel_.peer(member)));
      child_->set_ranks(std::move(ranks));
      child_->open(number_);
    } else {
      channel_.fabric().taken.reset(number_);  // this rank is not in the new channel
    }
    channel_.process().changed.notify_all();
  }

  Channel& channel_;
  Channel* const child_;
  const std::string opens_;
  Round round_;
  Proposal own_ = {};
  std::vector<Proposal> proposals_;
  uint32_t number_ = 0;
  bool votes_ = false;
  bool agrees_ = false;
};

}  // namespace

std::unique_ptr<Operation> make_split(Channel& channel, int32_t color, int32_t key, Channel* child,
                                      std::string opens) {
  return std::make_unique<Split>(channel, color, key, child, std::move(opens));
}

}  // namespace halyard::mpi
