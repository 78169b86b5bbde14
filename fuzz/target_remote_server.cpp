// Messages of a client to the server of devices: the input is sent as it is, is cut into frames, or is read
// as records of 4 bytes (seeds_remote.cpp) that each stand for a frame, or for many. The server never
// crashes, takes no more memory for the client than its limit, and gives back all of it when the client has
// gone.
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "fuzzing.h"
#include "remote/message.h"
#include "run_files.h"
#include "server/server.h"

// Of sanitizers, whose allocator tells what is allocated; null without them.
extern "C" {
[[gnu::weak]] int __sanitizer_install_malloc_and_free_hooks(void (*malloc_hook)(const volatile void*, size_t),
                                                            void (*free_hook)(const volatile void*));
[[gnu::weak]] size_t __sanitizer_get_allocated_size(const volatile void* bytes);
}

namespace {

using namespace halyard;
using device_server::Server;

constexpr uint64_t kMemory = 4 << 20;  // of a client
constexpr size_t kHandles = 4096;
// What is not charged: the tables of handles and of work, and the message that is being received.
constexpr int64_t kUncharged = 4 << 20;

// Bytes that this process has allocated.
class Allocated {
 public:
  static void watch() {
    if (__sanitizer_install_malloc_and_free_hooks)
      __sanitizer_install_malloc_and_free_hooks(
          [](const volatile void*, size_t size) { add(static_cast<int64_t>(size)); },
          [](const volatile void* bytes) {
            if (bytes) add(-static_cast<int64_t>(__sanitizer_get_allocated_size(bytes)));
          });
  }
  static void begin() {
    begin_ = now_.load();
    most_ = begin_.load();
  }
  static int64_t most_since_begin() { return most_ - begin_; }

 private:
  static void add(int64_t bytes) {
    const int64_t now = now_.fetch_add(bytes) + bytes;
    for (int64_t most = most_; most < now && !most_.compare_exchange_weak(most, now);) {
    }
  }
  static inline std::atomic<int64_t> now_, begin_, most_;
};

struct Host {
  std::unique_ptr<Server> server;
  std::thread thread;
  Host() {
    Allocated::watch();
    device_server::ServerOptions options;
    options.devices = {"null"};
    options.driver_files = {fuzz::run_file(HALYARD_NULL_DRIVER)};
    options.limits.memory = kMemory;
    options.limits.cache = 1 << 16;
    options.limits.handles = kHandles;
    auto made = Server::create(std::move(options));
    if (!made) fuzz::finding(made.error().message);
    server = std::move(*made);
    thread = std::thread([this] { server->run(2); });
  }
};

// All frames of a client, which are made before the server gets the first one.
class Frames {
 public:
  explicit Frames(remote::Bytes input) : input_(input) {
    const uint8_t kind = input_[0];
    input_ = input_.subspan(1);
    has_last_answer = (kind & 2) == 0;
    has_large = (kind & 3) == 3;
    if (kind & 1)
      add([](auto& builder, remote::Message&) {
        return remote::wire::CreateHello(builder, remote::kOldestVersion, remote::kNewestVersion);
      });
    if (kind & 2) {
      bytes.insert(bytes.end(), input_.begin(), input_.end());
    } else if (kind & 4) {
      while (input_.size() >= 4 && bytes.size() < kMost) add_record();
    } else {
      while (input_.size() > 4) add_raw();
    }
    if (has_last_answer)
      add([](auto& builder, remote::Message&) { return remote::wire::CreateQuery(builder, kLast); });
  }
  static constexpr uint64_t kLast = UINT64_MAX;  // the request of the last message
  bool has_last_answer = false;
  bool has_large = false;  // perhaps a message that says that it is large, after a greeting
  std::vector<uint8_t> bytes;

 private:
  static constexpr size_t kMost = 8 << 20;

