// The driver `remote` and a server in this process, with a connection that is damaged at every message and
// within messages. Each submission completes once, within the patience of the connection. A failure names the
// lost objects. No work runs twice. Other connections continue. Results of calls that succeed are correct.
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <string>
#include <thread>

#include "connection.h"
#include "device.h"
#include "fake_host.h"
#include "link.h"
#include "remote/digest.h"
#include "server/server.h"

namespace halyard::remote {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

const halyard_host_services_t kServices = fake_services();
constexpr uint64_t kSmall = 64, kLarge = 2 << 20, kUpdate = 300 << 10;
constexpr int kSubmissions = 4;

class TestServer {
 public:
  TestServer() {
    device_server::ServerOptions options;
    options.devices = {"null"};
    options.driver_files = {HALYARD_BUILD_DIR "/lib/halyard/drivers/halyard-driver-null.so"};
    auto made = device_server::Server::create(std::move(options));
    if (!made) throw std::runtime_error(made.error().message);
    server_ = std::move(*made);
    thread_ = std::thread([this] { server_->run(2); });
  }
  ~TestServer() {
    server_->stop();
    thread_.join();
  }
  void take(Descriptor socket) { server_->take(std::move(socket), nullptr); }
  uint64_t metric(const std::string& name) const {
    const std::string text = server_->metrics(), line = "\nhalyard_device_" + name + " ";
    return std::stoull(text.substr(text.find(line) + line.size()));
  }
  bool becomes(const std::string& name, uint64_t value) const {
    for (int i = 0; i < 24000 && metric(name) != value; ++i) std::this_thread::sleep_for(milliseconds(5));
    return metric(name) == value;
  }

 private:
  std::unique_ptr<device_server::Server> server_;
  std::thread thread_;
};

struct Outcome {
  halyard_status_code_t code = HALYARD_OK;
  std::string message;
  int accepted = 0;   // submissions
  int completed = 0;  // callbacks
  bool is_right = false;
};

// One device, from its opening to its end: memory, requests, uploads, work, reading.
class Program {
 public:
  Program(Runtime& runtime, Descriptor socket, milliseconds patience) {
    Place place;
    place.transport = Transport::unix_socket;
    place.path = "build-box";
    place.patience = patience;
    auto opened = Connection::over(kServices, runtime, std::move(place), std::move(socket));
    if (!opened) {
      fail(opened.failure());
    } else {
      device_ = std::make_unique<Device>(*opened);
      run();
    }
    // Every submission that was accepted completes.
    const Clock::time_point end = Clock::now() + std::chrono::seconds(120);
    while (completed_.load() < outcome_.accepted && Clock::now() < end)
      std::this_thread::sleep_for(milliseconds(1));
    outcome_.completed = completed_.load();
    small_.reset();
    large_.reset();
    semaphore_.reset();
    device_.reset();
  }
  const Outcome& outcome() const { return outcome_; }

 private:
  bool fail(const kit::Failure& failure) {
    if (outcome_.code == HALYARD_OK) outcome_.code = failure.code, outcome_.message = failure.message;
    return false;
  }
  bool fail(kit::Status status) {
    FakeStatus* const given = fake(std::move(status).release());
    if (!given) return true;
    if (outcome_.code == HALYARD_OK) outcome_.code = given->code, outcome_.message = given->message;
    kServices.status_release(nullptr, reinterpret_cast<halyard_status_t>(given));
    return false;
  }

  bool allocate(uint64_t size, std::unique_ptr<Memory>& memory) {
    halyard_memory_info_t info = {};
    info.struct_size = sizeof info;
    auto made = device_->allocate(memory_request(size), false, info);
    if (!made) return fail(made.failure());
    memory = std::move(*made);
    return true;
  }

  // Waits for `step` - 1 of the semaphore, signals `step`.
  bool submit(halyard_operation_t operation, uint64_t step) {
    operation.struct_size = sizeof operation;
    const auto handle = reinterpret_cast<halyard_driver_semaphore_t>(semaphore_.get());
    const halyard_timepoint_t wait = {handle, step - 1}, signal = {handle, step};
    halyard_submission_t submission = {};
    submission.struct_size = sizeof submission;
    submission.wait_count = step > 1;
    submission.waits = &wait;
    submission.signal_count = 1;
    submission.signals = &signal;
    submission.affinity = 1;
    submission.operation = &operation;
    submission.completed = [](void* self, halyard_status_t status) {
      kServices.status_release(nullptr, status);
      ++static_cast<Program*>(self)->completed_;
    };
    submission.completed_user = this;
    kit::TaskList ready;
    const kit::Result<> submitted = device_->submit(submission, ready);
    if (!submitted) return fail(submitted.failure());
    ++outcome_.accepted;
    return true;
  }

