// Bytes that submit collectives and splits on channels of the MPI provider, stop, fail and close them, and
// decide what arrives from the other ranks and when: what an honest rank would send (the mirror of what was
// sent to it), with some bytes changed, or notices and ends. Every collective ends exactly once, does not use
// its buffers afterwards, and does not succeed after a rank of its channel has said that it failed. If
// everything arrives, every collective ends; if it arrives unchanged, a receive gets the bytes of its send.
// Open channels have different numbers. A channel that is closed can be destroyed in the end.
#include <mpi.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "channel.h"
#include "collective.h"
#include "direct.h"
#include "fuzzing.h"
#include "halyard/channel.hpp"
#include "pause.h"
#include "split.h"

using namespace halyard;
using namespace halyard::mpi;

namespace {

struct Request {
  uint8_t* target = nullptr;  // null: a send
  size_t size = 0;
  int source = 0;
  int tag = 0;
  size_t place = 0;         // among the receives of the source and tag
  bool is_matched = false;  // cannot be cancelled
  bool is_done = false;
  bool is_gone = false;
};

// Everything that MPI knows, and the clock.
struct World {
  std::vector<Request> requests;
  std::map<std::pair<int, int>, std::vector<std::vector<uint8_t>>> sent;  // by target and tag
  std::map<std::pair<int, int>, size_t> receives;                         // by source and tag
  std::function<void()> before_test;                                      // called in MPI_Testsome
  uint64_t time = 1;
};
World* world = nullptr;

int begin(Request request, MPI_Request* out) {
  *out = static_cast<int>(world->requests.size());
  world->requests.push_back(request);
  return MPI_SUCCESS;
}

class Program {
 public:
  Program(std::span<const uint8_t> bytes, World& state) : bytes_(bytes), world_(state) {}

  void run() {
    const uint32_t count = 2 + next() % 3, rank = next() % count;
    process_.peers.begin(rank, count);
    fabric_.process = &process_;
    fabric_.comm = 1;
    fabric_.rank = rank;
    fabric_.count = count;
    for (uint32_t i = 0; i < count; ++i) fabric_.world_ranks.push_back(i);
    fabric_.root = Channel::root_of(fabric_);
    open_.push_back(fabric_.root.get());
    for (int steps = 0; !bytes_.empty() && steps < 200; ++steps) step();
    finish();
  }

 private:
  struct Submitted {
    const Channel* channel = nullptr;
    std::vector<uint8_t> send, receive;
    uint32_t stop = 0;
    uint32_t source = HALYARD_NO_RANK;
    size_t place = 0;  // among the receives from the source
    int ends = 0;
    bool must_fail = false;
  };

  uint8_t next() {
    if (bytes_.empty()) return 0;
    const uint8_t byte = bytes_.front();
    bytes_ = bytes_.subspan(1);
    return byte;
  }

  void step() {
    switch (next() % 16) {
      case 0:
      case 1:
        return submit();
      case 2:
        return split();
      case 3:
      case 4:
        return deliver(true);
      case 5:
        return deliver(false);
      case 8:
        return match();
      case 9:
        return close(next());
      case 10:
        return fail(*open_[next() % open_.size()]);
      case 11:
        if (!submitted_.empty()) submitted_[next() % submitted_.size()]->stop = 1 + next() % 15;
        return;
      case 12:
        tests_left_ = 1 + next() % 8;
        return;
      case 6:
        world_.time += uint64_t{next()} * 10'000'000;
        return advance();
      default:
        return advance();
    }
  }