  void add_frame(remote::Bytes message, remote::Bytes data) {
    const uint32_t header[2] = {static_cast<uint32_t>(message.size()), static_cast<uint32_t>(data.size())};
    const auto* const sizes = reinterpret_cast<const uint8_t*>(header);
    for (const remote::Bytes part : {remote::Bytes(sizes, sizeof header), message, data})
      bytes.insert(bytes.end(), part.begin(), part.end());
  }
  template <typename Build>
  void add(Build build, size_t data = 0) {
    remote::Message message;
    const auto body = build(message.builder(), message);
    add_frame(message.to_server(body), std::vector<uint8_t>(data, 7));
  }
  remote::Bytes take(size_t size) {
    const remote::Bytes taken = input_.first(std::min(size, input_.size()));
    input_ = input_.subspan(taken.size());
    return taken;
  }
  // Sizes of a message and of its data, 16 bits each.
  void add_raw() {
    uint16_t sizes[2];
    std::memcpy(sizes, take(4).data(), 4);
    const remote::Bytes message = take(sizes[0]);
    add_frame(message, take(sizes[1]));
  }
  // Objects have numbers up to 255, or 256 and more if they are made many at once.
  void add_record();
  void add_list(uint64_t id, size_t commands, size_t ranges, bool is_of_many);
  void add_execution(uint64_t list, uint64_t semaphore);

