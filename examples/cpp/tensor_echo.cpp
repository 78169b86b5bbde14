// A TCP server that gives tensors back, each by a call of an asynchronous function: two threads, one
// io_context, any number of calls in flight. docs/embedding.md explains the parts.
//
//   tensor-echo [--port=0] [--threads=2] [--limit=10000] [--hold=0]
//
// --limit is the number of calls in flight at which it stops reading. With --hold=N the calls wait until N
// are in flight, as they would for input that arrives later; that shows that a call that waits costs no
// thread. It prints the port, and at SIGTERM or SIGINT what it did.
//
// PROTOCOL. Little-endian, as the processors that this is for. A request is a header, `rank` times int64_t,
// and the elements, dense and row-major. A response is the same with the request's id, or has a status that
// is not 0, and `size` bytes of text. Requests of a connection are answered as they finish.
// clang-format off: first, because headers of Boost 1.74 need it and do not include it
#include <utility>
// clang-format on

#include <algorithm>
#include <atomic>
#include <boost/asio.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <halyard/asio.hpp>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace asio = boost::asio;
using asio::use_awaitable;
using asio::ip::tcp;

namespace {

struct Header {
  uint64_t id;
  uint32_t status;        // 0, or HALYARD_* of a failure
  uint32_t element_type;  // HALYARD_ELEMENT_*
  uint32_t rank;
  uint32_t reserved;
  uint64_t size;  // bytes of the elements
};
static_assert(sizeof(Header) == 32);
constexpr uint32_t kMaxRank = 16;
constexpr uint64_t kMaxSize = 64u << 20;

// Waits for a fence, then gives its argument back and signals another fence.
constexpr std::string_view kProgram = R"(
vm.module @echo
vm.dependency @hal 7
vm.import @hal.fence.await cconv "0iICrD_i"
vm.import @hal.fence.signal cconv "0r_v"
vm.export @echo
vm.func @echo(%r0: !hal.buffer_view, %r1: !hal.fence, %r2: !hal.fence) -> (!hal.buffer_view) {
  %i0 = vm.const.i32 -1
  %i2:3 = vm.const.i64.zero
  vm.call.variadic.yieldable @hal.fence.await segments[65535, 65535, 1](%i0, %i2:3, %r1) -> ^bb1(%i1)
^bb1:
  vm.cond_br %i1, ^bb2, ^bb3
^bb2:
  vm.fail %i1, "the input has failed"
^bb3:
  vm.call @hal.fence.signal(%r2)
  vm.return %R0
}
)";

struct Options {
  uint16_t port = 0;
  int threads = 2;
  int limit = 10000;
  int hold = 0;
};

// The program, and the handles of calls that are not in use. Any thread.
class Model {
 public:
  using Call = halyard::BasicAsyncCall<asio::io_context::executor_type>;

  Model(asio::io_context& io, const Options& options)
      : io_(io),
        options_(options),
        instance_(halyard::Instance::create()),  // starts no thread, because no call has a time limit
        device_(instance_.open("local-sync")),
        // The program has no state: its calls may run at the same time.
        context_(
            halyard::Context::create(instance_, {.modules = {halyard::Module::from_text(instance_, kProgram)},
                                                 .devices = {device_},
                                                 .flags = HALYARD_CONTEXT_CONCURRENT_CALLS})),
        echo_(context_.find("echo")),
        gate_(options.hold > 0 ? halyard::Fence::create(device_) : halyard::Fence()) {}

  // The tensor that the program gives back for it.
  asio::awaitable<halyard::Tensor> run(halyard::Tensor tensor) {
    Call call = take();
    const halyard::Fence done = halyard::Fence::create(device_);
    const int in_flight = ++in_flight_;
    for (int most = most_; in_flight > most && !most_.compare_exchange_weak(most, in_flight);) {
    }
    if (in_flight == options_.hold) gate_.signal();
    std::exception_ptr failure;
    halyard::Tensor result;
    try {
      result = co_await halyard::async_call<halyard::Tensor>(
          call, echo_, halyard::arguments(tensor, gate_, done), use_awaitable);
      co_await halyard::async_wait(done, use_awaitable);
    } catch (...) {
      failure = std::current_exception();
    }
    --in_flight_;
    ++served_;
    give_back(std::move(call));
    if (failure) std::rethrow_exception(failure);
    co_return result;
  }

