// Runs every kind of collective, with every reduction and type, odd and empty sizes, in place, on split
// channels and on several channels at once, on the ranks of an MPI job or on threads of this process. Prints
// one line for each rank: hashes of all received bytes, which must not depend on the provider.
//
//   exercise local N [--device=URI]   N threads; with a device, each collective is a recording on the device
//   exercise mpi [--device=URI]       a rank of the job that its launcher started
//   exercise mpi late                 rank 1 never arrives at the second collective
//   exercise mpi dies                 rank 1 kills itself after the first collective
//   exercise mpi dies-first           rank 1 kills itself before the first collective
//   exercise mpi ends                 rank 1 ends its program after the first collective
//   exercise mpi fails                rank 1 reports a failure
//   exercise mpi fails-early          rank 1 reports a failure before the other ranks have opened the channel
//   exercise mpi fails-at-length      rank 1 reports a failure with a long text
//   exercise mpi behind               rank 1 never arrives at a split before the second collective
//   exercise mpi unreceived           rank 0 sends, and no rank receives
//   exercise mpi closes               closes channels whose splits are under way, and opens others
//   exercise mpi rejoins              rank 1 arrives after the others have given up, and they try again
//   exercise mpi waits-WHERE          rank 1 is 2 s late: start, middle (second collective), end; the
//                                     others print the computing time of their process
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/bytes.h"
#include "hal/channel/channel.h"
#include "hal/channel/find_provider.h"
#include "hal/channel/local_world.h"
#include "hal/command/command_buffer.h"
#include "hal/queue/host_copy.h"
#include "hal/queue/queue.h"
#include "hal/queue/wait.h"
#include "hal/registry/driver_registry.h"
#include "halyard/channel.hpp"

namespace {

using namespace halyard;
using hal::Channel;
using hal::ChannelProvider;
using hal::Place;

constexpr std::chrono::seconds kLate(2);
constexpr std::chrono::seconds kForever(60);  // the other rank ends the job before

[[noreturn]] void give_up(const Status& status) {
  std::fprintf(stderr, "exercise: %s\n", status.text().c_str());
  std::exit(1);
}
template <typename T>
T must(Result<T> result) {
  if (!result) give_up(result.error());
  return std::move(*result);
}

// Submitted collectives, and their completions.
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

// A device that executes each collective as a recording.
class OnDevice {
 public:
  OnDevice(Channel& channel, const Ref<hal::Device>& device) : channel_(channel), device_(device) {}

  // Like channel.submit(), in memory of the device; waits.
  Status run(const halyard_collective_t& collective, const hal::CollectiveSizes& sizes) {
    const auto* const send = static_cast<const uint8_t*>(collective.send);
    auto* const receive = static_cast<uint8_t*>(collective.receive);
    // One buffer for both ranges, at the same distance, so that in-place collectives stay in place.
    const bool is_one = sizes.send != 0 && sizes.receive != 0 && send + sizes.send > receive &&
                        receive + sizes.receive > send;
    const auto whole = [](uint64_t size) { return std::max<uint64_t>((size + 63) / 64 * 64, 64); };
    uint64_t send_at = 0;
    uint64_t receive_at = is_one ? 0 : whole(sizes.send);
    if (is_one && send > receive) send_at = static_cast<uint64_t>(send - receive);
    if (is_one && receive > send) receive_at = static_cast<uint64_t>(receive - send);
    const uint64_t size = std::max(send_at + whole(sizes.send), receive_at + whole(sizes.receive));
    const Ref<hal::Buffer> bytes = must(hal::Buffer::allocate(
        *device_, hal::kAnyQueue, HALYARD_MEMORY_DEVICE_LOCAL, HALYARD_USAGE_DEFAULT, size));
    if (sizes.receive != 0) wait(must(hal::begin_write({receive, sizes.receive}, *bytes, receive_at)));
    if (sizes.send != 0) wait(must(hal::begin_write({send, sizes.send}, *bytes, send_at)));
    const Ref<hal::CommandBuffer> commands = must(hal::CommandBuffer::create(
        device_, hal::kOneShot, hal::kTransfer | hal::kDispatchCategory, hal::kAnyQueue, 0));
    const auto range = [&](uint64_t at, uint64_t length) -> hal::BufferRange {
      return length == 0 ? hal::BufferRange{} : hal::BufferRange{bytes.get(), 0, at, length};
    };
    if (auto recorded = commands->collective({&channel_, operation(collective), parameter(collective),
                                              range(send_at, sizes.send), range(receive_at, sizes.receive),
                                              collective.element_count});
        !recorded)
      give_up(recorded.error());
    if (auto ready = commands->finalize(); !ready) give_up(ready.error());
    const Ref<hal::Fence> done = must(hal::Fence::create(device_));
    if (auto given = hal::queue_execute({*device_, hal::kAnyQueue, nullptr, done.get()}, *commands, {});
        !given)
      return given.error();
    hal::Fence* const fences[] = {done.get()};
    if (Status status = hal::await(fences, kMaxMs)) return status;
    if (sizes.receive != 0)
      wait(must(hal::begin_read(*bytes, receive_at, {receive, sizes.receive}, Bytes::own({}))));
    return {};
  }

