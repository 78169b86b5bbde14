// The driver `remote` and servers that lie, keep silent or answer what nobody has asked: every call ends,
// with a failure, by itself or when the connection's patience is over, and nothing is written but the bytes
// that were asked for.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <thread>

#include "device.h"
#include "fake_host.h"
#include "remote/message.h"

namespace halyard::remote {
namespace {

using std::chrono::milliseconds;

const halyard_host_services_t kServicesOfHostile = fake_services();

// A server that greets rightly, answers pings, and leaves the rest to the test.
class HostileServer {
 public:
  using Answer = std::function<void(HostileServer&, const wire::ToServer&)>;
  HostileServer(Descriptor socket, Answer answer, uint64_t maximum = 1 << 30)
      : socket_(std::move(socket)),
        answer_(std::move(answer)),
        maximum_(maximum),
        thread_([this] { run(); }) {}
  ~HostileServer() {
    ::shutdown(socket_.get(), SHUT_RDWR);
    thread_.join();
  }
  template <typename Build>
  void send(Build build, Bytes data = {}) {
    Message message;
    const auto body = build(message);
    const Bytes bytes = message.to_client(body);
    const uint32_t header[2] = {static_cast<uint32_t>(bytes.size()), static_cast<uint32_t>(data.size())};
    send_bytes(header, sizeof header);
    send_bytes(bytes.data(), bytes.size());
    send_bytes(data.data(), data.size());
  }
  void send_bytes(const void* bytes, size_t size) {
    if (size > 0) (void)!::send(socket_.get(), bytes, size, MSG_NOSIGNAL);
  }

 private:
  bool receive(void* bytes, size_t size) {
    for (auto* at = static_cast<char*>(bytes); size > 0;) {
      const ssize_t count = ::recv(socket_.get(), at, size, 0);
      if (count <= 0) return false;
      at += count;
      size -= static_cast<size_t>(count);
    }
    return true;
  }
  void run() {
    uint32_t header[2];
    std::vector<uint8_t> message, data;
    while (receive(header, sizeof header)) {
      message.resize(header[0]);
      data.resize(header[1]);
      if (!receive(message.data(), message.size()) || !receive(data.data(), data.size())) return;
      const wire::ToServer* const root = verified_to_server(message);
      if (!root) return;
      if (root->body_as_Hello()) {
        send([&](Message& answer) {
          const auto properties = wire::CreateProperties(answer.builder(), 0, 1, 64, maximum_);
          return wire::CreateWelcome(answer.builder(), 1, properties);
        });
      } else if (root->body_as_Ping()) {
        send([](Message& answer) { return wire::CreatePong(answer.builder()); });
      } else {
        answer_(*this, *root);
      }
    }
  }

