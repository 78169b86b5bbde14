// The queue, the notices and the end of a channel.
#include "channel.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "halyard/channel.hpp"
#include "pause.h"

namespace halyard::mpi {

namespace {

// The time for which failed collectives wait for bytes that are on their way.
constexpr uint64_t kDrainNs = 1'000'000'000;

bool is_direct(const Operation& operation) {
  const halyard_collective_t* const collective = operation.collective();
  return collective && channel::is_point_to_point(collective->kind);
}

}  // namespace

Channel::Channel(Fabric& fabric, std::string label) : fabric_(fabric), label_(std::move(label)) {
  process().channels.push_back(this);
}

std::unique_ptr<Channel> Channel::root_of(Fabric& fabric) {
  auto channel = std::make_unique<Channel>(fabric, "all");
  std::vector<uint32_t> ranks(fabric.count);
  for (uint32_t i = 0; i < fabric.count; ++i) ranks[i] = i;
  channel->set_ranks(std::move(ranks));
  fabric.taken.set(0);
  channel->open(0);
  return channel;
}

Channel::~Channel() { std::erase(process().channels, this); }

std::string Channel::name() const {
  return "channel '" + label_ + "' (rank " + std::to_string(rank_) + " of " + std::to_string(count()) + ")";
}

void Channel::set_ranks(std::vector<uint32_t> ranks) {
  rank_ = static_cast<uint32_t>(std::find(ranks.begin(), ranks.end(), fabric_.rank) - ranks.begin());
  ranks_ = std::move(ranks);
}

void Channel::open(uint32_t number) {
  number_ = number;
  has_split_ = false;
  has_number_ = true;
  is_open_ = true;
  if (count() > 1) {
    incoming_.resize(count());
    outgoing_.resize(count());
    turns_.resize(count());
    if (broken_) {
      send_notice(kNotice, broken_);  // the channel has failed before it had a number
    } else {
      notice_ = std::make_unique<Message>();
      receive_notice();
    }
  }
  give_number_back();
}

bool Channel::is_member(uint32_t fabric_rank) const {
  return std::find(ranks_.begin(), ranks_.end(), fabric_rank) != ranks_.end();
}

void Channel::receive_notice() {
  MPI_Irecv(notice_.get(), kMessage, MPI_BYTE, MPI_ANY_SOURCE, tag(Tag::notice), comm(), &notice_request_);
}

void Channel::send_notice(uint32_t kind, const Failure& failure) {
  const std::string text = failure.text.substr(0, kInline);
  for (uint32_t to = 0; to < count(); ++to) {
    const uint32_t peer_in_world = world_rank(to);
    if (to == rank_ || (peer_in_world != kNotInWorld && process().peers.is_gone(peer_in_world))) continue;
    Notice& notice = notices_.emplace_back(Notice{std::make_unique<Message>(), MPI_REQUEST_NULL});
    notice.message->header = {};
    notice.message->header.version = kVersion;
    notice.message->header.kind = kind;
    notice.message->header.code = failure.code;
    notice.message->header.size = static_cast<uint32_t>(text.size());
    std::memcpy(notice.message->bytes, text.data(), text.size());
    MPI_Isend(notice.message.get(), static_cast<int>(sizeof(Header) + text.size()), MPI_BYTE, peer(to),
              tag(Tag::notice), comm(), &notice.request);
  }
}

void Channel::tell_end() { send_notice(kEnd, {}); }

void Channel::check_peers(uint64_t moved_at, uint64_t time) {
  if (!is_open_ || broken_) return;
  for (uint32_t rank = 0; rank < count(); ++rank) {
    const uint32_t peer = world_rank(rank);
    if (rank == rank_ || peer == kNotInWorld || !process().peers.is_silent(peer, moved_at, time)) continue;
    const auto check = [&](const Operation& operation) {
      if (!operation.awaits(rank)) return false;
      fail({HALYARD_UNAVAILABLE, operation.text() + " of " + name() + " waited for rank " +
                                     std::to_string(rank) + ", " + process().peers.text(peer) +
                                     "; see the messages of that rank"},
           true);
      return true;
    };
    if (is_started_ && !queue_.empty() && check(*queue_.front())) return;
    for (const std::unique_ptr<Operation>& operation : direct_)
      if (check(*operation)) return;
  }
}

void Channel::add(std::unique_ptr<Operation> operation) {
  operation->added = now();
  if (!is_direct(*operation)) return queue_.push_back(std::move(operation));
  direct_.push_back(std::move(operation));
}

bool Channel::moves_bytes() const {
  if (is_started_ && !queue_.empty() && queue_.front()->moves_bytes()) return true;
  return std::any_of(direct_.begin(), direct_.end(),
                     [](const std::unique_ptr<Operation>& each) { return each->moves_bytes(); });
}

void Channel::forget(const Operation& operation) {
  const auto forget_in = [&](auto& operations) {
    for (const std::unique_ptr<Operation>& each : operations)
      if (each.get() == &operation) each->ended = nullptr;
  };
  forget_in(queue_);
  forget_in(direct_);
  for (const Draining& draining : draining_)
    if (draining.operation.get() == &operation) draining.operation->ended = nullptr;
}

void Channel::end(std::unique_ptr<Operation> operation) {
  if (operation->ended) *operation->ended = true;
  if (const halyard_collective_t* const collective = operation->collective())
    process().completions.push_back({*collective, operation->is_done() ? Failure() : broken_});
  if (!operation->is_done()) leftovers_.push_back(std::move(operation));  // its sends may be under way
}

Failure Channel::stop_of(const Operation& operation) const {
  const halyard_collective_t* const collective = operation.collective();
  if (!collective) return {};
  const channel::Stop stop = channel::stop_of(*collective, now() - operation.added);
  if (!stop) return {};
  return {stop.code, operation.text() + " of " + name() + " " + stop.text + awaited(operation)};
}

std::string Channel::awaited(const Operation& operation) const {
  const auto after = [](const char* words, const std::string& what) {
    return what.empty() ? std::string() : words + what;
  };
  if (is_direct(operation) || &operation == queue_.front().get()) return after(" for ", operation.awaited());
  const Operation& first = *queue_.front();
  return " behind " + first.text() + after(" which waits for ", first.awaited());
}

bool Channel::check_stops() {
  Failure failure;
  for (const std::unique_ptr<Operation>& operation : queue_)
    if (!failure) failure = stop_of(*operation);
  for (const std::unique_ptr<Operation>& operation : direct_)
    if (!failure) failure = stop_of(*operation);
  if (!failure) return false;
  fail(std::move(failure), true);
  return true;
}

bool Channel::look_at_notices() {
  for (size_t i = 0; i < notices_.size();) {
    int is_sent = 0;
    if (MPI_Test(&notices_[i].request, &is_sent, MPI_STATUS_IGNORE) != MPI_SUCCESS || is_sent) {
      notices_[i] = std::move(notices_.back());
      notices_.pop_back();
    } else {
      ++i;
    }
  }
  if (notice_request_ == MPI_REQUEST_NULL) return false;
  int has_come = 0;
  MPI_Status status;
  if (MPI_Test(&notice_request_, &has_come, &status) != MPI_SUCCESS || !has_come) return false;
  if (is_closed_ && !has_operations()) return true;  // it has been cancelled, or nobody needs it
  // A channel that this rank has closed had the same number. Its other ranks may still fail. Such a rank
  // keeps the number, so it is not in this channel.
  if (!is_member(static_cast<uint32_t>(status.MPI_SOURCE))) {
    receive_notice();
    return true;
  }
  const Header& header = notice_->header;
  if (header.version == kVersion && header.kind == kEnd) {
    const uint32_t peer = fabric_.world_ranks[static_cast<size_t>(status.MPI_SOURCE)];
    if (peer != kNotInWorld) process().peers.announce_end(peer);
    receive_notice();
    return true;
  }
  // A failure without a code would count as success.
  if (header.version != kVersion || header.kind != kNotice || header.code == HALYARD_OK) {
    fail({HALYARD_INCOMPATIBLE, "rank " + std::to_string(status.MPI_SOURCE) + " has sent a notice to " +
                                    name() +
                                    " that is none of this provider's; use one build on all machines"},
         false);
    return true;
  }
  const uint32_t size = std::min<uint32_t>(header.size, kInline);
  fail({header.code, std::string(reinterpret_cast<const char*>(notice_->bytes), size)}, false);
  return true;
}

// Whether a rank that may still be running is sending bytes into the memory of the operation.
bool Channel::may_receive(const Operation& operation) const {
  for (uint32_t rank = 0; rank < count(); ++rank) {
    const uint32_t peer = world_rank(rank);
    if ((peer == kNotInWorld || !process().peers.is_gone(peer)) && operation.receives_from(rank)) return true;
  }
  return false;
}

bool Channel::drain() {
  bool moved = false;
  for (size_t i = 0; i < draining_.size();) {
    Draining& draining = draining_[i];
    if (draining.operation->left() == Operation::Left::receives &&
        (now() < draining.until || may_receive(*draining.operation))) {
      ++i;
      continue;
    }
    moved = true;
    end(std::move(draining.operation));
    draining_.erase(draining_.begin() + static_cast<ptrdiff_t>(i));
  }
  std::erase_if(leftovers_,
                [](const auto& operation) { return operation->left() == Operation::Left::nothing; });
  return moved;
}

bool Channel::advance() {
  if (failing_ && !broken_) fail(std::exchange(failing_, {}), true);
  failing_ = {};
  bool moved = drain();
  if (!is_open_ && !broken_) return check_stops() || moved;
  if (is_open_ && count() > 1 && look_at_notices()) moved = true;
  while (!broken_ && !queue_.empty()) {
    Operation& first = *queue_.front();
    if (!is_started_) {
      is_started_ = true;
      first.start();
      moved = true;
    }
    if (!first.is_done() && first.advance()) moved = true;
    if (first.failure()) {
      fail(first.failure(), true);
    } else if (first.is_done()) {
      std::unique_ptr<Operation> ended = std::move(queue_.front());
      queue_.pop_front();
      is_started_ = false;
      end(std::move(ended));
      moved = true;
    } else {
      break;
    }
  }
  for (size_t i = 0; !broken_ && i < direct_.size();) {
    Operation& operation = *direct_[i];
    if (operation.advance()) moved = true;
    if (operation.failure()) {
      fail(operation.failure(), true);
    } else if (operation.is_done()) {
      std::unique_ptr<Operation> ended = std::move(direct_[i]);
      direct_.erase(direct_.begin() + static_cast<ptrdiff_t>(i));
      end(std::move(ended));
      moved = true;
    } else {
      ++i;
    }
  }
  if (!broken_ && check_stops()) moved = true;
  if (broken_ && (!queue_.empty() || !direct_.empty())) {  // for operations that were added after the failure
    Failure failure = std::move(broken_);
    broken_ = {};
    fail(std::move(failure), false);
    moved = true;
  }
  give_number_back();
  return moved;
}

void Channel::fail(Failure failure, bool tells) {
  if (broken_) return;
  broken_ = std::move(failure);
  if (tells && is_open_ && count() > 1) send_notice(kNotice, broken_);
  std::vector<std::unique_ptr<Operation>> ended;
  for (std::unique_ptr<Operation>& operation : queue_) ended.push_back(std::move(operation));
  for (std::unique_ptr<Operation>& operation : direct_) ended.push_back(std::move(operation));
  queue_.clear();
  direct_.clear();
  is_started_ = false;
  for (std::unique_ptr<Operation>& operation : ended) {
    operation->broken(broken_);
    operation->cancel();
    draining_.push_back({std::move(operation), now() + kDrainNs});
  }
  drain();
}

void Channel::close() {
  is_closed_ = true;
  give_number_back();
}

void Channel::stop_listening() {
  if (notice_request_ == MPI_REQUEST_NULL) return;
  MPI_Cancel(&notice_request_);
  int has_ended = 0;  // not if a notice is just arriving
  MPI_Test(&notice_request_, &has_ended, MPI_STATUS_IGNORE);
}

// A channel that has failed keeps its number, because other ranks may still send it their notices.
void Channel::give_number_back() {
  if (!is_closed_ || !has_number_ || has_operations()) return;
  stop_listening();
  if (notice_request_ != MPI_REQUEST_NULL) return;
  has_number_ = false;
  if (!broken_) fabric_.taken.reset(number_);
}

}  // namespace halyard::mpi