 private:
  static constexpr uint32_t kMaxMs = 100'000;

  static uint32_t operation(const halyard_collective_t& given) {
    return given.kind | given.reduction << 8 | given.element << 16;
  }
  static uint32_t parameter(const halyard_collective_t& given) {
    switch (given.kind) {
      case HALYARD_COLLECTIVE_SEND:
        return given.target;
      case HALYARD_COLLECTIVE_RECV:
        return given.source;
      case HALYARD_COLLECTIVE_SEND_RECV:
        return (given.target & 0xFFFF) | given.source << 16;
      default:
        return given.root;
    }
  }
  static void wait(const Ref<hal::Fence>& fence) {
    if (!fence) return;
    hal::Fence* const fences[] = {fence.get()};
    if (Status status = hal::await(fences, kMaxMs)) give_up(status);
  }

  Channel& channel_;
  const Ref<hal::Device>& device_;
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

// Values that do not depend on the provider: small numbers of the type or, for integers, any bytes.
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
  Ref<hal::Device> device = {};  // null: without a device
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
    if (device) {
      if (Status status = OnDevice(channel, device).run(collective, sizes)) give_up(status);
    } else {
      Waiting waiting;
      waiting.submit(channel, collective);
      if (Status status = waiting.wait()) give_up(status);
    }
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
    // More pieces than the window of the pipeline.
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

