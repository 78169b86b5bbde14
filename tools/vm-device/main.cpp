// vm-device: offers devices to clients on this machine and on others, for the driver `remote`.
#include <fcntl.h>
#include <pwd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <thread>

#include "common/drivers.h"
#include "common/interrupt.h"
#include "common/standard_streams.h"
#include "common/systemd.h"
#include "common/tool.h"
#include "device_flags.h"
#include "server/server.h"

namespace halyard::tools {

namespace {

using device_server::Limits;
using device_server::Server;
using device_server::ServerOptions;

constexpr const Flag* kOfferedFlags[] = {&flag::offered_device, &flag::run_native, &flag::one_process,
                                         &flag::files, &flag::driver};
constexpr const Flag* kConnectionFlags[] = {&flag::listen,    &flag::cert,       &flag::key,
                                            &flag::client_ca, &flag::allow_user, &flag::insecure,
                                            &flag::metrics,   &flag::busy_poll};
constexpr const Flag* kLimitFlags[] = {
    &flag::device_connections, &flag::client_connections, &flag::max_handles,   &flag::client_memory,
    &flag::max_cache,          &flag::max_time,           &flag::device_threads};

constexpr FlagGroup kGroups[] = {
    {"Devices", kOfferedFlags},
    {"Connections", kConnectionFlags},
    {"Limits of clients", kLimitFlags},
};

constexpr ExitCode kExitCodes[] = {
    {0, "Ended by SIGTERM or Ctrl-C."},
    {1, "The server could not start; standard error says why."},
};

constexpr ToolDescription kTool = {"vm-device",
                                   "vm-device --device=URI --listen=ADDRESS [flags]",
                                   "Offers devices of this machine to programs on other machines, over TLS, "
                                   "or to other users of this machine, over Unix "
                                   "sockets. Clients name such a device by remote://HOST:PORT/DEVICE or "
                                   "remote+unix:///PATH. Their memory, time and number "
                                   "of objects are limited. More: docs/remote.md.",
                                   kGroups,
                                   "  vm-device --device=local-task --listen=unix:///tmp/device.sock\n"
                                   "  vm-run --device=remote+unix:///tmp/device.sock "
                                   "--module=simple_mul.vmasm --function=simple_mul --input=4xf32=2 "
                                   "--input=4xf32=3\n"
                                   "  vm-device --device=vulkan://0 --listen=tls://0.0.0.0:9414 "
                                   "--cert=server.pem --key=server.key --client_ca=ca.pem\n",
                                   kExitCodes};

Failure to_tool(const remote::Failure& failure) { return {.code = failure.code, .text = failure.message}; }

template <typename T>
Result<T> to_tool(remote::Result<T> result) {
  if (!result) return std::unexpected(to_tool(result.error()));
  if constexpr (std::is_void_v<T>) {
    return {};
  } else {
    return *std::move(result);
  }
}

Result<uint64_t> at_least_one(const Flags& flags, const Number& flag) {
  const uint64_t number = TOOL_TRY(flags[flag]);
  if (number == 0) return wrong_value(flag, "0", "at least 1");
  return number;
}

Result<Limits> limits_of(const Flags& flags) {
  Limits limits;
  limits.connections = TOOL_TRY(at_least_one(flags, flag::device_connections));
  limits.connections_of_client = TOOL_TRY(at_least_one(flags, flag::client_connections));
  limits.handles = TOOL_TRY(at_least_one(flags, flag::max_handles));
  limits.memory = TOOL_TRY(flags[flag::client_memory]).value_or(limits.memory);
  limits.cache = TOOL_TRY(flags[flag::max_cache]).value_or(limits.cache);
  if (const auto time = TOOL_TRY(flags[flag::max_time]))
    limits.work_time = std::chrono::ceil<std::chrono::milliseconds>(*time);
  constexpr uint64_t kLongestPoll = 1000;
  const uint64_t polled = TOOL_TRY(flags[flag::busy_poll]);
  if (polled > kLongestPoll)
    return wrong_value(flag::busy_poll, std::to_string(polled), fmt::format("at most {}", kLongestPoll));
  limits.busy_poll = std::chrono::microseconds(polled);
  return limits;
}

Result<std::vector<uid_t>> users_of(const Flags& flags) {
  std::vector<uid_t> users;
  for (const std::string& name : flags[flag::allow_user]) {
    const passwd* const found = ::getpwnam(name.c_str());
    if (!found) return fail(HALYARD_NOT_FOUND, "there is no user '{}' ({})", name, flag::allow_user);
    users.push_back(found->pw_uid);
  }
  return users;
}

// The drivers that the search of the library finds.
Result<std::vector<std::string>> driver_files(const Flags& flags) {
  TOOL_TRY(check_drivers(flags));
  const Instance instance = TOOL_TRY(make_instance(flags));
  const DriverSearch search = TOOL_TRY(DriverSearch::of(instance));
  std::vector<std::string> files;
  for (const halyard_search_entry_t& entry : search.entries())
    if (is_accepted_driver(entry)) files.emplace_back(entry.path);
  return files;
}

struct Address {
  remote::ListenAddress at;
  std::string text;
};

Result<std::vector<Address>> addresses_of(const Flags& flags) {
  std::vector<Address> addresses;
  for (const std::string& text : flags[flag::listen])
    addresses.push_back({TOOL_TRY(to_tool(remote::parse_listen_address(text))), text});
  if (addresses.empty())
    return fail(HALYARD_INVALID_ARGUMENT, "no address to listen on; add {}", flag::listen.example);
  return addresses;
}

Result<std::shared_ptr<remote::TlsContext>> tls_of(const Flags& flags) {
  for (const Text* const flag : {&flag::cert, &flag::key, &flag::client_ca})
    if (!flags.has(*flag))
      return fail(HALYARD_INVALID_ARGUMENT, "tls:// addresses need {}, {} and {}; {} is missing", flag::cert,
                  flag::key, flag::client_ca, *flag);
  return to_tool(remote::TlsContext::create(remote::TlsSide::server,
                                            {flags[flag::cert], flags[flag::key], flags[flag::client_ca]}));
}

bool is_unix_socket(int descriptor) {
  sockaddr_storage own = {};
  socklen_t size = sizeof own;
  return ::getsockname(descriptor, reinterpret_cast<sockaddr*>(&own), &size) == 0 && own.ss_family == AF_UNIX;
}

// Unix sockets as they are; others have the TLS of the flags.
Result<std::vector<std::string>> listen_inherited(Server& server, const Flags& flags) {
  std::vector<std::string> texts;
  for (const int descriptor : TOOL_TRY(inherited_sockets())) {
    remote::Descriptor socket(descriptor);
    ::fcntl(descriptor, F_SETFL, O_NONBLOCK);
    const bool is_unix = is_unix_socket(descriptor);
    texts.push_back(is_unix ? fmt::format("fd://{} (a Unix socket)", descriptor)
                            : fmt::format("fd://{} (port {}, TLS)", descriptor, remote::port_of(descriptor)));
    server.listen(std::move(socket), is_unix ? nullptr : TOOL_TRY(tls_of(flags)));
  }
  if (texts.empty())
    return fail(HALYARD_INVALID_ARGUMENT,
                "fd:// was given to {}, but no sockets were passed to this process: $LISTEN_FDS is not set; "
                "start it by a socket unit of systemd",
                flag::listen);
  return texts;
}

// The printed text names the port.
Result<std::string> listen(Server& server, const Address& address, bool is_insecure,
                           const std::shared_ptr<remote::TlsContext>& tls) {
  const remote::ListenAddress& at = address.at;
  if (at.transport == remote::Transport::unix_socket) {
    server.listen(TOOL_TRY(to_tool(remote::listen_unix(at.path))), nullptr);
    return address.text;
  }
  remote::Descriptor socket = TOOL_TRY(to_tool(remote::listen_tcp(at.tcp)));
  const bool is_tls = at.transport == remote::Transport::tls;
  if (!is_tls && !is_insecure && !remote::is_loopback(socket.get()))
    return fail(HALYARD_PERMISSION_DENIED,
                "'{}' would offer the devices to everybody who can reach the port; use tls://, or add {} in "
                "a network that you "
                "trust",
                address.text, flag::insecure);
  std::string text = fmt::format("{}{}", is_tls ? "tls://" : "tcp://",
                                 remote::HostPort{at.tcp.host, remote::port_of(socket.get())}.text());
  server.listen(std::move(socket), is_tls ? tls : nullptr);
  return text;
}

Result<int> vm_device(const Flags& flags) {
  ServerOptions options;
  options.devices = flags[flag::offered_device];
  if (options.devices.empty())
    return fail(HALYARD_INVALID_ARGUMENT, "no device to offer; add {}", flag::offered_device.example);
  const std::vector<Address> addresses = TOOL_TRY(addresses_of(flags));
  options.limits = TOOL_TRY(limits_of(flags));
  options.users = TOOL_TRY(users_of(flags));
  options.allows_native = flags[flag::run_native];
  options.isolates = !flags[flag::one_process];
  options.file_folders = flags[flag::files];
  options.driver_files = TOOL_TRY(driver_files(flags));
  options.log = [](std::string_view line) { print_error("vm-device: {}\n", line); };
  const uint64_t threads = flags.has(flag::device_threads)
                               ? TOOL_TRY(at_least_one(flags, flag::device_threads))
                               : std::max(std::thread::hardware_concurrency(), 4u);
  std::shared_ptr<remote::TlsContext> tls;
  if (std::ranges::any_of(addresses,
                          [](const Address& it) { return it.at.transport == remote::Transport::tls; }))
    tls = TOOL_TRY(tls_of(flags));

  const std::unique_ptr<Server> server = TOOL_TRY(to_tool(Server::create(std::move(options))));
  std::vector<std::string> texts;
  for (const Address& address : addresses) {
    if (address.at.transport == remote::Transport::inherited) {
      const auto inherited = TOOL_TRY(listen_inherited(*server, flags));
      texts.insert(texts.end(), inherited.begin(), inherited.end());
    } else {
      texts.push_back(TOOL_TRY(listen(*server, address, flags[flag::insecure], tls)));
    }
  }
  if (flags.has(flag::metrics)) {
    const remote::HostPort at = TOOL_TRY(to_tool(remote::parse_host_port(flags[flag::metrics])));
    remote::Descriptor socket = TOOL_TRY(to_tool(remote::listen_tcp(at)));
    texts.push_back("http://" + remote::HostPort{at.host, remote::port_of(socket.get())}.text() + "/metrics");
    server->listen_page(std::move(socket));
  }
  const Notifier notifier;
  // Signals are caught before the address is printed, because a process that reads the address may send some.
  {
    const Interrupt interrupt([&] { server->stop(); });
    for (const std::string& text : texts) fmt::print("vm-device: {}\n", text);
    std::fflush(stdout);
    notifier.send("READY=1");
    server->run(static_cast<unsigned>(threads));
    notifier.send("STOPPING=1");
  }
  for (const Address& address : addresses)
    if (address.at.transport == remote::Transport::unix_socket) ::unlink(address.at.path.c_str());
  return 0;
}

}  // namespace

}  // namespace halyard::tools

int main(int argc, char** argv) {
  return halyard::tools::run_tool(halyard::tools::kTool, argc, argv, halyard::tools::vm_device);
}