  void submit() {
    Channel& channel = *open_[next() % open_.size()];
    if (channel.broken() || !channel.has_ranks() || submitted_.size() >= 24) return;

    const uint32_t count = channel.count();
    halyard_collective_t collective = {};
    collective.struct_size = sizeof collective;
    collective.kind = next() % 9;
    collective.element = next() % 16;
    collective.reduction = channel::reduces(collective.kind) ? 1 + next() % 5 : 0;
    const uint32_t other = next() % count;
    collective.root = other;
    collective.target = collective.source = HALYARD_NO_RANK;
    if (collective.kind == HALYARD_COLLECTIVE_SEND || collective.kind == HALYARD_COLLECTIVE_SEND_RECV)
      collective.target = other;
    if (collective.kind == HALYARD_COLLECTIVE_RECV || collective.kind == HALYARD_COLLECTIVE_SEND_RECV)
      collective.source = other;
    if (channel::is_point_to_point(collective.kind) && count > 1 && other == channel.rank()) return;
    const uint8_t size = next();
    collective.element_count = size < 250 ? size % 16 : (size - 248) * 9000;
    if (collective.kind == HALYARD_COLLECTIVE_ALL_TO_ALL) collective.element_count *= count;
    const uint64_t block = collective.element_count * channel::element_size(collective.element);
    auto& own = *submitted_.emplace_back(std::make_unique<Submitted>());
    own.channel = &channel;
    const auto value = static_cast<uint8_t>(submitted_.size());
    own.send.assign(block * (collective.kind == HALYARD_COLLECTIVE_REDUCE_SCATTER ? count : 1), value);
    own.receive.assign(block * (collective.kind == HALYARD_COLLECTIVE_ALL_GATHER ? count : 1), 0);
    collective.send = own.send.data();
    collective.receive = own.receive.data();
    collective.number = submitted_.size();
    collective.timeout_ns = next() % 4 == 0 ? 1'000'000'000 : 0;
    collective.stop = &own.stop;
    collective.user = &own;
    if (collective.source != HALYARD_NO_RANK) {
      own.source = other;
      own.place = received_[{&channel, other}]++;
    }
    if (collective.target != HALYARD_NO_RANK) sent_[{&channel, other}].push_back(value);
    channel.add(channel::is_point_to_point(collective.kind) ? make_direct(channel, collective)
                                                            : make_collective(channel, collective));
  }

  void split() {
    if (open_.size() >= 4) return;
    Channel& base = *open_[next() % open_.size()];
    if (base.broken() || !base.has_ranks()) return;
    const uint8_t color = next();
    Channel* child = nullptr;
    if (color % 4 != 3) {
      children_.push_back(std::make_unique<Channel>(fabric_, base.child_label()));
      child = children_.back().get();
      open_.push_back(child);
    }
    base.add(make_split(base, color % 4 == 3 ? -1 : color % 4, next() % 4, child, {}));
  }

  void fail(Channel& channel) {
    channel.fail_soon({HALYARD_ABORTED, "this rank fails"});
    must_fail(&channel);
  }

  void must_fail(const Channel* channel) {
    for (const auto& own : submitted_) own->must_fail |= own->channel == channel && own->ends == 0;
  }

  void close(size_t which) {
    const size_t at = which % open_.size();
    if (at == 0) return;  // of all ranks
    closing_.push_back(open_[at]);
    open_.erase(open_.begin() + static_cast<ptrdiff_t>(at));
    closing_.back()->close();
  }

  void advance() {
    is_advancing_ = true;
    world_.before_test = [this] {
      if (tests_left_ == 0) return;
      --tests_left_;
      if (tests_left_ == 0) deliver(true);
    };
    for (size_t i = 0; i < process_.channels.size(); ++i)
      if (process_.channels[i]->has_work() || process_.channels[i]->is_open())
        process_.channels[i]->advance();
    world_.before_test = nullptr;
    is_advancing_ = false;
    for (const Process::Completion& each : std::exchange(process_.completions, {}))
      end(*static_cast<Submitted*>(each.collective.user), each);
    std::erase_if(closing_,
                  [this](const Channel* channel) { return channel->is_idle() && destroy(channel); });
    std::set<int> numbers;
    for (const Channel* channel : open_)
      if (channel->is_open() && !numbers.insert(channel->tag(Tag::header)).second)
        fuzz::finding("two open channels have one number");
  }

  void end(Submitted& own, const Process::Completion& completion) {
    if (++own.ends > 1) fuzz::finding("a collective ends twice");
    if (own.must_fail && !completion.failure) fuzz::finding("a collective succeeds though a rank has failed");
    if (own.source != HALYARD_NO_RANK && !completion.failure && is_honest_) {
      const std::vector<uint8_t>& sent = sent_[{own.channel, own.source}];
      if (own.place < sent.size() && std::count(own.receive.begin(), own.receive.end(), sent[own.place]) !=
                                         static_cast<ptrdiff_t>(own.receive.size()))
        fuzz::finding("a receive has bytes of another send");
    }
    own.send = {};  // so that a later use is one of freed memory
    own.receive = {};
  }