  Descriptor socket_;
  const Answer answer_;
  const uint64_t maximum_;
  std::thread thread_;
};

class Hostile : public testing::Test {
 protected:
  void open(HostileServer::Answer answer, milliseconds patience = std::chrono::minutes(2)) {
    int ends[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    server_ = std::make_unique<HostileServer>(Descriptor(ends[1]), std::move(answer));
    Place place;
    place.transport = Transport::unix_socket;
    place.path = "hostile";
    place.patience = patience;
    auto opened = Connection::over(kServicesOfHostile, runtime_, std::move(place), Descriptor(ends[0]));
    ASSERT_TRUE(opened) << opened.failure().message;
    connection_ = *opened;
    device_ = std::make_unique<Device>(connection_);
  }
  ~Hostile() override {
    memory_.reset();
    device_.reset();
    connection_.reset();
    server_.reset();
  }
  kit::Result<> allocate(uint64_t size) {
    halyard_memory_info_t info = {};
    info.struct_size = sizeof info;
    auto made = device_->allocate(memory_request(size), false, info);
    if (!made) return std::move(made.failure());
    memory_ = std::move(*made);
    return {};
  }
  // The failure of mapping all of a memory for reading.
  kit::Failure read(uint64_t size) {
    EXPECT_TRUE(allocate(size));
    auto mapped = memory_->map(HALYARD_MAP_READ, 0, size);
    EXPECT_FALSE(mapped);
    return mapped ? kit::Failure{HALYARD_OK, ""} : mapped.failure();
  }

  Runtime runtime_;
  std::unique_ptr<HostileServer> server_;
  std::shared_ptr<Connection> connection_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<Memory> memory_;
};

// It lives, and answers pings alone.
TEST_F(Hostile, AnswersOnlyPings) {
  open([](HostileServer&, const wire::ToServer&) {}, std::chrono::seconds(6));
  const kit::Failure failure = read(64);
  EXPECT_EQ(failure.code, HALYARD_DEADLINE_EXCEEDED) << failure.message;
  EXPECT_NE(failure.message.find("'timeout'"), std::string::npos) << failure.message;
}

TEST_F(Hostile, BytesThatNobodyAskedFor) {
  // Beyond the end, before the beginning, too many, twice the same, none.
  struct Case {
    uint64_t offset;
    size_t size;
  };
  for (const Case& it : {Case{64, 8}, Case{UINT64_MAX - 3, 8}, Case{0, 65}, Case{60, 8}, Case{8, 8},
                         Case{0, 0}, Case{0, 100000}}) {
    open([it](HostileServer& server, const wire::ToServer& asked) {
      const wire::MemoryRead* const read = asked.body_as_MemoryRead();
      if (!read) return;
      const std::vector<uint8_t> bytes(it.size, 0xEE);
      server.send(
          [&](Message& message) { return wire::CreateData(message.builder(), read->request(), it.offset); },
          bytes);
    });
    const kit::Failure failure = read(64);
    EXPECT_EQ(failure.code, HALYARD_INTERNAL) << it.offset << ": " << failure.message;
    EXPECT_NE(failure.message.find("nobody has asked"), std::string::npos) << failure.message;
    memory_.reset();
    device_.reset();
    connection_.reset();
    server_.reset();
  }
}

// A request that is done is as good as over: what the server sends for it later goes nowhere.
TEST_F(Hostile, BytesOfReadsThatAreDone) {
  open([](HostileServer&, const wire::ToServer&) {});
  Receiver& receiver = *connection_;
  std::vector<uint8_t> target(64 << 10, 0x11);
  const auto place = [&](uint64_t request, uint64_t offset, size_t size) {
    Message message;
    return receiver.place(message.to_client(wire::CreateData(message.builder(), request, offset)), size);
  };
  const auto receive = [&](Bytes message, std::span<uint8_t> data) {
    Frame frame;
    frame.block = std::make_unique<uint8_t[]>(message.size());
    std::memcpy(frame.block.get(), message.data(), message.size());
    frame.message_size = message.size();
    frame.data = data.data();
    frame.data_size = data.size();
    receiver.received(frame);
  };
  for (const bool is_whole : {true, false}) {
    Request request;
    request.target = target;
    EXPECT_TRUE(connection_->request(request, [&](uint64_t number) {
      // Bytes go straight to their place if they are those that come next.
      EXPECT_TRUE(place(number, 16 << 10, 16 << 10).empty());
      const std::span<uint8_t> placed = place(number, 0, is_whole ? target.size() : 16 << 10);
      ASSERT_EQ(placed.data(), target.data());
      Message data, done;
      receive(data.to_client(wire::CreateData(data.builder(), number, 0)), placed);
      if (!is_whole) receive(done.to_client(wire::CreateDone(done.builder(), number)), {});
      // The request is not forgotten yet.
      EXPECT_TRUE(place(number, 0, 16 << 10).empty());
      EXPECT_TRUE(place(number, 16 << 10, 16 << 10).empty());
    }));
    EXPECT_EQ(request.received, is_whole ? target.size() : size_t{16 << 10});
  }
}

TEST_F(Hostile, AnswersOfOtherRequestsAndKinds) {
  open([](HostileServer& server, const wire::ToServer& asked) {
    const wire::MemoryRead* const read = asked.body_as_MemoryRead();
    if (!read) return;
    const std::vector<uint8_t> bytes(64, 0xEE);
    for (const uint64_t number : {uint64_t{0}, uint64_t{999999}, UINT64_MAX}) {
      server.send([&](Message& message) { return wire::CreateData(message.builder(), number, 0); }, bytes);
      server.send([&](Message& message) { return wire::CreateDone(message.builder(), number); });
      server.send([&](Message& message) { return wire::CreateCompleted(message.builder(), number); });
      server.send([&](Message& message) {
        const auto numbers = message.builder().CreateVector(std::vector<uint64_t>{number, number});
        return wire::CreateCompletions(message.builder(), numbers);
      });
      server.send([&](Message& message) { return wire::CreateCompletions(message.builder()); });
      server.send([&](Message& message) { return wire::CreateContents(message.builder(), number, 0); },
                  bytes);
      server.send([&](Message& message) { return wire::CreateFunctions(message.builder(), number); });
      server.send([&](Message& message) { return wire::CreateNeed(message.builder(), number); });
    }
    // A second greeting changes nothing.
    server.send([&](Message& message) {
      const auto properties = wire::CreateProperties(message.builder(), ~0u, 64, 1, UINT64_MAX);
      return wire::CreateWelcome(message.builder(), 1, properties);
    });
    const auto status = [&](Message& message) {
      return wire::CreateStatus(message.builder(), 17, message.text("no code of a failure"));
    };
    server.send([&](Message& message) {
      return wire::CreateDone(message.builder(), read->request(), status(message));
    });
  });
  const kit::Failure failure = read(64);
  EXPECT_EQ(failure.code, HALYARD_UNKNOWN) << failure.message;
  EXPECT_EQ(connection_->properties().queue_count, 1u);
}

TEST_F(Hostile, FunctionsThatAreTheSameTable) {
  for (const std::pair<size_t, size_t> it : {std::pair{300, 1 << 20}, std::pair{100000, 1}}) {
    open([it](HostileServer& server, const wire::ToServer& asked) {
      if (!asked.body_as_Query()) return;
      server.send([&](Message& message) {
        flatbuffers::FlatBufferBuilder& builder = message.builder();
        const auto name = message.text(std::string(it.second, 'f'));
        const auto function = wire::CreateFunction(builder, name);
        const auto list = builder.CreateVector(std::vector(it.first, function));
        return wire::CreateFunctions(builder, asked.body_as_Query()->request(), list);
      });
    });
    Request request;
    const kit::Result<> answered = connection_->request(request, [&](uint64_t number) {
      Message message;
      connection_->send(message.to_server(wire::CreateQuery(message.builder(), number)), {},
                        Stream::Urgency::now);
    });
    ASSERT_FALSE(answered);
    EXPECT_EQ(answered.failure().code, HALYARD_INTERNAL) << answered.failure().message;
    EXPECT_NE(answered.failure().message.find("functions of an executable"), std::string::npos);
    device_.reset();
    connection_.reset();
    server_.reset();
  }
}

// A request for code, with pongs alone until `answers` returns true. Meanwhile another thread sends much. The
// failures of both.
class Loading {
 public:
  explicit Loading(milliseconds patience) : patience_(patience) {}
  void serve(HostileServer& server, const wire::ToServer& asked, auto answers) {
    const wire::ExecutableCreate* const create = asked.body_as_ExecutableCreate();
    if (!create) return;
    is_loading = true;
    while (!answers()) {
      server.send([](Message& message) { return wire::CreatePong(message.builder()); });
      std::this_thread::sleep_for(patience_ / 20);
    }
    server.send(
        [&](Message& message) { return wire::CreateFunctions(message.builder(), create->request()); });
  }
  void load(Connection& connection, Memory& memory) {
    std::thread writer([&] {
      while (!is_loading) std::this_thread::yield();
      const std::vector<uint8_t> bytes(1 << 20);
      for (int i = 0; i < 16 && writing; ++i) writing = memory.write_now(0, bytes);
      has_written = true;
    });
    halyard_executable_args_t args = {};
    args.struct_size = sizeof args;
    args.stop = &stop;
    Request request;
    request.may_take_long = true;
    loading = connection.request(
        request,
        [&](uint64_t number) {
          Message message;
          connection.send(message.to_server(wire::CreateExecutableCreate(message.builder(), number, 99)), {},
                          Stream::Urgency::now);
        },
        kit::Stop(args));
    writer.join();
  }
  kit::Result<> loading, writing;
  std::atomic<bool> is_loading = false, has_written = false;
  uint32_t stop = 0;