  static halyard_range_t range(const std::unique_ptr<Memory>& memory, uint64_t offset, uint64_t length) {
    return {reinterpret_cast<halyard_driver_memory_t>(memory.get()), 0, 0, offset, length};
  }

  bool run() {
    if (!allocate(kSmall, small_) || !allocate(kLarge, large_)) return false;
    auto made = device_->create_semaphore(0);
    if (!made) return fail(made.failure());
    semaphore_ = std::move(*made);
    auto mapped = small_->map(HALYARD_MAP_WRITE | HALYARD_MAP_DISCARD, 0, kSmall);
    if (!mapped) return fail(mapped.failure());
    std::memset(*mapped, 0x11, kSmall);
    small_->unmap();
    std::string reason;
    (void)device_->grade("vmvx-bytecode-fb", {}, reason);

    halyard_operation_t operation = {};
    operation.kind = HALYARD_OPERATION_FILL;
    operation.fill = {range(large_, 0, 256), 0x22, 1};
    if (!submit(operation, 1)) return false;
    operation = {};
    operation.kind = HALYARD_OPERATION_COPY;
    operation.copy = {range(small_, 0, kSmall), range(large_, 64, kSmall)};
    if (!submit(operation, 2)) return false;
    operation = {};
    operation.kind = HALYARD_OPERATION_UPDATE;
    operation.update = {update_.data(), range(large_, 1 << 20, kUpdate)};
    if (!submit(operation, 3)) return false;
    operation = {};
    operation.kind = HALYARD_OPERATION_BARRIER;
    if (!submit(operation, kSubmissions)) return false;

    const halyard_timepoint_t last = {reinterpret_cast<halyard_driver_semaphore_t>(semaphore_.get()),
                                      kSubmissions};
    const auto deadline = Clock::now() + std::chrono::seconds(120);
    if (!fail(device_->wait({&last, 1}, false, deadline.time_since_epoch().count()))) return false;
    auto read = large_->map(HALYARD_MAP_READ, 0, kLarge);
    if (!read) return fail(read.failure());
    const uint8_t* const bytes = *read;
    outcome_.is_right = bytes[0] == 0x22 && bytes[64] == 0x11 && bytes[127] == 0x11 && bytes[128] == 0x22 &&
                        bytes[300] == 0 && bytes[1 << 20] == 0x33 && bytes[(1 << 20) + kUpdate - 1] == 0x33;
    large_->unmap();
    return true;
  }

  std::vector<uint8_t> update_ = std::vector<uint8_t>(kUpdate, 0x33);
  std::unique_ptr<Device> device_;
  std::unique_ptr<Memory> small_, large_;
  std::unique_ptr<Semaphore> semaphore_;
  std::atomic<int> completed_{0};
  Outcome outcome_;
};

class Faults : public testing::Test {
 protected:
  Outcome run(Link& link, milliseconds patience) {
    server_.take(link.server());
    return Program(runtime_, link.client(), patience).outcome();
  }
  // Every submission completes, and there is no more work than was submitted.
  Outcome run(Damage damage, milliseconds patience, bool* has_struck) {
    const uint64_t before = server_.metric("submissions_total");
    Outcome outcome;
    {
      Link link(damage);
      outcome = run(link, patience);
      *has_struck = link.has_struck();
    }
    EXPECT_EQ(outcome.completed, outcome.accepted);
    EXPECT_TRUE(server_.becomes("connections", 0));
    EXPECT_LE(server_.metric("submissions_total") - before, uint64_t{kSubmissions});
    return outcome;
  }
  // Right bytes, or a failure that names the place.
  Outcome check(Damage damage, milliseconds patience, halyard_status_code_t expected) {
    Outcome outcome;
    bool has_struck = false;
    // On a busy machine the patience may be over before the damage is done.
    for (int turn = 0; turn < 50 && !has_struck; ++turn) {
      outcome = run(damage, patience, &has_struck);
      if (outcome.code == HALYARD_OK) break;
    }
    EXPECT_TRUE(has_struck || outcome.code == HALYARD_OK) << outcome.message;
    if (outcome.code == HALYARD_OK) {
      EXPECT_TRUE(outcome.is_right);
      return outcome;
    }
    EXPECT_EQ(outcome.code, expected) << outcome.message;
    EXPECT_NE(outcome.message.find("build-box"), std::string::npos) << outcome.message;
    if (outcome.accepted > 0) {
      EXPECT_NE(outcome.message.find("and with it the memory of the device"), std::string::npos)
          << outcome.message;
    }
    return outcome;
  }
  // Where messages begin, and where the last one ends.
  std::vector<uint64_t> boundaries(Direction direction) {
    Link link({});
    const Outcome whole = run(link, std::chrono::seconds(120));
    EXPECT_EQ(whole.code, HALYARD_OK) << whole.message;
    EXPECT_TRUE(whole.is_right);
    link.end();
    return link.boundaries(direction);
  }

