// Both ends of a measurement of vm-serve: an HTTP server of Boost.Beast that echoes bodies, and a client that
// repeats one request on many connections. benchmarks/serve.py runs them.
//
//   serve echo                                   prints its port, and serves until its standard input ends
//   serve load PORT CONNECTIONS SECONDS PATH [HEADER:VALUE] < BODY
//                                                prints {"requests": ..., "failures": ..., "seconds": ...,
//                                                "median_us": ..., "p99_us": ...}
#include <unistd.h>

#include <algorithm>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/connect.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <iterator>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace asio = boost::asio;
namespace http = boost::beast::http;
using tcp = asio::ip::tcp;
using boost::system::error_code;
using Clock = std::chrono::steady_clock;

namespace {

constexpr uint64_t kMaxBody = 64 << 20;

using Executor = asio::strand<asio::io_context::executor_type>;
using Socket = asio::basic_stream_socket<tcp, Executor>;
constexpr asio::use_awaitable_t<Executor> use_task;

asio::awaitable<void, Executor> echo(Socket socket) {
  boost::beast::flat_buffer buffer;
  buffer.reserve(64 << 10);  // Beast reads into what there is
  error_code error;
  for (;;) {
    http::request_parser<http::string_body> parser;
    parser.body_limit(kMaxBody);
    co_await http::async_read(socket, buffer, parser, asio::redirect_error(use_task, error));
    if (error) co_return;
    http::response<http::string_body> response(http::status::ok, 11);
    response.keep_alive(true);
    response.set(http::field::content_type, "application/octet-stream");
    response.body() = std::move(parser.get().body());
    response.prepare_payload();
    co_await http::async_write(socket, response, asio::redirect_error(use_task, error));
    if (error) co_return;
  }
}

asio::awaitable<void> accept_all(asio::io_context& io, tcp::acceptor& acceptor) {
  for (;;) {
    auto socket = co_await acceptor.async_accept(Executor(io.get_executor()), asio::use_awaitable);
    socket.set_option(tcp::no_delay(true));
    const Executor executor = socket.get_executor();
    asio::co_spawn(executor, echo(std::move(socket)), asio::detached);
  }
}

int serve_echo() {
  asio::io_context io;
  tcp::acceptor acceptor(io, {asio::ip::address_v4::loopback(), 0});
  std::printf("%u\n", acceptor.local_endpoint().port());
  std::fflush(stdout);
  asio::co_spawn(io, accept_all(io, acceptor), asio::detached);
  asio::posix::stream_descriptor input(io, ::dup(STDIN_FILENO));
  char byte = 0;
  input.async_read_some(asio::buffer(&byte, 1), [&](const error_code&, size_t) { io.stop(); });
  std::vector<std::thread> threads;
  for (unsigned i = 1; i < std::max(std::thread::hardware_concurrency(), 2u); ++i)
    threads.emplace_back([&] { io.run(); });
  io.run();
  for (std::thread& thread : threads) thread.join();
  return 0;
}

struct Load {
  std::string request;
  Clock::time_point end;
  size_t failures = 0;
  std::vector<float> microseconds;
};

// Of a response: where its body begins, and how long it is; 0 where the header is not complete.
size_t header_of(std::string_view data, size_t* body, bool* is_good) {
  const size_t end = data.find("\r\n\r\n");
  if (end == std::string_view::npos) return 0;
  constexpr std::string_view kLength = "\r\nContent-Length: ";
  const size_t length = data.find(kLength);
  *body = length < end ? std::strtoull(data.data() + length + kLength.size(), nullptr, 10) : 0;
  *is_good = data.starts_with("HTTP/1.1 200");
  return end + 4;
}

asio::awaitable<void> repeat(tcp::socket socket, Load& load) {
  error_code error;
  std::vector<char> buffer(256 << 10);
  while (Clock::now() < load.end) {
    const Clock::time_point begin = Clock::now();
    co_await asio::async_write(socket, asio::buffer(load.request),
                               asio::redirect_error(asio::use_awaitable, error));
    size_t filled = 0, header = 0, body = 0, received = 0;
    bool is_good = false;
    while (!error && (header == 0 || received < header + body)) {
      if (header != 0) filled = 0;  // bytes of the body are counted, not kept
      const size_t read =
          co_await socket.async_read_some(asio::buffer(buffer.data() + filled, buffer.size() - filled),
                                          asio::redirect_error(asio::use_awaitable, error));
      filled += read;
      received += read;
      if (header == 0) header = header_of({buffer.data(), filled}, &body, &is_good);
    }
    if (error || !is_good) {
      ++load.failures;
      if (error) co_return;
    }
    load.microseconds.push_back(std::chrono::duration<float, std::micro>(Clock::now() - begin).count());
  }
}

int run_load(int argc, char** argv) {
  const auto port = static_cast<unsigned short>(std::atoi(argv[2]));
  const int connections = std::atoi(argv[3]);
  const double seconds = std::atof(argv[4]);
  const std::string body{std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>()};
  Load load;
  load.request = std::string("POST ") + argv[5] +
                 " HTTP/1.1\r\nHost: localhost\r\nContent-Length: " + std::to_string(body.size()) + "\r\n";
  if (argc > 6) load.request += std::string(argv[6]) + "\r\n";
  load.request += "\r\n" + body;
  asio::io_context io(1);
  std::vector<tcp::socket> sockets;
  for (int i = 0; i < connections; ++i) {
    tcp::socket socket(io);
    socket.connect({asio::ip::address_v4::loopback(), port});
    socket.set_option(tcp::no_delay(true));
    sockets.push_back(std::move(socket));
  }
  const Clock::time_point begin = Clock::now();
  load.end = begin + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  for (tcp::socket& socket : sockets) asio::co_spawn(io, repeat(std::move(socket), load), asio::detached);
  io.run();
  const double took = std::chrono::duration<double>(Clock::now() - begin).count();
  std::ranges::sort(load.microseconds);
  const size_t count = load.microseconds.size();
  const auto at = [&](double part) {
    return count ? load.microseconds[static_cast<size_t>(part * static_cast<double>(count - 1))] : 0.0f;
  };
  std::printf(
      "{\"requests\": %zu, \"failures\": %zu, \"seconds\": %.3f, \"median_us\": %.1f, \"p99_us\": %.1f}\n",
      count, load.failures, took, at(0.5), at(0.99));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view what = argc > 1 ? argv[1] : "";
  if (what == "echo") return serve_echo();
  if (what == "load" && argc >= 6) return run_load(argc, argv);
  std::fprintf(stderr,
               "usage: serve echo | serve load PORT CONNECTIONS SECONDS PATH [HEADER:VALUE] < BODY\n");
  return 1;
}
