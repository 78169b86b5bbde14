// Executes rounds and pairs.
#include "hal/channel/local_group.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <utility>

#include "base/tracer.h"
#include "halyard/channel.hpp"

namespace halyard::hal {

namespace {

uint64_t block_size(const halyard_collective_t& collective) {
  return collective.element_count * channel::element_size(collective.element);
}

const uint8_t* at(const void* bytes, uint64_t offset) { return static_cast<const uint8_t*>(bytes) + offset; }
uint8_t* at(void* bytes, uint64_t offset) { return static_cast<uint8_t*>(bytes) + offset; }

void copy(void* to, const void* from, uint64_t size) {
  if (size != 0 && to != from) std::memcpy(to, from, size);
}

using Parts = std::span<const LocalPart>;

// Reduces the data of all ranks, piece by piece, to all receivers: `send` may be equal to `receive`.
void reduce_to(Parts parts, std::span<void* const> receivers, uint64_t send_offset) {
  constexpr uint64_t kPiece = 16 << 10;  // bytes
  alignas(64) std::array<uint8_t, kPiece> piece;
  const halyard_collective_t& first = parts[0].collective;
  const uint32_t element = channel::element_size(first.element);
  const uint64_t size = block_size(first);
  std::vector<const void*> inputs(parts.size());
  for (uint64_t offset = 0; offset < size; offset += kPiece) {
    const uint64_t length = std::min(kPiece, size - offset);
    for (size_t i = 0; i < parts.size(); ++i) inputs[i] = at(parts[i].collective.send, send_offset + offset);
    channel::reduce(first.element, first.reduction, inputs, piece.data(), length / element);
    for (void* receiver : receivers) std::memcpy(at(receiver, offset), piece.data(), length);
  }
}

void carry_out_round(Parts parts) {
  const halyard_collective_t& first = parts[0].collective;
  const uint64_t block = block_size(first);
  const size_t count = parts.size();
  std::vector<void*> receivers;
  for (const LocalPart& part : parts) receivers.push_back(part.collective.receive);
  switch (first.kind) {
    case HALYARD_COLLECTIVE_ALL_GATHER:
      for (const LocalPart& to : parts)
        for (size_t i = 0; i < count; ++i)
          copy(at(to.collective.receive, i * block), parts[i].collective.send, block);
      break;
    case HALYARD_COLLECTIVE_ALL_REDUCE:
      reduce_to(parts, receivers, 0);
      break;
    case HALYARD_COLLECTIVE_ALL_TO_ALL:
      for (size_t to = 0; to < count; ++to)
        for (size_t from = 0; from < count; ++from)
          copy(at(receivers[to], from * (block / count)),
               at(parts[from].collective.send, to * (block / count)), block / count);
      break;
    case HALYARD_COLLECTIVE_BROADCAST:
      for (void* to : receivers) copy(to, parts[first.root].collective.send, block);
      break;
    case HALYARD_COLLECTIVE_REDUCE:
      reduce_to(parts, {&receivers[first.root], 1}, 0);
      break;
    default:  // REDUCE_SCATTER
      for (size_t i = 0; i < count; ++i) reduce_to(parts, {&receivers[i], 1}, i * block);
      break;
  }
}

bool agree(const LocalPart& a, const LocalPart& b) {
  const halyard_collective_t& x = a.collective;
  const halyard_collective_t& y = b.collective;
  return a.is_split == b.is_split &&
         (a.is_split || (x.kind == y.kind && x.reduction == y.reduction && x.element == y.element &&
                         x.root == y.root && x.element_count == y.element_count));
}

std::string text_of(const LocalPart& part) {
  return part.is_split ? "split" : channel::text_of(part.collective);
}

}  // namespace

Status stop_of(const halyard_collective_t& collective, uint64_t came, std::string_view where,
               std::string_view awaited) {
  const channel::Stop stop = channel::stop_of(collective, Tracer::now() - came);
  if (!stop) return {};
  return {static_cast<Code>(stop.code),
          fmt::format("{}, number {} of {}, {} for {}", channel::text_of(collective), collective.number,
                      where, stop.text, awaited)};
}

void LocalOutcome::carry_out() {
  for (const LocalRound& round : rounds) {
    carry_out_round(round.parts);
    for (const LocalPart& part : round.parts) completions.push_back({part.collective, {}});
  }
  for (const Copy& each : copies) copy(each.to, each.from, each.size);
  for (const Copy& each : copies) {
    each.sender->end_part();
    each.receiver->end_part();
  }
  for (const std::shared_ptr<LocalTransfer>& transfer : ended) transfer->end_part();
  for (Completion& done : completions)
    done.collective.completed(done.collective.user, std::move(done.status).release());
  rounds.clear();
  copies.clear();
  ended.clear();
  completions.clear();
}

void LocalGroup::fail(Status status, LocalOutcome& outcome) {
  if (broken_) return;
  broken_ = std::move(status);
  for (const LocalRound& round : rounds_) {
    for (const LocalPart& part : round.parts) {
      if (!part.has_come) continue;
      if (!part.is_split) {
        outcome.completions.push_back({part.collective, broken_});
      } else if (part.child) {
        part.child->broken = broken_;
        outcome.resolved.push_back(part.child);
      }
    }
  }
  rounds_.clear();
  for (const auto& [ranks, halves] : unmatched_) {
    for (const Half& half : halves) {
      half.transfer->failure = broken_;
      outcome.ended.push_back(half.transfer);
    }
  }
  unmatched_.clear();
}

std::string LocalGroup::missing(const LocalRound& round) const {
  std::string ranks;
  for (size_t i = 0; i < round.parts.size(); ++i)
    if (!round.parts[i].has_come) ranks += fmt::format("{}{}", ranks.empty() ? "" : ", ", i);
  return ranks;
}

void LocalGroup::leave(uint32_t rank, LocalOutcome& outcome) {
  members_[rank].has_left = true;
  const bool is_awaited =
      std::ranges::any_of(rounds_, [&](const LocalRound& round) { return !round.parts[rank].has_come; }) ||
      std::ranges::any_of(unmatched_, [&](const auto& known) {
        return !known.second.empty() && (known.first.first == rank || known.first.second == rank);
      });
  if (is_awaited)
    fail(
        {Code::ABORTED, fmt::format("rank {} has closed channel '{}', and others wait for it", rank, label_)},
        outcome);
}

void LocalGroup::add(uint32_t rank, LocalPart part, LocalOutcome& outcome) {
  Member& member = members_[rank];
  const uint64_t first = rounds_.empty() ? member.next : rounds_.front().number;
  const uint64_t number = member.next++;
  while (rounds_.empty() || rounds_.back().number < number) {
    LocalRound& round = rounds_.emplace_back();
    round.number = first + (rounds_.size() - 1);
    round.parts.resize(members_.size());
  }
  LocalRound& round = rounds_[number - rounds_.front().number];
  part.has_come = true;
  if (part.came == 0) part.came = Tracer::now();
  const auto other = std::ranges::find_if(round.parts, &LocalPart::has_come);
  const bool agrees = other == round.parts.end() || agree(*other, part);
  const auto other_rank = other - round.parts.begin();
  round.parts[rank] = part;
  ++round.come;
  if (!agrees)
    return fail(
        {Code::INVALID_ARGUMENT,
         fmt::format("expected the same collective of every rank as number {} of channel '{}', found {} of "
                     "rank {} and {} of rank {}; compile all ranks from one program",
                     number, label_, text_of(round.parts[static_cast<size_t>(other_rank)]), other_rank,
                     text_of(part), rank)},
        outcome);
  if (round.come < members_.size()) {
    for (size_t i = 0; i < members_.size(); ++i)
      if (members_[i].has_left && !round.parts[i].has_come)
        return fail({Code::ABORTED,
                     fmt::format("rank {} has closed channel '{}' before {}, number {} of its collectives", i,
                                 label_, text_of(part), number)},
                    outcome);
    return;
  }
  // Every rank takes part in every round, in order, so the first round is complete first.
  LocalRound complete = std::move(rounds_.front());
  rounds_.pop_front();
  if (part.is_split) return resolve(complete, outcome);
  outcome.rounds.push_back(std::move(complete));
}

void LocalGroup::resolve(const LocalRound& round, LocalOutcome& outcome) {
  std::map<int32_t, std::vector<uint32_t>> colors;
  for (uint32_t i = 0; i < round.parts.size(); ++i)
    if (round.parts[i].child) colors[round.parts[i].color].push_back(i);
  for (auto& [color, ranks] : colors) {
    std::ranges::sort(ranks, {}, [&](uint32_t rank) { return std::pair(round.parts[rank].key, rank); });
    const auto group = std::make_shared<LocalGroup>(fmt::format("{}.{}", label_, color),
                                                    static_cast<uint32_t>(ranks.size()));
    for (uint32_t i = 0; i < ranks.size(); ++i) {
      LocalMember& child = *round.parts[ranks[i]].child;
      child.group = group;
      child.rank = i;
      group->join(i);
      outcome.resolved.push_back(round.parts[ranks[i]].child);
      if (child.broken)
        group->fail({child.broken.code(), fmt::format("rank {} of channel '{}' has failed: {}", i,
                                                      group->label(), child.broken.message())},
                    outcome);
    }
  }
}

void LocalGroup::split(uint32_t rank, LocalPart part, LocalOutcome& outcome) {
  part.is_split = true;
  add(rank, part, outcome);
}

void LocalGroup::match(uint32_t source, uint32_t target, Half half, LocalOutcome& outcome) {
  std::deque<Half>& waiting = unmatched_[{source, target}];
  if (waiting.empty() || waiting.front().is_send == half.is_send) {
    waiting.push_back(std::move(half));
    for (const uint32_t rank : {source, target})
      if (members_[rank].has_left)
        return fail({Code::ABORTED, fmt::format("rank {} has closed channel '{}' before {}", rank, label_,
                                                channel::text_of(waiting.back().transfer->collective))},
                    outcome);
    return;
  }
  Half other = std::move(waiting.front());
  waiting.pop_front();
  const Half& send = half.is_send ? half : other;
  const Half& receive = half.is_send ? other : half;
  const halyard_collective_t& from = send.transfer->collective;
  const halyard_collective_t& to = receive.transfer->collective;
  if (from.element != to.element || from.element_count != to.element_count) {
    waiting.push_front(std::move(other));
    waiting.push_front(std::move(half));
    return fail(
        {Code::INVALID_ARGUMENT,
         fmt::format("expected ranks {} and {} of channel '{}' to agree, found {} of the one and {} of the "
                     "other; compile all ranks from one program",
                     source, target, label_, channel::text_of(from), channel::text_of(to))},
        outcome);
  }
  outcome.copies.push_back({from.send, to.receive, block_size(from), send.transfer, receive.transfer});
}

void LocalGroup::submit(uint32_t rank, const halyard_collective_t& collective, LocalOutcome& outcome,
                        uint64_t came) {
  if (broken_) return outcome.completions.push_back({collective, broken_});
  if (!channel::is_point_to_point(collective.kind)) {
    LocalPart part;
    part.collective = collective;
    part.came = came;
    return add(rank, part, outcome);
  }
  const auto transfer = std::make_shared<LocalTransfer>();
  transfer->collective = collective;
  transfer->came = came != 0 ? came : Tracer::now();
  const bool sends = collective.target != HALYARD_NO_RANK;
  const bool receives = collective.source != HALYARD_NO_RANK;
  transfer->parts = 1u + sends + receives;
  if (!receives && collective.receive) std::memset(collective.receive, 0, block_size(collective));
  if (sends) match(rank, collective.target, {transfer, true}, outcome);
  if (receives && broken_) {
    transfer->failure = broken_;
    outcome.ended.push_back(transfer);
  } else if (receives) {
    match(collective.source, rank, {transfer, false}, outcome);
  }
  outcome.ended.push_back(transfer);  // its submission
}

bool LocalGroup::check_stops(LocalOutcome& outcome) {
  bool waits = false;
  const std::string name = fmt::format("channel '{}'", label_);
  const auto check = [&](const halyard_collective_t& collective, uint64_t came, const std::string& awaited) {
    waits = waits || collective.stop || collective.timeout_ns != 0;
    Status stop = stop_of(collective, came, name, "rank " + awaited);
    if (stop.ok()) return false;
    fail(std::move(stop), outcome);
    return true;
  };
  for (const LocalRound& round : rounds_)
    for (const LocalPart& part : round.parts)
      if (part.has_come && !part.is_split && check(part.collective, part.came, missing(round))) return false;
  for (const auto& [ranks, halves] : unmatched_)
    for (const Half& half : halves)
      if (check(half.transfer->collective, half.transfer->came,
                std::to_string(half.is_send ? ranks.second : ranks.first)))
        return false;
  return waits;
}

}  // namespace halyard::hal