  bool destroy(const Channel* channel) {
    std::erase(broken_numbers_, channel);
    for (const auto& own : submitted_) {
      if (own->channel != channel) continue;
      if (own->ends == 0) fuzz::finding("a channel is destroyed while a collective is under way");
      own->channel = nullptr;
    }
    std::erase_if(sent_, [&](const auto& each) { return each.first.first == channel; });
    std::erase_if(received_, [&](const auto& each) { return each.first.first == channel; });
    std::erase_if(children_, [&](const auto& child) { return child.get() == channel; });
    return true;
  }

  // The requests to receive that have not ended.
  std::vector<size_t> awaited(bool with_notices) const {
    std::vector<size_t> found;
    for (size_t i = 0; i < world_.requests.size(); ++i) {
      const Request& each = world_.requests[i];
      if (each.target && !each.is_done && !each.is_gone && (with_notices || !is_notice(each)))
        found.push_back(i);
    }
    return found;
  }
  static bool is_notice(const Request& request) {
    return request.tag % kTags == static_cast<int>(Tag::notice);
  }

  // A message begins to arrive: the receive cannot be cancelled any more.
  void match() {
    const std::vector<size_t> all = awaited(true);
    if (!all.empty()) world_.requests[all[next() % all.size()]].is_matched = true;
  }

  // One message arrives, from those that are awaited.
  void deliver(bool changes) {
    const std::vector<size_t> all = awaited(changes);
    if (!all.empty()) deliver_to(world_.requests[all[next() % all.size()]], changes);
  }

  void deliver_to(Request& request, bool changes) {
    std::vector<uint8_t> message(sizeof(Header));
    int source = request.source;
    if (is_notice(request)) {
      source = static_cast<int>((fabric_.rank + 1 + next() % (fabric_.count - 1)) % fabric_.count);
      Header header = {};
      header.version = kVersion;
      header.kind = next() % 4 == 0 ? kEnd : kNotice;
      header.code = next() % 20;
      header.size = next();
      message.resize(sizeof header + header.size, 'n');
      std::memcpy(message.data(), &header, sizeof header);
    } else if (const auto& mirror = world_.sent[{source, request.tag}]; request.place < mirror.size()) {
      message = mirror[request.place];
    } else {
      is_honest_ = false;
      if (request.size < sizeof(Header)) message.assign(request.size, 0);
    }
    if (changes)
      for (size_t i = next() % 4; i > 0; --i) {
        const size_t at = next() % 96;
        if (at >= message.size()) continue;
        is_honest_ = false;
        message[at] = next();
      }
    message.resize(std::min(message.size(), request.size));
    if (is_notice(request) && message.size() >= sizeof(Header)) {
      Header header;
      std::memcpy(&header, message.data(), sizeof header);
      if (header.kind != kEnd) fails_from_now(request.tag / kTags, source);
    }
    std::copy(message.begin(), message.end(), request.target);
    request.source = source;
    request.is_done = true;
  }

  // A channel reads notices of its ranks before other messages, so nothing that is under way on the channel
  // of this number succeeds any more, unless the notice arrives after the channel has looked.
  void fails_from_now(int number, int source) {
    for (const Channel* channel : open_) {
      if (!channel->is_open() || channel->tag(Tag::header) / kTags != number) continue;
      bool is_member = false;
      for (uint32_t rank = 0; rank < channel->count(); ++rank) is_member |= channel->peer(rank) == source;
      if (!is_member) continue;
      broken_numbers_.push_back(channel);
      if (!is_advancing_) must_fail(channel);
    }
  }

  bool all_have_ended() const {
    return std::all_of(submitted_.begin(), submitted_.end(), [](const auto& own) { return own->ends == 1; });
  }