  // Collectives that begin together, on this channel and on another one; odd ranks use another order. With
  // `odd_wait`, odd ranks begin those on the other channel after those on this one have ended.
  void together(Channel& other, bool odd_wait = false) {
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
    if (is_odd && odd_wait)
      if (Status status = waiting.wait()) give_up(status);
    for (uint32_t i = 0; i < 3; ++i) submit(is_odd ? 3 + i : i, is_odd ? other : channel);
    if (Status status = waiting.wait()) give_up(status);
    for (const std::vector<uint8_t>& bytes : receives) hash.add(bytes);
  }
};

// One hash after each step.
std::string exercise(const Ref<ChannelProvider>& provider, const Ref<hal::Device>& device) {
  Hash hash;
  std::string text;
  const auto note = [&](const char* step) { text += fmt::format(" {} {:016x}", step, hash.value()); };
  const Ref<Channel> all = must(Channel::open(provider, {}));
  const Place place = must(all->place(nullptr));
  Exercise exercise{*all, place, hash, device};
  exercise.reductions();
  note("reductions");
  exercise.moves();
  note("moves");
  Channel::Options named;
  named.group = "another";
  const Ref<Channel> other = must(Channel::open(provider, named));
  exercise.together(*other);
  note("together");
  // A split of a channel of one rank leaves the numbers of other channels taken.
  const Ref<Channel> alone = must(all->split(static_cast<int32_t>(place.rank), 0));
  must(alone->split(-1, 0));
  must(all->split(0, 0));  // after which that split has ended
  const Ref<Channel> again = must(all->split(0, static_cast<int32_t>(place.rank)));
  Exercise{*again, place, hash, device}.together(*all, true);
  note("alone");
  // Splits by parity, in reverse order; then again, with ranks that do not take part.
  for (int round = 0; round < 3; ++round) {
    const int32_t color = round < 2 ? static_cast<int32_t>(place.rank % 2) : place.rank == 0 ? -1 : 7;
    const Ref<Channel> part = must(all->split(color, -static_cast<int32_t>(place.rank)));
    if (!part) continue;
    const Place within = must(part->place(nullptr));
    Exercise inner{*part, within, hash, device, 5000};
    inner.run(Exercise::make(HALYARD_COLLECTIVE_ALL_GATHER, 0, HALYARD_COLLECTIVE_SINT_32, 11));
    inner.run(Exercise::make(HALYARD_COLLECTIVE_ALL_REDUCE, HALYARD_REDUCTION_SUM,
                             HALYARD_COLLECTIVE_FLOAT_32, 20'000));
    const Ref<Channel> own = must(part->split(static_cast<int32_t>(within.rank), 0));
    const Place single = must(own->place(nullptr));
    if (single.count != 1) give_up({Code::INTERNAL, "a channel of one rank has more"});
  }
  note("splits");
  return text;
}

// A channel that is closed while splits wait in it keeps its number.
void close_bases(const Ref<ChannelProvider>& provider, Channel& all) {
  for (uint32_t round = 0; round < 20; ++round) {
    const Place place = must(all.place(nullptr));
    Ref<Channel> base = must(all.split(0, static_cast<int32_t>(place.rank)));
    must(base->place(nullptr));
    Hash hash;
    const halyard_collective_t sum =
        Exercise::make(HALYARD_COLLECTIVE_ALL_REDUCE, HALYARD_REDUCTION_SUM, HALYARD_COLLECTIVE_FLOAT_32, 8);
    Exercise{all, place, hash}.run(sum);
    for (int splits = 0; splits < 4; ++splits) must(base->split(-1, 0));
    base = nullptr;
    Channel::Options options;
    const std::string group = fmt::format("round {}", round);
    options.group = group;
    const Ref<Channel> other = must(Channel::open(provider, options));
    Exercise exercise{*other, must(other->place(nullptr)), hash};
    for (int i = 0; i < 4; ++i) exercise.run(sum);
  }
}

// The computing time of all threads of this process.
double computing_seconds() {
  timespec time = {};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

int go_wrong(const Ref<ChannelProvider>& provider, const std::string& how) {
  const Ref<Channel> all = must(Channel::open(provider, {}));
  const Place place = must(all->place(nullptr));
  Hash hash;
  Exercise exercise{*all, place, hash};
  const halyard_collective_t first =
      Exercise::make(HALYARD_COLLECTIVE_ALL_REDUCE, HALYARD_REDUCTION_SUM, HALYARD_COLLECTIVE_FLOAT_32, 100);
  const bool is_one = place.rank == 1;
  if (how.starts_with("dies"))
    ::signal(SIGTERM, SIG_IGN);  // so that the launcher does not end the process before it can print
  if (is_one && how == "dies-first") ::kill(::getpid(), SIGKILL);
  exercise.run(first);
  if (how == "closes") {
    close_bases(provider, *all);
    return 0;
  }
  if (how == "fails-early") {
    if (!is_one) std::this_thread::sleep_for(kLate);
    Channel::Options options;
    options.group = "another";
    const Ref<Channel> another = must(Channel::open(provider, options));
    if (is_one) {
      another->fail({Code::DATA_LOSS, "its input is gone"});
      std::this_thread::sleep_for(kForever);
      return 0;
    }
    Exercise{*another, place, hash}.run(first);
    return 0;
  }
  std::printf("rank %u: in the middle\n", place.rank);
  std::fflush(stdout);
  if (is_one) {
    if (how == "dies") ::kill(::getpid(), SIGKILL);
    if (how == "ends") return 0;
    if (how == "fails") all->fail({Code::DATA_LOSS, "its input is gone"});
    if (how == "fails-at-length") {
      std::this_thread::sleep_for(kLate);
      all->fail({Code::DATA_LOSS, "its input is gone" + std::string(12'000, '.')});
      std::this_thread::sleep_for(kForever);
      return 0;
    }
    if (how == "behind") {
      std::this_thread::sleep_for(kForever);
      return 0;
    }
    if (how == "late" || how == "unreceived") {
      std::this_thread::sleep_for(std::chrono::seconds(3));
      return 0;
    }
    if (how == "waits-middle") std::this_thread::sleep_for(kLate);
  }
  halyard_collective_t second = Exercise::make(HALYARD_COLLECTIVE_ALL_REDUCE, HALYARD_REDUCTION_SUM,
                                               HALYARD_COLLECTIVE_FLOAT_32, 1'000'000);
  if (how == "unreceived") {
    second = Exercise::make(HALYARD_COLLECTIVE_SEND, 0, HALYARD_COLLECTIVE_FLOAT_32, 3);
    second.target = 1;
  }
  if (how == "behind") must(all->split(0, 0));
  if (how == "late" || how == "behind" || how == "unreceived") second.timeout_ns = 500'000'000;
  exercise.run(second);
  if (is_one && how == "waits-end") std::this_thread::sleep_for(kLate);
  return 0;
}

// A process that has given up cannot join the job any more, even if the others have come.
int join_again() {
  const hal::Launch launch = hal::detect_launch();
  if (launch.rank == 1) {
    std::this_thread::sleep_for(kLate);
    must(hal::find_provider(launch));
    std::this_thread::sleep_for(kForever);
    return 0;
  }
  const auto first = hal::find_provider(launch, 300'000'000);
  std::fprintf(stderr, "first: %s\n", first ? "ok" : first.error().text().c_str());
  std::this_thread::sleep_for(2 * kLate);
  const auto second = hal::find_provider(launch);
  std::fprintf(stderr, "second: %s\n", second ? "ok" : second.error().text().c_str());
  return first || second ? 0 : 1;
}

// Called last in the process: prints its computing time.
void print_computing() {
  if (hal::detect_launch().rank == 1) return;
  std::printf("rank %u: computed for %.0f ms\n", hal::detect_launch().rank, computing_seconds() * 1e3);
  std::fflush(stdout);
}

Ref<hal::Device> device_of(const std::string& uri) {
  if (uri.empty()) return {};
  return must(hal::DriverRegistry::create({})->open_device(uri));
}

}  // namespace

int main(int argc, char** argv) {
  constexpr std::string_view kDevice = "--device=";
  std::vector<std::string> words;
  std::string uri;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word.starts_with(kDevice)) {
      uri = word.substr(kDevice.size());
    } else {
      words.emplace_back(word);
    }
  }
  if (words.size() == 2 && words[0] == "local") {
    const auto count = static_cast<uint32_t>(std::strtoul(words[1].c_str(), nullptr, 10));
    const Ref<hal::LocalWorld> world = hal::LocalWorld::create(count);
    const Ref<hal::Device> device = device_of(uri);
    std::vector<std::string> hashes(count);
    std::vector<std::thread> threads;
    for (uint32_t rank = 0; rank < count; ++rank)
      threads.emplace_back([&, rank] { hashes[rank] = exercise(world->provider(rank), device); });
    for (std::thread& thread : threads) thread.join();
    for (uint32_t rank = 0; rank < count; ++rank) std::printf("rank %u:%s\n", rank, hashes[rank].c_str());
    return 0;
  }
  if (words.empty() || words.size() > 2 || words[0] != "mpi") {
    std::fprintf(stderr, "usage: exercise local N [--device=URI] | exercise mpi [--device=URI] [MODE]\n");
    return 2;
  }
  const std::string mode = words.size() == 2 ? words[1] : "";
  if (mode.starts_with("waits-")) std::atexit(print_computing);
  if (mode == "waits-start" && hal::detect_launch().rank == 1) std::this_thread::sleep_for(kLate);
  if (mode == "rejoins") return join_again();
  const Ref<ChannelProvider> provider = must(hal::find_provider(hal::detect_launch()));
  if (!mode.empty()) return go_wrong(provider, mode);
  const uint32_t rank = must(provider->world()).rank;
  std::printf("rank %u:%s\n", rank, exercise(provider, device_of(uri)).c_str());
  return 0;
}
