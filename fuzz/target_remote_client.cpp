// Messages of a server to the driver `remote`: whatever comes, opening the device and reads end, nothing but
// the bytes that were asked for is written, and nothing after a read has returned. The input is what the
// server sends: bytes, or records of 4 bytes (seeds_remote.cpp) that each stand for a frame, or for a wait.
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "connection.h"
#include "device.h"
#include "fuzzing.h"

namespace {

using namespace halyard;

// Statuses of a host that only counts.
halyard_host_services_t services_of_fuzzing() {
  halyard_host_services_t services = {};
  services.struct_size = sizeof services;
  services.status_create = [](void*, halyard_status_code_t, const char*, size_t) {
    return reinterpret_cast<halyard_status_t>(new int(1));
  };
  services.status_retain = [](void*, halyard_status_t status) {
    ++*reinterpret_cast<int*>(status);
    return status;
  };
  services.status_release = [](void*, halyard_status_t status) {
    if (status && --*reinterpret_cast<int*>(status) == 0) delete reinterpret_cast<int*>(status);
  };
  services.status_code = [](void*, halyard_status_t) -> halyard_status_code_t { return HALYARD_UNKNOWN; };
  services.status_message = [](void*, halyard_status_t) { return ""; };
  services.log = [](void*, int32_t, const char*, size_t) {};
  return services;
}

// The client's steps, for which the server waits so that its frames come between certain calls.
class Steps {
 public:
  // The server waits for the next step, unless the client waits for the server. Only then a time decides.
  void await_next() {
    std::unique_lock lock(mutex_);
    ++awaited_;
    is_parked_ = true;
    changed_.notify_all();
    changed_.wait_for(lock, kLongest, [this] { return steps_ >= awaited_ || is_over_; });
    is_parked_ = false;
  }
  // The client makes a step, and waits until the server has sent what it sends then.
  void step(int socket) {
    {
      std::unique_lock lock(mutex_);
      ++steps_;
      changed_.notify_all();
      changed_.wait_for(lock, kLongest, [this] { return (is_parked_ && awaited_ > steps_) || has_sent_; });
    }
    // The client's threads have taken it; handling it takes them a moment.
    int unread = 1;
    for (int i = 0; i < 200 && unread > 0; ++i) {
      if (::ioctl(socket, FIONREAD, &unread) != 0) unread = 0;
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
  }
  void has_sent() { end(has_sent_); }
  void is_over() { end(is_over_); }

 private:
  static constexpr std::chrono::milliseconds kLongest{30};
  void end(bool& what) {
    const std::lock_guard lock(mutex_);
    what = true;
    changed_.notify_all();
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  int steps_ = 0, awaited_ = 0;
  bool is_parked_ = false, has_sent_ = false, is_over_ = false;
};

class FuzzedServer {
 public:
  FuzzedServer(int socket, Steps& steps, std::span<const uint8_t> input)
      : socket_(socket), steps_(steps), input_(input) {}

  void run() {
    const uint8_t kind = input_[0];
    input_ = input_.subspan(1);
    if (kind & 1) {  // a greeting that is right
      remote::Message message;
      const auto properties = remote::wire::CreateProperties(message.builder(), 0, 1, 64, 1 << 20);
      send_frame(message.to_client(remote::wire::CreateWelcome(message.builder(), 1, properties)), 0);
    }
    if (kind & 2) {
      while (input_.size() >= 4) send_record();
    } else {
      send_bytes(input_);
    }
    ::shutdown(socket_, SHUT_WR);
    steps_.has_sent();
    char ignored[4096];
    while (::recv(socket_, ignored, sizeof ignored, 0) > 0) {
    }
  }

 private:
  void send_bytes(remote::Bytes bytes) {
    while (!bytes.empty()) {
      const ssize_t count = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (count <= 0) return;
      bytes = bytes.subspan(static_cast<size_t>(count));
    }
  }
  // With so many bytes of data, which differ from those of other frames. After a record `cut` the rest comes
  // after the next step of the client.
  void send_frame(remote::Bytes message, size_t data) {
    const uint32_t header[2] = {static_cast<uint32_t>(message.size()), static_cast<uint32_t>(data)};
    std::vector<uint8_t> frame(sizeof header + message.size() + data, ++fill_);
    std::memcpy(frame.data(), header, sizeof header);
    std::memcpy(frame.data() + sizeof header, message.data(), message.size());
    const remote::Bytes bytes = frame;
    const size_t first = bytes.size() * std::exchange(first_part_, 255) / 255;
    send_bytes(bytes.first(first));
    if (first < bytes.size()) steps_.await_next();
    send_bytes(bytes.subspan(first));
  }
  void send_record() {
    constexpr size_t kUnit = 512;  // bytes
    const uint8_t kind = input_[0], a = input_[1], b = input_[2], c = input_[3];
    input_ = input_.subspan(4);
    remote::Message message;
    flatbuffers::FlatBufferBuilder& builder = message.builder();
    switch (kind % 8) {
      case 0: {  // a message of these bytes
        const remote::Bytes raw = input_.first(std::min<size_t>(input_.size(), a | size_t{b} << 8));
        input_ = input_.subspan(raw.size());
        return send_frame(raw, c * kUnit);
      }
      case 1:
        return send_frame(message.to_client(remote::wire::CreateData(builder, a, b * kUnit)), c * kUnit);
      case 2:
        return send_frame(message.to_client(remote::wire::CreateContents(builder, a, b * kUnit)), c * kUnit);
      case 3: {
        const auto status = remote::wire::CreateStatus(builder, b, message.text("why"));
        return send_frame(message.to_client(remote::wire::CreateDone(builder, a, status)), c * kUnit);
      }
      case 4:
        return send_frame(message.to_client(remote::wire::CreateAnswer(builder, a, b & 1, c)), 0);
      case 5:
        return send_frame(message.to_client(remote::wire::CreatePong(builder, a, b)), 0);
      case 6:
        return steps_.await_next();
      default:
        first_part_ = a;
    }
  }

  const int socket_;
  Steps& steps_;
  std::span<const uint8_t> input_;
  uint8_t fill_ = 0;
  uint8_t first_part_ = 255;
};

// Where a read puts its bytes: between others that nobody may write to.
class Target {
 public:
  std::span<uint8_t> bytes() { return std::span(all_).subspan(kGuard, kSize); }
  // The read has returned.
  void returned() { then_ = all_; }
  void check() const {
    for (size_t i = 0; i < kGuard; ++i)
      if (all_[i] != kOutside || all_[kGuard + kSize + i] != kOutside)
        fuzz::finding("bytes outside of those that were asked for have been written");
    if (all_ != then_) fuzz::finding("bytes have been written after the read has returned");
  }

 private:
  static constexpr size_t kSize = 32 << 10, kGuard = 64 << 10;  // placed data have at least 16 KiB
  static constexpr uint8_t kOutside = 0xA5;
  std::vector<uint8_t> all_ = std::vector<uint8_t>(kSize + 2 * kGuard, kOutside), then_;
};

void use(remote::Connection& connection, remote::Device& device, Steps& steps, int socket) {
  halyard_memory_request_t asked = {};
  asked.struct_size = sizeof asked;
  asked.size = 32 << 10;
  asked.affinity = 1;
  halyard_memory_info_t info = {};
  info.struct_size = sizeof info;
  auto memory = device.allocate(asked, false, info);  // number 1
  if (!memory) return;
  // Requests 2 and 3, by a thread that is late: others have received what comes meanwhile.
  Target targets[2];
  for (Target& target : targets) {
    remote::Request request;
    request.target = target.bytes();
    (void)connection.request(request, [&](uint64_t number) {
      remote::Message message;
      connection.send(
          message.to_server(remote::wire::CreateMemoryRead(message.builder(), number, (*memory)->number(), 0,
                                                           target.bytes().size(), remote::kCredit)),
          {}, remote::Stream::Urgency::now);
      steps.step(socket);
    });
    target.returned();
    steps.step(socket);
  }
  // Two mappings: the bytes of the second one come as contents.
  for (int i = 0; i < 2; ++i) (void)(*memory)->map(HALYARD_MAP_READ | HALYARD_MAP_WRITE, 0, asked.size);
  for (int i = 0; i < 2; ++i) (*memory)->unmap();
  std::string reason;
  (void)device.grade("vmvx-bytecode-fb", {}, reason);
  // Until all has come that the server sends.
  steps.is_over();
  for (int i = 0; i < 5000 && connection.check(); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  for (const Target& target : targets) target.check();
}

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const halyard_host_services_t services = services_of_fuzzing();
  int ends[2];
  if (size < 1 || ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return 0;
  Steps steps;
  std::thread serving([&] { FuzzedServer(ends[1], steps, {data, size}).run(); });
  {
    remote::Runtime runtime;
    remote::Place place;
    place.transport = remote::Transport::unix_socket;
    place.path = "fuzzed";
    place.patience = std::chrono::milliseconds(5000);
    auto opened = remote::Connection::over(services, runtime, std::move(place), remote::Descriptor(ends[0]));
    if (opened) {
      remote::Device device(*opened);
      use(**opened, device, steps, ends[0]);
    }
    steps.is_over();
  }
  serving.join();
  ::close(ends[1]);
  return 0;
}