  remote::Bytes input_;
  uint64_t next_submission_ = 1;
  uint64_t next_of_many_ = 256;
};

void Frames::add_record() {
  namespace wire = remote::wire;
  constexpr size_t kUnit = 512;  // bytes
  const remote::Bytes record = take(4);
  const uint8_t a = record[1], b = record[2], c = record[3];
  switch (record[0] % 16) {
    case 0:
      return input_.size() > 4 ? add_raw() : void();
    case 1:
      return add([&](auto& builder, remote::Message&) {
        const auto memory = wire::CreateRequest(builder, 0x30, 0xC03, UINT64_MAX, b * kUnit, c);
        return wire::CreateMemoryCreate(builder, 0, a, memory);
      });
    case 2:  // many of them
      for (size_t i = 0; i < a * size_t{16} && bytes.size() < kMost; ++i)
        add([&](auto& builder, remote::Message&) {
          const auto memory = wire::CreateRequest(builder, 0x30, 0xC03, UINT64_MAX, b);
          return wire::CreateMemoryCreate(builder, 0, next_of_many_++, memory);
        });
      return;
    case 3:
      return add([&](auto& builder, remote::Message&) { return wire::CreateSemaphoreCreate(builder, a, b); });
    case 4:
      return add([&](auto& builder, remote::Message& message) {
        const auto text = message.text(std::string(c * kUnit * 8, 'x'));
        return wire::CreateSemaphoreFail(builder, a, wire::CreateStatus(builder, b, text));
      });
    case 5:
      return add([&](auto& builder, remote::Message&) { return wire::CreateSemaphoreSignal(builder, a, b); });
    case 6:  // code that the server does not run
      return add([&](auto& builder, remote::Message& message) {
        const auto format = message.text("embedded-elf-x86_64");
        const wire::Digest name = remote::to_wire(remote::Sha256{b});
        return wire::CreateExecutableCreate(builder, c, a, format, &name, 100, UINT64_MAX);
      });
    case 7:
      return add_list(a, b * size_t{16}, c, false);
    case 8:
      return add_list(a, next_of_many_ - 256, 1, true);
    case 9:
      for (size_t i = 0; i < c * size_t{8} && bytes.size() < kMost; ++i) add_execution(a, b);
      return;
    case 10:
      return add(
          [&](auto& builder, remote::Message&) { return wire::CreateMemoryWrite(builder, a, b * kUnit); },
          c * kUnit);
    case 11:
      return add([&](auto& builder, remote::Message&) {
        return wire::CreateMemoryRead(builder, b + 1, a, 0, c * kUnit, b & 1 ? remote::kPiece : 0, b & 2);
      });
    case 12:
      return add([&](auto& builder, remote::Message&) { return wire::CreateMemoryWatch(builder, a, b & 1); });
    case 13:
      return add(
          [&](auto& builder, remote::Message&) { return wire::CreateStageWrite(builder, a, b * kUnit, 0); },
          c * kUnit);
    case 14:
      return add([&](auto& builder, remote::Message&) {
        const wire::Range target(a, 0, 0, 0, b * kUnit);
        const auto update = wire::CreateUpdate(builder, &target, 0, c).Union();
        return wire::CreateSubmit(builder, next_submission_++, UINT64_MAX, 0, 0, wire::Operation::Update,
                                  update);
      });
    default:
      return add([&](auto& builder, remote::Message&) {
        const auto semaphores = builder.CreateVector(std::vector<uint64_t>(b & 1, a));
        const auto memories = builder.CreateVector(std::vector<uint64_t>(b & 2 ? 1 : 0, a));
        return wire::CreateDestroy(builder, semaphores, memories);
      });
  }
}

// Commands that are the same table many times, or one for each of the many memories.
void Frames::add_list(uint64_t id, size_t commands, size_t ranges, bool is_of_many) {
  namespace wire = remote::wire;
  add([&](auto& builder, remote::Message&) {
    std::vector<flatbuffers::Offset<wire::RecordedCommand>> recorded;
    const auto add_fill = [&](uint64_t memory) {
      const wire::Range target(memory, 0, 0, 0, 4);
      const auto fill = wire::CreateFill(builder, &target, 7, 1).Union();
      recorded.push_back(wire::CreateRecordedCommand(builder, wire::Command::Fill, fill));
    };
    if (is_of_many) {
      for (size_t i = 0; i < commands; ++i) add_fill(256 + i);
    } else {
      const std::vector<wire::Range> bindings(ranges, wire::Range(1, 0, 0, 0, 4));
      const wire::Workgroups counts(1, 1, 1);
      const auto dispatch =
          wire::CreateDispatch(builder, 2, 0, &counts, nullptr, 0, builder.CreateVectorOfStructs(bindings))
              .Union();
      recorded.assign(commands, wire::CreateRecordedCommand(builder, wire::Command::Dispatch, dispatch));
      if (ranges == 0) add_fill(1);
    }
    return wire::CreateListCreate(builder, id, false, UINT64_MAX, 0, builder.CreateVector(recorded));
  });
}

// Waits for the value 1 of the semaphore, unless that is 0.
void Frames::add_execution(uint64_t list, uint64_t semaphore) {
  namespace wire = remote::wire;
  add([&](auto& builder, remote::Message&) {
    const wire::Point wait(semaphore, 1);
    const auto waits = builder.CreateVectorOfStructs(&wait, semaphore == 0 ? 0 : 1);
    return wire::CreateSubmit(builder, next_submission_++, UINT64_MAX, waits, 0, wire::Operation::Execute,
                              wire::CreateExecute(builder, list).Union());
  });
}

bool receive(int socket, uint8_t* to, size_t size) {
  while (size > 0) {
    const ssize_t count = ::recv(socket, to, size, 0);
    if (count <= 0) return false;
    to += count;
    size -= static_cast<size_t>(count);
  }
  return true;
}

// Sends all, and receives what comes, until the server ends the connection. This side ends it after the
// answer to the last message if there is one, because a server drops what it has not handled yet.
void talk(int socket, remote::Bytes bytes, bool has_last_answer) {
  std::thread sender([&] {
    while (!bytes.empty()) {
      const ssize_t count = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (count <= 0) break;
      bytes = bytes.subspan(static_cast<size_t>(count));
    }
    if (!has_last_answer) ::shutdown(socket, SHUT_WR);
  });
  uint32_t header[2];
  std::vector<uint8_t> message, data;
  while (receive(socket, reinterpret_cast<uint8_t*>(header), sizeof header)) {
    message.resize(header[0]);
    data.resize(header[1]);
    if (!receive(socket, message.data(), message.size()) || !receive(socket, data.data(), data.size())) break;
    const remote::wire::ToClient* const it = remote::verified_to_client(message);
    if (!it) fuzz::finding("the server has sent something else than messages");
    if (it->body_as_Answer() && it->body_as_Answer()->request() == Frames::kLast) ::shutdown(socket, SHUT_WR);
  }
  sender.join();
}

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static auto& host = *new Host;
  if (size < 1) return 0;
  const Frames frames({data, size});
  Allocated::begin();
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return 0;
  host.server->take(remote::Descriptor(ends[1]), nullptr);
  talk(ends[0], frames.bytes, frames.has_last_answer);
  ::close(ends[0]);
  const int64_t most = Allocated::most_since_begin();
  const int64_t largest = frames.has_large ? remote::kMaxMessage : 0;
  if (most > static_cast<int64_t>(kMemory) + kUncharged + largest)
    fuzz::finding("a client of " + std::to_string(kMemory) + " bytes has made the server allocate " +
                  std::to_string(most));
  constexpr const char* kNothing = "\nhalyard_device_memory_bytes 0\n";
  for (int i = 0; host.server->metrics().find(kNothing) == std::string::npos; ++i) {
    if (i == 5000) fuzz::finding("memory of a client that has gone is still charged");
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return 0;
}
