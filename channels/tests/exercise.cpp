// Every kind of collective, with every reduction and type, odd and empty sizes, in place, on split channels
// and on several at once, by the ranks of an MPI job or by threads of this process. Prints one line for each
// rank: hashes of all that it received, which must not depend on the provider.
//
//   exercise local N          N threads
//   exercise mpi              a rank of the job that its launcher started
//   exercise mpi late         rank 1 never comes to the second collective
//   exercise mpi dies         rank 1 kills itself after the first collective
//   exercise mpi fails        rank 1 says that it cannot go on
//   exercise mpi unreceived   rank 0 sends what nobody receives
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "hal/channel/channel.h"
#include "hal/channel/local_world.h"
#include "halyard/channel.hpp"

namespace {

using namespace halyard;
using hal::Channel;
using hal::ChannelProvider;
using hal::Place;

[[noreturn]] void give_up(const Status& status) {
  std::fprintf(stderr, "exercise: %s\n", status.text().c_str());
  std::exit(1);
}
template <typename T>
T must(Result<T> result) {
  if (!result) give_up(result.error());
  return std::move(*result);
}

// Collectives that have been submitted, and their ends.
class Waiting {
 public:
  void submit(Channel& channel, halyard_collective_t collective) {
    {
      const std::lock_guard lock(mutex_);
      ++missing_;
    }
    collective.struct_size = sizeof collective;
    collective.user = this;
    collective.completed = [](void* self, halyard_status_t status) {
      static_cast<Waiting*>(self)->end(Status::adopt(status));
    };
    const uint64_t ticket = channel.draw_ticket();
    collective.number = ticket;
    channel.at_turn(ticket, [this, collective, channel = Ref<Channel>::share(&channel)] {
      if (Status status = channel->submit(collective)) end(std::move(status));
    });
  }
  Status wait() {
    std::unique_lock lock(mutex_);
    ended_.wait(lock, [&] { return missing_ == 0; });
    return std::exchange(failure_, {});
  }

 private:
  void end(Status status) {
    const std::lock_guard lock(mutex_);
    if (!status.ok() && failure_.ok()) failure_ = std::move(status);
    --missing_;
    ended_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable ended_;
  int missing_ = 0;
  Status failure_;
};

class Hash {
 public:
  void add(const std::vector<uint8_t>& bytes) {
    for (const uint8_t byte : bytes) value_ = (value_ ^ byte) * 1099511628211u;
  }
  uint64_t value() const { return value_; }

 private:
  uint64_t value_ = 14695981039346656037u;
};

// Values that are the same everywhere: small numbers of the type, or, for integers, any bytes.
std::vector<uint8_t> values(uint32_t element, uint64_t count, uint32_t rank, uint32_t seed) {
  const uint32_t size = channel::element_size(element);
  std::vector<uint8_t> bytes(count * size);
  uint32_t state = seed * 2654435761u + rank * 40503u + 12345u;
  for (uint64_t i = 0; i < count; ++i) {
    state = state * 1664525u + 1013904223u;
    const auto small = static_cast<float>(static_cast<int32_t>(state >> 24) - 128) / 32.0f;
    uint8_t* const to = bytes.data() + i * size;
    const auto put = [&](auto value) { std::memcpy(to, &value, size); };
    switch (element) {
      case HALYARD_COLLECTIVE_FLOAT_16:
        put(static_cast<uint16_t>(channel::round_to<channel::kFloat16>(small)));
        break;
      case HALYARD_COLLECTIVE_BFLOAT_16:
        put(static_cast<uint16_t>(channel::round_to<channel::kBfloat16>(small)));
        break;
      case HALYARD_COLLECTIVE_FLOAT_32:
        put(small * 1.1f);
        break;
      case HALYARD_COLLECTIVE_FLOAT_64:
        put(static_cast<double>(small) * 1.1);
        break;
      default:
        for (uint32_t k = 0; k < size; ++k) to[k] = static_cast<uint8_t>(state >> (8 + k % 3 * 8) ^ k * 37);
        break;
    }
  }
  return bytes;
}

struct Exercise {
  Channel& channel;
  Place place;
  Hash& hash;
  uint32_t seed = 0;

  void run(halyard_collective_t collective, bool in_place = false) {
    hal::CollectiveSizes sizes = must(hal::sizes_of(collective, place, UINT64_MAX, UINT64_MAX));
    const uint32_t size = channel::element_size(collective.element);
    std::vector<uint8_t> send = values(collective.element, sizes.send / size, place.rank, ++seed);
    std::vector<uint8_t> receive(sizes.receive, 0xA5);
    collective.send = send.data();
    collective.receive = receive.data();
    if (in_place) {
      uint64_t offset = 0;
      if (collective.kind == HALYARD_COLLECTIVE_ALL_GATHER) offset = place.rank * sizes.send;
      if (collective.kind == HALYARD_COLLECTIVE_REDUCE_SCATTER) {
        receive.clear();
        collective.receive = send.data() + place.rank * sizes.receive;
      } else {
        if (receive.size() < offset + send.size()) receive.resize(offset + send.size());
        if (!send.empty()) std::memcpy(receive.data() + offset, send.data(), send.size());
        collective.receive = receive.data();
        collective.send = receive.data() + offset;
      }
    }
    collective.patience_ns = seed % 2 ? 50'000 : 0;
    Waiting waiting;
    waiting.submit(channel, collective);
    if (Status status = waiting.wait()) give_up(status);
    if (in_place && collective.kind == HALYARD_COLLECTIVE_REDUCE_SCATTER)
      receive.assign(send.begin() + static_cast<ptrdiff_t>(place.rank * sizes.receive),
                     send.begin() + static_cast<ptrdiff_t>((place.rank + 1) * sizes.receive));
    if (collective.kind != HALYARD_COLLECTIVE_REDUCE || place.rank == collective.root) hash.add(receive);
  }

