// The parts of a measurement of remote devices, which benchmarks/remote.py runs: a server that echoes bytes
// with plain Asio, a proxy that delays and counts, and clients of both servers.
//
//   remote echo ADDRESS...                 serves until its standard input ends; prints each address. ADDRESS
//   is
//                                          unix:PATH, tcp or tls:CERT:KEY:AUTHORITY
//   remote proxy PATH TARGET MILLISECONDS  a Unix socket in front of another one, which delays each
//   direction; for
//                                          each line of standard input prints what has passed since the last
//                                          one
//   remote exchange ADDRESS UP DOWN SECONDS        ADDRESS as above, or tcp:PORT, tls:PORT:CERT:KEY:AUTHORITY
//   remote call URI MODULE FUNCTION SIZE INPUTS SECONDS [read]
//   remote upload|download URI BYTES ROUNDS
//   remote start URI MODULE ARCHIVE        opens the device, and calls `start` of a module with parameters
//   (scope model):
//                                          prints {"open_us": ..., "start_us": ...}
//
// An exchange sends UP bytes and waits for DOWN bytes. Clients print {"count": ..., "least_us": ...,
// "median_us": ...}.
#include <unistd.h>

#include <algorithm>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/connect.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "program.h"

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using Clock = std::chrono::steady_clock;
using UnixProtocol = asio::local::stream_protocol;

