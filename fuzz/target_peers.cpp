// Bytes that submit collectives and splits on a channel of the MPI provider, and decide what arrives from the
// other ranks and when: what an honest rank would send (the mirror of what was sent to it), with some bytes
// changed, or notices and ends. Every collective ends exactly once, writes to its own buffers alone, and does
// not succeed after a rank has said that it failed. Open channels have different numbers.
#include <mpi.h>

#include <algorithm>
#include <cstring>
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
  bool is_done = false;
  bool is_gone = false;
};

// Everything that MPI knows, and the clock.
struct World {
  std::vector<Request> requests;
  std::map<std::pair<int, int>, std::vector<uint8_t>> sent;  // the last message by target and tag
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
    switch (next() % 8) {
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
    own.send.assign(block * (collective.kind == HALYARD_COLLECTIVE_REDUCE_SCATTER ? count : 1), 3);
    own.receive.assign(block * (collective.kind == HALYARD_COLLECTIVE_ALL_GATHER ? count : 1), 0);
    collective.send = own.send.data();
    collective.receive = own.receive.data();
    collective.number = submitted_.size();
    collective.timeout_ns = next() % 4 == 0 ? 1'000'000'000 : 0;
    collective.user = &own;
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

  void advance() {
    for (size_t i = 0; i < process_.channels.size(); ++i)
      if (process_.channels[i]->has_work() || process_.channels[i]->is_open())
        process_.channels[i]->advance();
    for (const Process::Completion& each : std::exchange(process_.completions, {})) {
      auto& own = *static_cast<Submitted*>(each.collective.user);
      if (++own.ends > 1) fuzz::finding("a collective ends twice");
      if (own.must_fail && !each.failure) fuzz::finding("a collective succeeds though a rank has failed");
    }
    std::set<int> numbers;
    for (const Channel* channel : open_)
      if (channel->is_open() && !numbers.insert(channel->tag(Tag::header)).second)
        fuzz::finding("two open channels have one number");
  }

  // One message arrives, from those that are awaited.
  void deliver(bool changes) {
    std::vector<size_t> awaited;
    for (size_t i = 0; i < world_.requests.size(); ++i)
      if (!world_.requests[i].is_done && !world_.requests[i].is_gone && world_.requests[i].target)
        awaited.push_back(i);
    if (awaited.empty()) return;
    Request& request = world_.requests[awaited[next() % awaited.size()]];
    const bool is_notice = request.tag % kTags == static_cast<int>(Tag::notice);
    if (is_notice && !changes) return;
    std::vector<uint8_t> message(sizeof(Header));
    int source = request.source;
    if (is_notice) {
      source = static_cast<int>((fabric_.rank + 1 + next() % (fabric_.count - 1)) % fabric_.count);
      Header header = {};
      header.version = kVersion;
      header.kind = next() % 4 == 0 ? kEnd : kNotice;
      header.code = next() % 20;
      header.size = next();
      message.resize(sizeof header + header.size, 'n');
      std::memcpy(message.data(), &header, sizeof header);
    } else if (const auto mirror = world_.sent.find({source, request.tag}); mirror != world_.sent.end()) {
      message = mirror->second;
    } else if (request.size < sizeof(Header)) {
      message.assign(request.size, 0);
    }
    if (changes)
      for (size_t i = next() % 4; i > 0; --i) {
        const size_t at = next() % 96;
        if (at < message.size()) message[at] = next();
      }
    message.resize(std::min(message.size(), request.size));
    if (is_notice && message.size() >= sizeof(Header)) {
      Header header;
      std::memcpy(&header, message.data(), sizeof header);
      if (header.kind != kEnd) fails_from_now(request.tag / kTags);
    }
    std::copy(message.begin(), message.end(), request.target);
    request.source = source;
    request.is_done = true;
  }

  // A channel reads notices before other messages, so nothing that is under way on the channel of this number
  // succeeds any more.
  void fails_from_now(int number) {
    for (const Channel* channel : open_) {
      if (!channel->is_open() || channel->tag(Tag::header) / kTags != number) continue;
      broken_numbers_.push_back(channel);
      for (const auto& own : submitted_) own->must_fail |= own->channel == channel && own->ends == 0;
    }
  }

  void finish() {
    // All that is awaited arrives, then the channels fail, then the time passes in which bytes may still
    // arrive.
    for (int i = 0; i < 50; ++i) {
      for (size_t k = 0; k < world_.requests.size(); ++k) deliver(false);
      advance();
    }
    for (Channel* channel : open_)
      if (channel->has_work()) channel->fail_soon({HALYARD_ABORTED, "the program ends"});
    for (int i = 0; i < 4; ++i) {
      advance();
      world_.time += 2'000'000'000;
    }
    for (const auto& own : submitted_)
      if (own->ends != 1) fuzz::finding("a collective never ends");
    for (const Channel* channel : broken_numbers_)
      if (!channel->broken()) fuzz::finding("a channel works on though a rank has failed");
    for (Channel* channel : open_) channel->close();
  }

  std::span<const uint8_t> bytes_;
  World& world_;
  Process process_;
  std::vector<std::unique_ptr<Submitted>> submitted_;
  Fabric fabric_;
  std::vector<std::unique_ptr<Channel>> children_;
  std::vector<Channel*> open_;
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
  world->sent[{target, tag}].assign(first, first + count);
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
                .tag = tag},
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
  *done = 0;
  for (int i = 0; i < count; ++i) {
    int is_done = 0;
    MPI_Test(&requests[i], &is_done, nullptr);
    if (is_done) indices[(*done)++] = i;
  }
  return MPI_SUCCESS;
}
int MPI_Wait(MPI_Request* request, MPI_Status* status) {
  int is_done = 0;
  MPI_Test(request, &is_done, status);
  if (!is_done) halyard::fuzz::finding("a wait for what will never come");
  return MPI_SUCCESS;
}
int MPI_Cancel(MPI_Request* request) {
  if (*request != MPI_REQUEST_NULL) world->requests[static_cast<size_t>(*request)].is_gone = true;
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
