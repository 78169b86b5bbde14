// Messages of a server to the driver `remote`: whatever comes, opening the device and a read end, and nothing
// but the bytes that were asked for is written.
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
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

void serve(int listener, const uint8_t* data, size_t size) {
  const int client = ::accept(listener, nullptr, nullptr);
  size_t sent = 0;
  if (data[0] & 1) {  // a greeting that is right
    remote::Message message;
    const auto properties = remote::wire::CreateProperties(message.builder(), 0, 1, 64, 1 << 20);
    const remote::Bytes welcome =
        message.to_client(remote::wire::CreateWelcome(message.builder(), 1, properties));
    const uint32_t header[2] = {static_cast<uint32_t>(welcome.size()), 0};
    ::send(client, header, sizeof header, MSG_NOSIGNAL);
    ::send(client, welcome.data(), welcome.size(), MSG_NOSIGNAL);
  }
  for (sent = 1; sent < size;) {
    const ssize_t count = ::send(client, data + sent, size - sent, MSG_NOSIGNAL);
    if (count <= 0) break;
    sent += static_cast<size_t>(count);
  }
  ::shutdown(client, SHUT_WR);
  char ignored[4096];
  while (::recv(client, ignored, sizeof ignored, 0) > 0) {
  }
  ::close(client);
}

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const halyard_host_services_t services = services_of_fuzzing();
  static const std::string path = "/tmp/halyard-fuzz-remote-" + std::to_string(::getpid()) + ".sock";
  if (size < 1) return 0;
  ::unlink(path.c_str());
  auto listening = remote::listen_unix(path);
  if (!listening) fuzz::finding(listening.error().message);
  // A blocking accept().
  const int listener = ::dup(listening->get());
  ::fcntl(listener, F_SETFL, 0);
  std::thread server([&] { serve(listener, data, size); });
  {
    remote::Runtime runtime;
    remote::Place place;
    place.transport = remote::Transport::unix_socket;
    place.path = path;
    place.patience = std::chrono::milliseconds(5000);
    auto opened = remote::Connection::open(services, runtime, place);
    if (opened) {
      remote::Device device(*opened);
      halyard_memory_request_t request = {};
      request.struct_size = sizeof request;
      request.size = 64;
      request.affinity = 1;
      halyard_memory_info_t info = {};
      info.struct_size = sizeof info;
      auto memory = device.allocate(request, false, info);
      if (memory && (*memory)->map(HALYARD_MAP_READ, 0, 64)) (*memory)->unmap();
      std::string reason;
      (void)device.grade("vmvx-bytecode-fb", {}, reason);
    }
  }
  server.join();
  ::close(listener);
  return 0;
}