  void finish() {
    // All that is awaited arrives.
    for (int i = 0; i < 1000 && (i < 4 || !all_have_ended()); ++i) {
      for (const size_t each : awaited(false)) deliver_to(world_.requests[each], false);
      advance();
    }
    if (!all_have_ended()) fuzz::finding("a collective never ends");
    for (const Channel* channel : broken_numbers_)
      if (!channel->broken()) fuzz::finding("a channel works on though a rank has failed");
    // Splits are left, and notices that have begun to arrive.
    for (Channel* channel : process_.channels)
      if (channel->has_work()) channel->fail_soon({HALYARD_ABORTED, "the program ends"});
    while (open_.size() > 1) close(1);
    for (int i = 0; i < 4; ++i) {
      for (const size_t each : awaited(true))
        if (world_.requests[each].is_matched) deliver_to(world_.requests[each], false);
      advance();
      world_.time += 2'000'000'000;
    }
    if (!closing_.empty()) fuzz::finding("a closed channel never ends");
    fabric_.root->close();
  }

  std::span<const uint8_t> bytes_;
  World& world_;
  Process process_;
  std::vector<std::unique_ptr<Submitted>> submitted_;
  Fabric fabric_;
  std::vector<std::unique_ptr<Channel>> children_;
  std::vector<Channel*> open_;
  std::vector<Channel*> closing_;
  // By channel and peer: the value of each send, and the number of receives.
  std::map<std::pair<const Channel*, uint32_t>, std::vector<uint8_t>> sent_;
  std::map<std::pair<const Channel*, uint32_t>, size_t> received_;
  bool is_honest_ = true;  // nothing that arrived was changed or made up
  bool is_advancing_ = false;
  size_t tests_left_ = 0;  // the MPI_Testsome at which a message arrives; 0: none
  std::vector<const Channel*> broken_numbers_;
};

}  // namespace

namespace halyard::mpi {
uint64_t now() { return world->time; }
}  // namespace halyard::mpi

extern "C" {

int MPI_Isend(const void* bytes, int count, MPI_Datatype, int target, int tag, MPI_Comm,
              MPI_Request* request) {
  const auto* first = static_cast<const uint8_t*>(bytes);
  world->sent[{target, tag}].emplace_back(first, first + count);
  return begin({.source = target, .tag = tag, .is_done = true}, request);
}
int MPI_Issend(const void* bytes, int count, MPI_Datatype type, int target, int tag, MPI_Comm comm,
               MPI_Request* request) {
  return MPI_Isend(bytes, count, type, target, tag, comm, request);
}
int MPI_Irecv(void* bytes, int count, MPI_Datatype, int source, int tag, MPI_Comm, MPI_Request* request) {
  static uint8_t nowhere;
  return begin({.target = bytes ? static_cast<uint8_t*>(bytes) : &nowhere,
                .size = static_cast<size_t>(count),
                .source = source,
                .tag = tag,
                .place = world->receives[{source, tag}]++},
               request);
}
int MPI_Test(MPI_Request* request, int* is_done, MPI_Status* status) {
  *is_done = 1;
  if (*request == MPI_REQUEST_NULL) return MPI_SUCCESS;
  Request& found = world->requests[static_cast<size_t>(*request)];
  *is_done = found.is_done || found.is_gone;
  if (!*is_done) return MPI_SUCCESS;
  if (status) status->MPI_SOURCE = found.source;
  *request = MPI_REQUEST_NULL;
  return MPI_SUCCESS;
}
int MPI_Testsome(int count, MPI_Request requests[], int* done, int indices[], MPI_Status*) {
  if (world->before_test) world->before_test();
  *done = 0;
  for (int i = 0; i < count; ++i) {
    int is_done = 0;
    MPI_Test(&requests[i], &is_done, nullptr);
    if (is_done) indices[(*done)++] = i;
  }
  return MPI_SUCCESS;
}
int MPI_Cancel(MPI_Request* request) {
  if (*request == MPI_REQUEST_NULL) return MPI_SUCCESS;
  Request& found = world->requests[static_cast<size_t>(*request)];
  found.is_gone = found.is_gone || (!found.is_matched && !found.is_done);
  return MPI_SUCCESS;
}
int MPI_Error_string(int, char* text, int* size) {
  text[0] = 0;
  *size = 0;
  return MPI_SUCCESS;
}
int MPI_Comm_size(MPI_Comm, int* size) {
  *size = 1;
  return MPI_SUCCESS;
}
int MPI_Allgather(const void*, int, MPI_Datatype, void*, int, MPI_Datatype, MPI_Comm) { return 1; }

}  // extern "C"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  World state;
  world = &state;
  Program({data, size}, state).run();
  world = nullptr;
  return 0;
}
