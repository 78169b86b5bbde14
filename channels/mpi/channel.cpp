// The queue, the notices and the end of a channel.
#include "channel.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "pause.h"

namespace halyard::mpi {

namespace {

// The time for which failed collectives wait for bytes that are on their way.
constexpr uint64_t kDrainNs = 1'000'000'000;

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
  is_open_ = true;
  if (is_closed_) return close();
  if (count() == 1) return;
  incoming_.resize(count());
  outgoing_.resize(count());
  notice_ = std::make_unique<Message>();
  receive_notice();
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
  const bool is_direct = operation->collective() &&
                         operation->collective()->kind >= HALYARD_COLLECTIVE_SEND &&
                         operation->collective()->kind <= HALYARD_COLLECTIVE_SEND_RECV;
  if (!is_direct) return queue_.push_back(std::move(operation));
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

bool Channel::check_stop(Operation& operation) {
  const halyard_collective_t* const collective = operation.collective();
  if (!collective) return false;
  uint32_t code = collective->stop ? __atomic_load_n(collective->stop, __ATOMIC_RELAXED) : 0;
  const bool is_late = collective->timeout_ns != 0 && now() - operation.added > collective->timeout_ns;
  if (code == 0 && !is_late) return false;
  std::string text = operation.text() + " of " + name();
  if (code == 0) {
    code = HALYARD_DEADLINE_EXCEEDED;
    text +=
        " waited longer than its time limit of " + std::to_string(collective->timeout_ns / 1'000'000) + " ms";
  } else {
    text += " was stopped while it waited";
  }
  if (const std::string awaited = operation.awaited(); !awaited.empty()) text += " for " + awaited;
  fail({static_cast<halyard_status_code_t>(code), std::move(text)}, true);
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

bool Channel::drain() {
  bool moved = false;
  for (size_t i = 0; i < draining_.size();) {
    Draining& draining = draining_[i];
    if (draining.operation->left() == Operation::Left::receives && now() < draining.until) {
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
  if (!is_open_ && !broken_) {
    for (const std::unique_ptr<Operation>& operation : direct_)
      if (check_stop(*operation)) return true;
    if (!queue_.empty() && check_stop(*queue_.front())) return true;
    return moved;
  }
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
      check_stop(first);
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
    } else if (!check_stop(operation)) {
      ++i;
    }
  }
  if (broken_ && (!queue_.empty() || !direct_.empty())) {  // for operations that were added after the failure
    Failure failure = std::move(broken_);
    broken_ = {};
    fail(std::move(failure), false);
    moved = true;
  }
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
  if (notice_request_ != MPI_REQUEST_NULL) {
    MPI_Cancel(&notice_request_);
    MPI_Wait(&notice_request_, MPI_STATUS_IGNORE);
  }
  if (is_open_ && !broken_) fabric_.taken.reset(number_);
}

}  // namespace halyard::mpi