namespace {

std::vector<std::string> parts_of(const std::string& text) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(':', begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

void until_input_ends(asio::io_context& io, asio::posix::stream_descriptor& input, char& byte) {
  input.async_read_some(asio::buffer(&byte, 1), [&](const error_code& error, size_t) {
    if (error) return io.stop();
    until_input_ends(io, input, byte);
  });
}

// Both ends have certificates, as those of remote devices.
asio::ssl::context tls_of(asio::ssl::context::method method, const std::string& certificate,
                          const std::string& key, const std::string& authority) {
  asio::ssl::context context(method);
  context.use_certificate_chain_file(certificate);
  context.use_private_key_file(key, asio::ssl::context::pem);
  context.load_verify_file(authority);
  context.set_verify_mode(asio::ssl::verify_peer | asio::ssl::verify_fail_if_no_peer_cert);
  return context;
}

// ---- The echo

struct Sizes {
  uint64_t up;  // with these two numbers
  uint64_t down;
};

constexpr uint64_t kMaxExchange = uint64_t{1} << 30;

template <typename Socket>
asio::awaitable<void> echo(std::shared_ptr<Socket> socket) {
  std::vector<uint8_t> bytes;
  error_code error;
  auto token = asio::redirect_error(asio::use_awaitable, error);
  for (;;) {
    Sizes sizes = {};
    bytes.resize(std::max<size_t>(bytes.size(), sizeof sizes));
    // As much as has come at once, as a server would.
    size_t done =
        co_await asio::async_read(*socket, asio::buffer(bytes), asio::transfer_at_least(sizeof sizes), token);
    if (error) co_return;
    std::memcpy(&sizes, bytes.data(), sizeof sizes);
    if (sizes.up > kMaxExchange || sizes.down > kMaxExchange) co_return;
    bytes.resize(std::max({bytes.size(), sizes.up, sizes.down}));
    if (done < sizes.up)
      co_await asio::async_read(*socket, asio::buffer(bytes.data() + done, sizes.up - done), token);
    if (error) co_return;
    co_await asio::async_write(*socket, asio::buffer(bytes.data(), sizes.down), token);
    if (error) co_return;
  }
}

template <typename Protocol>
asio::awaitable<void> serve_plain(asio::io_context& io, typename Protocol::acceptor acceptor) {
  for (;;) {
    auto socket =
        std::make_shared<typename Protocol::socket>(co_await acceptor.async_accept(asio::use_awaitable));
    if constexpr (std::is_same_v<Protocol, tcp>) socket->set_option(tcp::no_delay(true));
    asio::co_spawn(io, echo(std::move(socket)), asio::detached);
  }
}

asio::awaitable<void> serve_tls(asio::io_context& io, tcp::acceptor acceptor, asio::ssl::context context) {
  for (;;) {
    tcp::socket plain = co_await acceptor.async_accept(asio::use_awaitable);
    plain.set_option(tcp::no_delay(true));
    auto socket = std::make_shared<asio::ssl::stream<tcp::socket>>(std::move(plain), context);
    asio::co_spawn(
        io,
        [](std::shared_ptr<asio::ssl::stream<tcp::socket>> stream) -> asio::awaitable<void> {
          error_code error;
          co_await stream->async_handshake(asio::ssl::stream_base::server,
                                           asio::redirect_error(asio::use_awaitable, error));
          if (!error) co_await echo(std::move(stream));
        }(std::move(socket)),
        asio::detached);
  }
}

int run_echo(int argc, char** argv) {
  asio::io_context io(1);
  for (int i = 2; i < argc; ++i) {
    const std::vector<std::string> parts = parts_of(argv[i]);
    if (parts[0] == "unix" && parts.size() == 2) {
      asio::co_spawn(
          io, serve_plain<UnixProtocol>(io, UnixProtocol::acceptor(io, UnixProtocol::endpoint(parts[1]))),
          asio::detached);
      std::printf("%s\n", argv[i]);
      continue;
    }
    tcp::acceptor acceptor(io, {asio::ip::address_v4::loopback(), 0});
    const unsigned port = acceptor.local_endpoint().port();
    if (parts[0] == "tls" && parts.size() == 4) {
      std::printf("tls:%u:%s:%s:%s\n", port, parts[1].c_str(), parts[2].c_str(), parts[3].c_str());
      asio::co_spawn(io,
                     serve_tls(io, std::move(acceptor),
                               tls_of(asio::ssl::context::tlsv13_server, parts[1], parts[2], parts[3])),
                     asio::detached);
    } else {
      std::printf("tcp:%u\n", port);
      asio::co_spawn(io, serve_plain<tcp>(io, std::move(acceptor)), asio::detached);
    }
  }
  std::fflush(stdout);
  asio::posix::stream_descriptor input(io, ::dup(STDIN_FILENO));
  char byte = 0;
  until_input_ends(io, input, byte);
  io.run();
  return 0;
}

// ---- The proxy

struct Passed {
  uint64_t up = 0, down = 0;  // bytes
  uint64_t turns = 0;         // how often bytes came from the client after bytes of the server
  bool is_answered = true;    // the last bytes came from the server
};

// Each piece of bytes is passed on so long after it has come.
asio::awaitable<void> pass_on(std::shared_ptr<UnixProtocol::socket> from,
                              std::shared_ptr<UnixProtocol::socket> to, bool is_up,
                              std::chrono::milliseconds delay, Passed& passed) {
  struct Piece {
    Clock::time_point due;
    std::vector<uint8_t> bytes;
  };
  auto pieces = std::make_shared<std::vector<Piece>>();
  auto timer = std::make_shared<asio::steady_timer>(from->get_executor(), Clock::time_point::max());
  auto is_ended = std::make_shared<bool>(false);
  asio::co_spawn(
      from->get_executor(),
      [](auto sink, auto queue, auto wake, auto end) -> asio::awaitable<void> {
        error_code error;
        for (;;) {
          if (queue->empty()) {
            if (*end) break;
            wake->expires_at(Clock::time_point::max());
            co_await wake->async_wait(asio::redirect_error(asio::use_awaitable, error));
            continue;
          }
          if (queue->front().due > Clock::now()) {
            asio::steady_timer until(sink->get_executor(), queue->front().due);
            co_await until.async_wait(asio::redirect_error(asio::use_awaitable, error));
          }
          const std::vector<uint8_t> bytes = std::move(queue->front().bytes);
          queue->erase(queue->begin());
          co_await asio::async_write(*sink, asio::buffer(bytes),
                                     asio::redirect_error(asio::use_awaitable, error));
          if (error) break;
        }
        sink->shutdown(UnixProtocol::socket::shutdown_both, error);
      }(to, pieces, timer, is_ended),
      asio::detached);
  error_code error;
  for (;;) {
    std::vector<uint8_t> bytes(256 << 10);
    bytes.resize(co_await from->async_read_some(asio::buffer(bytes),
                                                asio::redirect_error(asio::use_awaitable, error)));
    if (error) break;
    (is_up ? passed.up : passed.down) += bytes.size();
    if (is_up && passed.is_answered) ++passed.turns;
    passed.is_answered = !is_up;
    pieces->push_back({Clock::now() + delay, std::move(bytes)});
    timer->cancel();
  }
  *is_ended = true;
  timer->cancel();
}

asio::awaitable<void> accept_clients(asio::io_context& io, UnixProtocol::acceptor& acceptor,
                                     std::string target, std::chrono::milliseconds delay, Passed& passed) {
  for (;;) {
    auto client = std::make_shared<UnixProtocol::socket>(co_await acceptor.async_accept(asio::use_awaitable));
    auto server = std::make_shared<UnixProtocol::socket>(io);
    co_await server->async_connect(UnixProtocol::endpoint(target), asio::use_awaitable);
    asio::co_spawn(io, pass_on(client, server, true, delay, passed), asio::detached);
    asio::co_spawn(io, pass_on(server, client, false, delay, passed), asio::detached);
  }
}

int run_proxy(char** argv) {
  asio::io_context io(1);
  Passed passed;
  UnixProtocol::acceptor acceptor(io, UnixProtocol::endpoint(argv[2]));
  asio::co_spawn(io,
                 accept_clients(io, acceptor, argv[3], std::chrono::milliseconds(std::atoi(argv[4])), passed),
                 asio::detached);
  std::printf("ready\n");
  std::fflush(stdout);
  std::thread serving([&] { io.run(); });
  for (std::string line; std::getline(std::cin, line);) {
    asio::post(io, [&] {
      std::printf("{\"up\": %lu, \"down\": %lu, \"turns\": %lu}\n", passed.up, passed.down, passed.turns);
      std::fflush(stdout);
      passed = {};
    });
  }
  io.stop();
  serving.join();
  return 0;
}

// ---- Clients

double microseconds_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
}

// Runs `once` for so many seconds, but at least ten times, and prints the times.
template <typename Once>
int timed(double seconds, Once once) {
  for (int i = 0; i < 5; ++i) once();  // warm-up
  std::vector<double> times;
  const Clock::time_point begin = Clock::now();
  while (times.size() < 10 || microseconds_since(begin) < seconds * 1e6) {
    const Clock::time_point start = Clock::now();
    once();
    times.push_back(microseconds_since(start));
  }
  std::ranges::sort(times);
  std::printf("{\"count\": %zu, \"least_us\": %.2f, \"median_us\": %.2f}\n", times.size(), times.front(),
              times[times.size() / 2]);
  return 0;
}

template <typename Socket>
int exchange_over(Socket& socket, uint64_t up, uint64_t down, double seconds) {
  const Sizes sizes = {std::max<uint64_t>(up, sizeof(Sizes)), down};
  std::vector<uint8_t> sent(sizes.up), received(down);
  std::memcpy(sent.data(), &sizes, sizeof sizes);
  return timed(seconds, [&] {
    asio::write(socket, asio::buffer(sent));
    asio::read(socket, asio::buffer(received));
  });
}

int run_exchange(char** argv) {
  const std::vector<std::string> parts = parts_of(argv[2]);
  const uint64_t up = std::strtoull(argv[3], nullptr, 10), down = std::strtoull(argv[4], nullptr, 10);
  const double seconds = std::atof(argv[5]);
  asio::io_context io(1);
  if (parts[0] == "unix") {
    UnixProtocol::socket socket(io);
    socket.connect(UnixProtocol::endpoint(parts.at(1)));
    return exchange_over(socket, up, down, seconds);
  }
  tcp::socket socket(io);
  socket.connect({asio::ip::address_v4::loopback(), static_cast<uint16_t>(std::stoul(parts.at(1)))});
  socket.set_option(tcp::no_delay(true));
  if (parts[0] == "tcp") return exchange_over(socket, up, down, seconds);
  asio::ssl::context context =
      tls_of(asio::ssl::context::tlsv13_client, parts.at(2), parts.at(3), parts.at(4));
  asio::ssl::stream<tcp::socket> stream(std::move(socket), context);
  stream.handshake(asio::ssl::stream_base::client);
  return exchange_over(stream, up, down, seconds);
}

// Whole warm calls. With `read` each call has new inputs, and its result is read.
int run_call(int argc, char** argv) {
  Program program;
  program.open_device(argv[2]);
  require(halyard_module_load_file(program.instance, argv[3], 0, &program.module));
  program.link(argv[4]);
  const auto size = static_cast<size_t>(std::atoi(argv[5]));
  const auto inputs = static_cast<size_t>(std::atoi(argv[6]));
  const double seconds = std::atof(argv[7]);
  const bool reads = argc > 8;
  const std::vector<float> ones(size, 1.0f);
  std::vector<int64_t> shape = {static_cast<int64_t>(size)};
  if (std::string_view(argv[4]) == "chain") shape = {16, static_cast<int64_t>(size) / 16};
  std::vector<halyard_value_t> arguments;
  for (size_t i = 0; i < inputs; ++i) arguments.push_back(program.view(ones, shape));
  std::vector<float> result_bytes(size);
  halyard_value_t result = {};
  return timed(seconds, [&] {
    if (reads)
      for (halyard_value_t& argument : arguments) {
        halyard_release(argument.object);
        argument = program.view(ones, shape);
      }
    halyard_release(result.object);
    require(
        halyard_call_invoke(program.call, program.function, arguments.data(), arguments.size(), &result, 1));
    if (reads)
      require(halyard_view_read(result.object, 0, result_bytes.data(), result_bytes.size() * sizeof(float)));
  });
}

// Bytes of this process to new memory of the device, or back. The end of an upload is known when its first
// byte, asked for after it, has come.
int run_copy(char** argv, bool is_upload) {
  Program program;
  program.open_device(argv[2]);
  const auto size = static_cast<size_t>(std::strtoull(argv[3], nullptr, 10));
  const int rounds = std::atoi(argv[4]);
  std::vector<uint8_t> bytes(size, 7), back(size);
  const auto length = static_cast<int64_t>(size);
  constexpr uint32_t kU8 = 0x10000008;
  halyard_object_t view = nullptr;
  std::vector<double> times;
  for (int i = 0; i < rounds + 2; ++i) {
    bytes[0] = static_cast<uint8_t>(i);
    Clock::time_point begin = Clock::now();
    if (is_upload || !view) {
      halyard_release(view);
      begin = Clock::now();
      require(halyard_view_create(program.device, kU8, &length, 1, bytes.data(), size, &view));
      require(halyard_view_read(view, 0, back.data(), 1));
      if (back[0] != bytes[0]) std::exit(1);
    }
    if (!is_upload) {
      begin = Clock::now();
      require(halyard_view_read(view, 0, back.data(), size));
      if (back[size - 1] != 7) std::exit(1);
    }
    if (i >= 2) times.push_back(microseconds_since(begin));
  }
  std::ranges::sort(times);
  std::printf("{\"count\": %zu, \"least_us\": %.2f, \"median_us\": %.2f}\n", times.size(), times.front(),
              times[times.size() / 2]);
  return 0;
}

int run_start(char** argv) {
  const Clock::time_point begin = Clock::now();
  Program program;
  program.open_device(argv[2]);
  const double opened = microseconds_since(begin);
  require(halyard_module_load_file(program.instance, argv[3], 0, &program.module));
  const halyard_parameter_file_t weights = {"model", argv[4]};
  halyard_context_options_t options = {};
  options.struct_size = sizeof options;
  options.modules = &program.module;
  options.module_count = 1;
  options.devices = &program.device;
  options.device_count = 1;
  options.parameters = &weights;
  options.parameter_count = 1;
  require(halyard_context_create(program.instance, &options, &program.context));
  require(halyard_context_find(program.context, nullptr, "start", &program.function));
  require(halyard_call_create(program.context, &program.call));
  halyard_value_t count = {};
  require(halyard_call_invoke(program.call, program.function, nullptr, 0, &count, 1));
  std::printf("{\"open_us\": %.0f, \"start_us\": %.0f}\n", opened, microseconds_since(begin));
  // As a program ends: a device keeps what it has learnt.
  halyard_release(program.call);
  halyard_release(program.function);
  halyard_release(program.context);
  halyard_release(program.module);
  halyard_release(program.device);
  halyard_release(program.instance);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view what = argc > 1 ? argv[1] : "";
  try {
    if (what == "echo" && argc > 2) return run_echo(argc, argv);
    if (what == "proxy" && argc == 5) return run_proxy(argv);
    if (what == "exchange" && argc == 6) return run_exchange(argv);
    if (what == "call" && argc >= 8) return run_call(argc, argv);
    if (what == "upload" && argc == 5) return run_copy(argv, true);
    if (what == "download" && argc == 5) return run_copy(argv, false);
    if (what == "start" && argc == 5) return run_start(argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  std::fprintf(stderr, "usage: see the head of benchmarks/remote.cpp\n");
  return 1;
}