  // The elements in place: the buffer is the tensor's memory, and goes with it.
  halyard::Tensor import(const Header& header, const std::vector<int64_t>& shape,
                         const std::shared_ptr<std::byte>& bytes) {
    return halyard::Tensor::import(device_, static_cast<halyard::ElementType>(header.element_type), shape,
                                   bytes.get(), header.size, bytes);
  }
  bool is_full() const { return in_flight_ >= options_.limit; }
  // Lets those that still wait fail.
  void stop() {
    if (gate_) gate_.fail(halyard::Error(halyard::StatusCode::CANCELLED, "the server stops"));
  }
  void print() const {
    std::printf("served %d requests, at most %d in flight\n", served_.load(), most_.load());
  }

 private:
  Call take() {
    const std::lock_guard lock(mutex_);
    if (idle_.empty()) return Call::create(io_.get_executor(), context_);
    Call call = std::move(idle_.back());
    idle_.pop_back();
    return call;
  }
  void give_back(Call call) {
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(call));
  }

  asio::io_context& io_;
  const Options options_;
  halyard::Instance instance_;
  halyard::Device device_;
  halyard::Context context_;
  halyard::Function echo_;
  halyard::Fence gate_;
  std::mutex mutex_;
  std::vector<Call> idle_;
  std::atomic<int> in_flight_ = 0;
  std::atomic<int> most_ = 0;
  std::atomic<int> served_ = 0;
};

// A connection; all on its strand, which the socket's executor is. The reader, the writer and the requests
// share it.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(tcp::socket socket, Model& model)
      : socket_(std::move(socket)), changed_(socket_.get_executor()), model_(model) {}

  void start() {
    asio::co_spawn(
        socket_.get_executor(), [self = shared_from_this()] { return self->read(); }, asio::detached);
    asio::co_spawn(
        socket_.get_executor(), [self = shared_from_this()] { return self->write(); }, asio::detached);
  }
  // Any thread.
  void close() {
    asio::post(socket_.get_executor(), [self = shared_from_this()] { self->close_here(); });
  }

 private:
  struct Response {
    Header header = {};
    std::vector<int64_t> shape = {};
    halyard::Tensor tensor = {};
    std::string text = {};
  };

  void close_here() {
    is_closed_ = true;
    boost::system::error_code ignored;
    (void)socket_.close(ignored);
    changed_.cancel();
  }
  // Waits until something has changed, which is said by cancelling the timer.
  asio::awaitable<void> change() {
    changed_.expires_at(std::chrono::steady_clock::time_point::max());
    boost::system::error_code cancelled;
    co_await changed_.async_wait(asio::redirect_error(use_awaitable, cancelled));
  }

  asio::awaitable<void> read() {
    try {
      while (!is_closed_) {
        Header header = {};
        co_await asio::async_read(socket_, asio::buffer(&header, sizeof header), use_awaitable);
        if (header.rank > kMaxRank || header.size > kMaxSize) break;  // the rest cannot be understood
        std::vector<int64_t> shape(header.rank);
        co_await asio::async_read(socket_, asio::buffer(shape), use_awaitable);
        constexpr std::align_val_t kAlignment{64};  // that devices use in place
        const std::shared_ptr<std::byte> bytes(
            static_cast<std::byte*>(::operator new(std::max<size_t>(header.size, 1), kAlignment)),
            [](std::byte* memory) { ::operator delete(memory, std::align_val_t{64}); });
        co_await asio::async_read(socket_, asio::buffer(bytes.get(), header.size), use_awaitable);
        ++serving_;
        asio::co_spawn(
            socket_.get_executor(),
            [self = shared_from_this(), header, shape, bytes] { return self->serve(header, shape, bytes); },
            asio::detached);
        while (model_.is_full() && !is_closed_) {
          asio::steady_timer pause(socket_.get_executor(), std::chrono::milliseconds(1));
          co_await pause.async_wait(use_awaitable);
        }
      }
    } catch (const boost::system::system_error&) {  // the peer has gone
    }
    is_read_ = true;
    changed_.cancel();
  }

  asio::awaitable<void> serve(Header header, std::vector<int64_t> shape, std::shared_ptr<std::byte> bytes) {
    Response response;
    try {
      response.tensor = co_await model_.run(model_.import(header, shape, bytes));
      response.shape = std::move(shape);
      response.header = header;
    } catch (const halyard::Error& error) {
      response.text = error.what();
      response.header.status = static_cast<uint32_t>(error.code());
      response.header.size = response.text.size();
      response.tensor = halyard::Tensor();
    }
    response.header.id = header.id;
    --serving_;
    responses_.push_back(std::move(response));
    changed_.cancel();
  }

  asio::awaitable<void> write() {
    try {
      while (!is_closed_) {
        if (responses_.empty()) {
          if (is_read_ && serving_ == 0) break;  // all is answered
          co_await change();
          continue;
        }
        const Response response = std::move(responses_.front());
        responses_.pop_front();
        std::vector<asio::const_buffer> parts = {asio::buffer(&response.header, sizeof response.header),
                                                 asio::buffer(response.shape), asio::buffer(response.text)};
        std::optional<halyard::Mapping<std::byte>> elements;
        if (response.tensor) {
          elements = response.tensor.map_bytes(halyard::Access::read);
          parts.push_back(asio::buffer(elements->data(), elements->size()));
        }
        co_await asio::async_write(socket_, parts, use_awaitable);
      }
    } catch (const boost::system::system_error&) {  // the peer has gone
    }
    close_here();
  }

  tcp::socket socket_;
  asio::steady_timer changed_;
  Model& model_;
  std::deque<Response> responses_;
  int serving_ = 0;
  bool is_read_ = false;
  bool is_closed_ = false;
};