 private:
  const milliseconds patience_;
};

// A server that loads code has no room for what comes behind, and says that it lives.
TEST_F(Hostile, LoadingThatTakesLongerThanThePatience) {
  constexpr milliseconds kPatience{500};
  for (int i = 0; i < 5; ++i) {  // a machine that is paused has no patience
    Loading it(kPatience);
    open(
        [&](HostileServer& server, const wire::ToServer& asked) {
          const auto end = std::chrono::steady_clock::now() + 4 * kPatience;
          it.serve(server, asked, [&] { return std::chrono::steady_clock::now() > end; });
        },
        kPatience);
    ASSERT_TRUE(allocate(1 << 20));
    it.load(*connection_, *memory_);
    if (it.loading && it.writing) return;
    EXPECT_LT(i, 4) << (it.loading ? it.writing : it.loading).failure().message;
    memory_.reset();
    device_.reset();
    connection_.reset();
    server_.reset();
  }
}

// It may never have room for the client's stop.
TEST_F(Hostile, LoadingThatCannotBeStopped) {
  Loading it(milliseconds(500));
  open([&](HostileServer& server,
           const wire::ToServer& asked) { it.serve(server, asked, [&] { return it.has_written.load(); }); },
       milliseconds(500));
  ASSERT_TRUE(allocate(1 << 20));
  std::thread stops([&] {
    while (!it.is_loading) std::this_thread::yield();
    std::this_thread::sleep_for(milliseconds(100));
    __atomic_store_n(&it.stop, uint32_t{HALYARD_CANCELLED}, __ATOMIC_RELAXED);
  });
  it.load(*connection_, *memory_);
  stops.join();
  ASSERT_FALSE(it.loading);
  EXPECT_EQ(it.loading.failure().code, HALYARD_DEADLINE_EXCEEDED) << it.loading.failure().message;
}

// The bytes of a second mapping come as contents of watched memory.
TEST_F(Hostile, ContentsThatComeSlowly) {
  constexpr milliseconds kPatience{500};
  constexpr uint64_t kSize = 64, kPart = 8;
  for (int i = 0; i < 5; ++i) {
    open(
        [&](HostileServer& server, const wire::ToServer& asked) {
          const wire::MemoryRead* const read = asked.body_as_MemoryRead();
          if (!read) return;
          const std::vector<uint8_t> bytes(kPart, 0x5A);
          for (uint64_t at = 0; at < kSize; at += kPart) {
            if (read->credit() == 0) std::this_thread::sleep_for(kPatience / 2);
            if (read->credit() > 0)
              server.send(
                  [&](Message& message) { return wire::CreateData(message.builder(), read->request(), at); },
                  bytes);
            else
              server.send(
                  [&](Message& message) { return wire::CreateContents(message.builder(), read->id(), at); },
                  bytes);
          }
          if (read->credit() == 0)
            server.send(
                [&](Message& message) { return wire::CreateDone(message.builder(), read->request()); });
        },
        kPatience);
    ASSERT_TRUE(allocate(kSize));
    ASSERT_TRUE(memory_->map(HALYARD_MAP_READ, 0, kSize));
    const auto second = memory_->map(HALYARD_MAP_READ, 0, kSize);
    if (second) {
      EXPECT_EQ((*second)[kSize - 1], 0x5A);
      return;
    }
    EXPECT_LT(i, 4) << second.failure().message;
    memory_.reset();
    device_.reset();
    connection_.reset();
    server_.reset();
  }
}

TEST_F(Hostile, NoMessages) {
  const uint32_t headers[][2] = {
      {UINT32_MAX, 0}, {8, UINT32_MAX}, {0, 0}, {kMaxMessage + 1, 0}, {16, kMaxData + 1}};
  for (const auto& header : headers) {
    open([&](HostileServer& server, const wire::ToServer& asked) {
      if (asked.body_as_MemoryRead()) server.send_bytes(header, sizeof header);
    });
    const kit::Failure failure = read(64);
    EXPECT_NE(failure.message.find("does not speak this protocol"), std::string::npos) << failure.message;
    memory_.reset();
    device_.reset();
    connection_.reset();
    server_.reset();
  }
  open([](HostileServer& server, const wire::ToServer& asked) {
    const uint32_t header[2] = {64, 0};
    const uint8_t bytes[64] = {0xFF, 0xFF, 0xFF, 0x7F};
    if (!asked.body_as_MemoryRead()) return;
    server.send_bytes(header, sizeof header);
    server.send_bytes(bytes, sizeof bytes);
  });
  EXPECT_EQ(read(64).code, HALYARD_INTERNAL);
}

// A memory that was allocated already, then refused; a refusal with a code of success.
TEST_F(Hostile, RefusalsWithCodesOfSuccess) {
  open([](HostileServer& server, const wire::ToServer& asked) {
    if (!asked.body_as_MemoryRead()) return;
    server.send([](Message& message) {
      return wire::CreateRefused(message.builder(), wire::CreateStatus(message.builder(), HALYARD_OK));
    });
  });
  EXPECT_EQ(read(64).code, HALYARD_UNAVAILABLE);
}

}  // namespace
}  // namespace halyard::remote