  TestServer server_;
  Runtime runtime_;
};

constexpr Direction kDirections[] = {kToServer, kToClient};

// The server, or its machine, ends.
TEST_F(Faults, CutAtEveryMessageAndAtOddBytes) {
  int lost = 0, places = 0;
  for (const Direction direction : kDirections) {
    const std::vector<uint64_t> messages = boundaries(direction);
    ASSERT_GT(messages.size(), 10u);
    for (size_t i = 0; i + 1 < messages.size(); ++i) {
      const uint64_t begin = messages[i], end = messages[i + 1];
      for (const uint64_t at :
           {begin, begin + 1, begin + 7, begin + 8, begin + 9, (begin + end) / 2 | 1, end - 1}) {
        const Outcome outcome =
            check({Damage::cut, direction, at}, std::chrono::seconds(120), HALYARD_UNAVAILABLE);
        lost += outcome.code != HALYARD_OK;
        ++places;
        if (HasFailure()) FAIL() << "direction " << int{direction} << ", message " << i << ", byte " << at;
      }
    }
  }
  EXPECT_GT(lost, places / 2);
  // Another connection works.
  Link link({});
  EXPECT_TRUE(run(link, std::chrono::seconds(120)).is_right);
  RecordProperty("places", places);
  RecordProperty("lost", lost);
}

// The server is stopped (SIGSTOP), or the network is cut: no byte comes, and the connection stays.
TEST_F(Faults, StoppedAtEveryMessage) {
  for (const Direction direction : kDirections) {
    const std::vector<uint64_t> messages = boundaries(direction);
    for (size_t i = 0; i + 1 < messages.size(); i += 2) {
      const uint64_t odd = i % 4 == 0 ? 0 : 5;
      check({Damage::stop, direction, messages[i] + odd}, milliseconds(250), HALYARD_DEADLINE_EXCEEDED);
      if (HasFailure()) FAIL() << "direction " << int{direction} << ", message " << i;
    }
  }
}

// Slow is not lost: the patience counts from the last byte. On a busy machine it may be over nevertheless.
TEST_F(Faults, Slow) {
  for (const Direction direction : kDirections) {
    Outcome outcome;
    bool has_struck = false;
    for (int turn = 0; turn < 20 && !outcome.is_right; ++turn)
      outcome = run({Damage::slow, direction, 997}, milliseconds(3000), &has_struck);
    EXPECT_EQ(outcome.code, HALYARD_OK) << outcome.message;
    EXPECT_TRUE(outcome.is_right);
  }
}

TEST_F(Faults, OtherDevicesGoOn) {
  // One device works all the time, while the connections of others of the same driver are cut and stopped.
  std::atomic<bool> is_over = false;
  std::atomic<int> right{0}, wrong{0};
  std::thread other([&] {
    while (!is_over.load()) {
      Link link({});
      ++(run(link, std::chrono::seconds(120)).is_right ? right : wrong);
    }
  });
  for (uint64_t at = 1; at < 4000; at += 401) {
    for (const Damage::Kind kind : {Damage::cut, Damage::stop}) {
      Link link({kind, at % 2 ? kToServer : kToClient, at});
      const Outcome outcome = run(link, milliseconds(250));
      EXPECT_EQ(outcome.completed, outcome.accepted);
    }
  }
  is_over.store(true);
  other.join();
  EXPECT_GT(right.load(), 0);
  EXPECT_EQ(wrong.load(), 0);
}

// Pieces of blobs, and of large updates, of several threads.
TEST_F(Faults, UploadsOfSeveralThreads) {
  constexpr uint64_t kSize = 1 << 20;
  constexpr int kRounds = 100;
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
  server_.take(Descriptor(ends[1]));
  Place place;
  place.transport = Transport::unix_socket;
  place.patience = std::chrono::seconds(120);
  auto opened = Connection::over(kServices, runtime_, std::move(place), Descriptor(ends[0]));
  ASSERT_TRUE(opened) << opened.failure().message;
  Device device(*opened);
  std::atomic<int> submitted = 0, completed = 0;
  const auto update = [&](uint8_t value) {
    halyard_memory_info_t info = {};
    info.struct_size = sizeof info;
    auto memory = device.allocate(memory_request(kSize), false, info);
    ASSERT_TRUE(memory) << memory.failure().message;
    const std::vector<uint8_t> bytes(kSize, value);
    halyard_operation_t operation = {};
    operation.struct_size = sizeof operation;
    operation.kind = HALYARD_OPERATION_UPDATE;
    operation.update = {bytes.data(),
                        {reinterpret_cast<halyard_driver_memory_t>(memory->get()), 0, 0, 0, kSize}};
    halyard_submission_t submission = {};
    submission.struct_size = sizeof submission;
    submission.affinity = 1;
    submission.operation = &operation;
    submission.completed = [](void* count, halyard_status_t status) {
      kServices.status_release(nullptr, status);
      ++*static_cast<std::atomic<int>*>(count);
    };
    submission.completed_user = &completed;
    for (int i = 0; i < kRounds; ++i) {
      kit::TaskList ready;
      const kit::Result<> sent = device.submit(submission, ready);
      ASSERT_TRUE(sent) << sent.failure().message;
      ++submitted;
    }
    auto mapped = (*memory)->map(HALYARD_MAP_READ, 0, kSize);
    ASSERT_TRUE(mapped) << mapped.failure().message;
    (*memory)->unmap();
  };
  std::vector<std::thread> threads;
  for (uint8_t number = 0; number < 6; ++number)
    threads.emplace_back([&, number] {
      if (number % 2 == 0) return update(number);
      std::vector<uint8_t> blob(kSize, number);
      for (int i = 0; i < kRounds; ++i) {
        blob[0] = static_cast<uint8_t>(i);
        const kit::Result<> sent = (*opened)->send_blob(sha256(blob), blob);
        ASSERT_TRUE(sent) << sent.failure().message;
      }
    });
  for (std::thread& thread : threads) thread.join();
  const auto end = Clock::now() + std::chrono::seconds(120);
  while (completed.load() < submitted.load() && Clock::now() < end)
    std::this_thread::sleep_for(milliseconds(1));
  EXPECT_EQ(completed.load(), submitted.load());
  std::string reason;
  (void)device.grade("vmvx-bytecode-fb", {}, reason);  // after all pieces
  const kit::Result<> checked = (*opened)->check();
  EXPECT_TRUE(checked) << checked.failure().message;
}

TEST_F(Faults, NoThreadsForConnections) {
  const auto threads = [] {
    FILE* const file = std::fopen("/proc/self/stat", "r");
    char text[1024] = {};
    (void)!std::fread(text, 1, sizeof text - 1, file);
    std::fclose(file);
    const char* at = std::strrchr(text, ')');
    for (int field = 0; field < 18; ++field) at = std::strchr(at + 1, ' ');
    return std::atoi(at + 1);
  };
  std::vector<std::shared_ptr<Connection>> connections;
  const auto open = [&] {
    int ends[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
    server_.take(Descriptor(ends[1]));
    Place place;
    place.transport = Transport::unix_socket;
    place.patience = std::chrono::seconds(120);
    auto opened = Connection::over(kServices, runtime_, std::move(place), Descriptor(ends[0]));
    ASSERT_TRUE(opened) << opened.failure().message;
    connections.push_back(*opened);
  };
  open();
  const int before = threads();
  for (int i = 0; i < 30; ++i) open();
  EXPECT_LE(threads(), before + 1);  // one may have been added while all were busy
  for (const auto& connection : connections) connection->close();
}

}  // namespace
}  // namespace halyard::remote
