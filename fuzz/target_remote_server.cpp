// Messages of a client to the server of devices: the input is cut into frames, and also sent as it is. The
// server never crashes, and gives back all memory of a client that has gone.
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "fuzzing.h"
#include "remote/message.h"
#include "run_files.h"
#include "server/server.h"

namespace {

using namespace halyard;
using device_server::Server;

struct Host {
  std::unique_ptr<Server> server;
  std::thread thread;
  Host() {
    device_server::ServerOptions options;
    options.devices = {"null"};
    options.driver_files = {fuzz::run_file(HALYARD_NULL_DRIVER)};
    options.limits.memory = 1 << 20;
    options.limits.cache = 1 << 16;
    options.limits.handles = 64;
    auto made = Server::create(std::move(options));
    if (!made) fuzz::finding(made.error().message);
    server = std::move(*made);
    thread = std::thread([this] { server->run(2); });
  }
};

void send_all(int socket, const void* bytes, size_t size) {
  const auto* at = static_cast<const char*>(bytes);
  while (size > 0) {
    const ssize_t count = ::send(socket, at, size, MSG_NOSIGNAL);
    if (count <= 0) return;
    at += count;
    size -= static_cast<size_t>(count);
  }
}

void send_frame(int socket, remote::Bytes message, remote::Bytes data) {
  const uint32_t header[2] = {static_cast<uint32_t>(message.size()), static_cast<uint32_t>(data.size())};
  send_all(socket, header, sizeof header);
  send_all(socket, message.data(), message.size());
  send_all(socket, data.data(), data.size());
}

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static auto& host = *new Host;
  int ends[2];
  if (size < 1 || ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return 0;
  host.server->take(remote::Descriptor(ends[1]), nullptr);
  const bool greets = data[0] & 1, is_raw = data[0] & 2;
  if (greets) {
    remote::Message hello;
    send_frame(ends[0], hello.to_server(remote::wire::CreateHello(hello.builder(), 1, 1)), {});
  }
  remote::Bytes rest(data + 1, size - 1);
  if (is_raw) {
    send_all(ends[0], rest.data(), rest.size());
  } else {
    while (rest.size() > 4) {  // sizes of a message and of its data, 16 bits each
      uint16_t sizes[2];
      std::memcpy(sizes, rest.data(), 4);
      rest = rest.subspan(4);
      const remote::Bytes message = rest.subspan(0, std::min<size_t>(sizes[0], rest.size()));
      rest = rest.subspan(message.size());
      const remote::Bytes bytes = rest.subspan(0, std::min<size_t>(sizes[1], rest.size()));
      rest = rest.subspan(bytes.size());
      send_frame(ends[0], message, bytes);
    }
  }
  // The server reads to the end, answers, and closes.
  ::shutdown(ends[0], SHUT_WR);
  char answer[4096];
  while (::recv(ends[0], answer, sizeof answer, 0) > 0) {
  }
  ::close(ends[0]);
  constexpr const char* kNothing = "\nhalyard_device_memory_bytes 0\n";
  for (int i = 0; host.server->metrics().find(kNothing) == std::string::npos; ++i) {
    if (i == 5000) fuzz::finding("memory of a client that has gone is still charged");
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return 0;
}