  static halyard_collective_t make(uint32_t kind, uint32_t reduction, uint32_t element, uint64_t count) {
    halyard_collective_t collective = {};
    collective.kind = kind;
    collective.reduction = reduction;
    collective.element = element;
    collective.target = HALYARD_NO_RANK;
    collective.source = HALYARD_NO_RANK;
    collective.element_count = count;
    return collective;
  }

  void reductions() {
    for (uint32_t element = 0; element < channel::kElementTypes.size(); ++element)
      for (uint32_t reduction = 1; reduction < channel::kReductionNames.size(); ++reduction)
        for (const uint64_t size : {uint64_t{0}, uint64_t{1}, uint64_t{37}, uint64_t{5001}})
          for (const uint32_t kind : {HALYARD_COLLECTIVE_ALL_REDUCE, HALYARD_COLLECTIVE_REDUCE,
                                      HALYARD_COLLECTIVE_REDUCE_SCATTER}) {
            halyard_collective_t collective = make(kind, reduction, element, size);
            if (kind == HALYARD_COLLECTIVE_REDUCE) collective.root = (element + reduction) % place.count;
            run(collective, size == 37);
          }
    // More pieces than are under way at once.
    for (const uint32_t kind :
         {HALYARD_COLLECTIVE_ALL_REDUCE, HALYARD_COLLECTIVE_REDUCE, HALYARD_COLLECTIVE_REDUCE_SCATTER})
      for (const bool in_place : {false, true})
        run(make(kind, HALYARD_REDUCTION_SUM, HALYARD_COLLECTIVE_FLOAT_32, 534'567), in_place);
  }

  void moves() {
    for (const uint32_t element : {HALYARD_COLLECTIVE_SINT_8, HALYARD_COLLECTIVE_FLOAT_16,
                                   HALYARD_COLLECTIVE_FLOAT_32, HALYARD_COLLECTIVE_UINT_64})
      for (const uint64_t size :
           {uint64_t{0}, uint64_t{1}, uint64_t{13}, uint64_t{4097}, uint64_t{170'001}}) {
        if (size > 10'000 && element != HALYARD_COLLECTIVE_FLOAT_32) continue;
        run(make(HALYARD_COLLECTIVE_ALL_GATHER, 0, element, size), size == 13);
        run(make(HALYARD_COLLECTIVE_ALL_TO_ALL, 0, element, size * place.count));
        for (uint32_t root = 0; root < place.count; ++root) {
          halyard_collective_t collective = make(HALYARD_COLLECTIVE_BROADCAST, 0, element, size);
          collective.root = root;
          run(collective);
        }
        halyard_collective_t ring = make(HALYARD_COLLECTIVE_SEND_RECV, 0, element, size);
        ring.target = (place.rank + 1) % place.count;
        ring.source = (place.rank + place.count - 1) % place.count;
        run(ring);
        halyard_collective_t shift = make(HALYARD_COLLECTIVE_SEND_RECV, 0, element, size);
        if (place.rank + 1 < place.count) shift.target = place.rank + 1;
        if (place.rank > 0) shift.source = place.rank - 1;
        run(shift);
        if (place.count == 1) continue;
        // From the last rank to the first.
        if (place.rank == 0) {
          halyard_collective_t collective = make(HALYARD_COLLECTIVE_RECV, 0, element, size);
          collective.source = place.count - 1;
          run(collective);
        } else if (place.rank == place.count - 1) {
          halyard_collective_t collective = make(HALYARD_COLLECTIVE_SEND, 0, element, size);
          collective.target = 0;
          run(collective);
        }
      }
  }

  // Collectives that begin together, on this channel and on another one, in another order on odd ranks.
  void together(Channel& other) {
    constexpr uint64_t kCount = 3000;
    std::vector<std::vector<uint8_t>> sends;
    std::vector<std::vector<uint8_t>> receives;
    for (uint32_t i = 0; i < 6; ++i) {
      sends.push_back(values(HALYARD_COLLECTIVE_FLOAT_32, kCount, place.rank, 1000 + i));
      receives.emplace_back(kCount * 4);
    }
    Waiting waiting;
    const auto submit = [&](uint32_t i, Channel& to) {
      halyard_collective_t collective =
          make(HALYARD_COLLECTIVE_ALL_REDUCE, HALYARD_REDUCTION_SUM, HALYARD_COLLECTIVE_FLOAT_32, kCount);
      collective.send = sends[i].data();
      collective.receive = receives[i].data();
      waiting.submit(to, collective);
    };
    const bool is_odd = place.rank % 2 != 0;
    for (uint32_t i = 0; i < 3; ++i) submit(is_odd ? i : 3 + i, is_odd ? channel : other);
    for (uint32_t i = 0; i < 3; ++i) submit(is_odd ? 3 + i : i, is_odd ? other : channel);
    if (Status status = waiting.wait()) give_up(status);
    for (const std::vector<uint8_t>& bytes : receives) hash.add(bytes);
  }
};

// One hash after each step.
std::string exercise(const Ref<ChannelProvider>& provider) {
  Hash hash;
  std::string text;
  const auto note = [&](const char* step) { text += fmt::format(" {} {:016x}", step, hash.value()); };
  const Ref<Channel> all = must(Channel::open(provider, {}));
  const Place place = must(all->place(nullptr));
  Exercise exercise{*all, place, hash};
  exercise.reductions();
  note("reductions");
  exercise.moves();
  note("moves");
  Channel::Options named;
  named.group = "another";
  const Ref<Channel> other = must(Channel::open(provider, named));
  exercise.together(*other);
  note("together");
  // Split by parity, in reverse order; then once more, with ranks that take no part.
  for (int round = 0; round < 3; ++round) {
    const int32_t color = round < 2 ? static_cast<int32_t>(place.rank % 2) : place.rank == 0 ? -1 : 7;
    const Ref<Channel> part = must(all->split(color, -static_cast<int32_t>(place.rank)));
    if (!part) continue;
    const Place within = must(part->place(nullptr));
    Exercise inner{*part, within, hash, 5000};
    inner.run(Exercise::make(HALYARD_COLLECTIVE_ALL_GATHER, 0, HALYARD_COLLECTIVE_SINT_32, 11));
    inner.run(Exercise::make(HALYARD_COLLECTIVE_ALL_REDUCE, HALYARD_REDUCTION_SUM,
                             HALYARD_COLLECTIVE_FLOAT_32, 20'000));
    const Ref<Channel> alone = must(part->split(static_cast<int32_t>(within.rank), 0));
    const Place single = must(alone->place(nullptr));
    if (single.count != 1) give_up({Code::INTERNAL, "a channel of one rank has more"});
  }
  note("splits");
  return text;
}

int fail_in_the_middle(const Ref<ChannelProvider>& provider, const std::string& how) {
  const Ref<Channel> all = must(Channel::open(provider, {}));
  const Place place = must(all->place(nullptr));
  Hash hash;
  Exercise exercise{*all, place, hash};
  const halyard_collective_t first =
      Exercise::make(HALYARD_COLLECTIVE_ALL_REDUCE, HALYARD_REDUCTION_SUM, HALYARD_COLLECTIVE_FLOAT_32, 100);
  exercise.run(first);
  std::printf("rank %u: in the middle\n", place.rank);
  std::fflush(stdout);
  if (place.rank == 1) {
    if (how == "dies") ::kill(::getpid(), SIGKILL);
    if (how == "fails") all->fail({Code::DATA_LOSS, "its input is gone"});
    if (how == "late" || how == "unreceived") {
      std::this_thread::sleep_for(std::chrono::seconds(3));
      return 0;
    }
  }
  halyard_collective_t second = Exercise::make(HALYARD_COLLECTIVE_ALL_REDUCE, HALYARD_REDUCTION_SUM,
                                               HALYARD_COLLECTIVE_FLOAT_32, 1'000'000);
  if (how == "unreceived") {
    second = Exercise::make(HALYARD_COLLECTIVE_SEND, 0, HALYARD_COLLECTIVE_FLOAT_32, 3);
    second.target = 1;
  }
  if (how == "late" || how == "unreceived") second.timeout_ns = 500'000'000;
  exercise.run(second);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  if (mode == "local" && argc == 3) {
    const auto count = static_cast<uint32_t>(std::strtoul(argv[2], nullptr, 10));
    const Ref<hal::LocalWorld> world = hal::LocalWorld::create(count);
    std::vector<std::string> hashes(count);
    std::vector<std::thread> threads;
    for (uint32_t rank = 0; rank < count; ++rank)
      threads.emplace_back([&, rank] { hashes[rank] = exercise(world->provider(rank)); });
    for (std::thread& thread : threads) thread.join();
    for (uint32_t rank = 0; rank < count; ++rank) std::printf("rank %u:%s\n", rank, hashes[rank].c_str());
    return 0;
  }
  if (mode != "mpi") {
    std::fprintf(stderr, "usage: exercise local N | exercise mpi [late|dies|fails|unreceived]\n");
    return 2;
  }
  const Ref<ChannelProvider> provider = must(ChannelProvider::find(hal::detect_launch()));
  if (argc > 2) return fail_in_the_middle(provider, argv[2]);
  const uint32_t rank = must(provider->world()).rank;
  std::printf("rank %u:%s\n", rank, exercise(provider).c_str());
  return 0;
}