class Server {
 public:
  Server(asio::io_context& io, const Options& options)
      : model_(io, options),
        acceptor_(asio::make_strand(io), tcp::endpoint(asio::ip::address_v4::loopback(), options.port)),
        signals_(acceptor_.get_executor(), SIGINT, SIGTERM) {
    std::printf("listening on 127.0.0.1:%d\n", acceptor_.local_endpoint().port());
    std::fflush(stdout);
    asio::co_spawn(acceptor_.get_executor(), accept(), asio::detached);
    signals_.async_wait([this](const boost::system::error_code& error, int) {
      if (!error) stop();
    });
  }
  void print() const { model_.print(); }

 private:
  asio::awaitable<void> accept() {
    for (;;) {
      boost::system::error_code error;
      tcp::socket socket =
          co_await acceptor_.async_accept(asio::make_strand(acceptor_.get_executor().get_inner_executor()),
                                          asio::redirect_error(use_awaitable, error));
      if (!acceptor_.is_open()) co_return;
      if (error) continue;
      const auto connection = std::make_shared<Connection>(std::move(socket), model_);
      std::erase_if(connections_, [](const auto& each) { return each.expired(); });
      connections_.push_back(connection);
      connection->start();
    }
  }
  void stop() {
    acceptor_.close();
    model_.stop();
    for (const auto& each : connections_)
      if (const auto connection = each.lock()) connection->close();
  }

  Model model_;
  asio::basic_socket_acceptor<tcp, asio::strand<asio::io_context::executor_type>> acceptor_;
  asio::basic_signal_set<asio::strand<asio::io_context::executor_type>> signals_;
  std::vector<std::weak_ptr<Connection>> connections_;
};

bool read_option(std::string_view argument, std::string_view name, int& value) {
  if (!argument.starts_with(name)) return false;
  argument.remove_prefix(name.size());
  const auto [end, error] = std::from_chars(argument.data(), argument.data() + argument.size(), value);
  return error == std::errc() && end == argument.data() + argument.size() && value >= 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  int port = 0;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (read_option(argument, "--port=", port) || read_option(argument, "--threads=", options.threads) ||
        read_option(argument, "--limit=", options.limit) || read_option(argument, "--hold=", options.hold))
      continue;
    std::fprintf(stderr, "usage: %s [--port=0] [--threads=2] [--limit=10000] [--hold=0]\n", argv[0]);
    return 2;
  }
  if (port > UINT16_MAX) {
    std::fprintf(stderr, "--port=%d: expected a port up to %d\n", port, UINT16_MAX);
    return 2;
  }
  options.port = static_cast<uint16_t>(port);
  try {
    asio::io_context io(options.threads);
    Server server(io, options);
    std::vector<std::thread> threads;
    for (int i = 1; i < options.threads; ++i) threads.emplace_back([&] { io.run(); });
    io.run();
    for (std::thread& thread : threads) thread.join();
    server.print();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
