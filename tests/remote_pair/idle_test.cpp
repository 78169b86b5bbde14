// A connection that is idle uses no processor, also after both of its sides have polled.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>

#include "connection.h"
#include "device.h"
#include "fake_host.h"
#include "server/server.h"

namespace halyard::remote {
namespace {

using std::chrono::milliseconds;

const halyard_host_services_t kIdleServices = fake_services();

milliseconds processor_time() {
  rusage used = {};
  ::getrusage(RUSAGE_SELF, &used);
  const auto of = [](const timeval& time) { return milliseconds(time.tv_sec * 1000 + time.tv_usec / 1000); };
  return of(used.ru_utime) + of(used.ru_stime);
}

class Idle : public testing::TestWithParam<int> {};

TEST_P(Idle, UsesNoProcessor) {
  device_server::ServerOptions options;
  options.devices = {"null"};
  options.driver_files = {HALYARD_BUILD_DIR "/lib/halyard/drivers/halyard-driver-null.so"};
  options.limits.busy_poll = std::chrono::microseconds(GetParam());
  auto server = device_server::Server::create(std::move(options));
  ASSERT_TRUE(server) << server.error().message;
  std::thread serving([&] { (*server)->run(2); });
  {
    int ends[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
    (*server)->take(Descriptor(ends[1]), nullptr);
    Runtime runtime;
    Place place;
    place.transport = Transport::unix_socket;
    place.patience = std::chrono::seconds(120);
    place.busy_poll = std::chrono::microseconds(GetParam());
    auto opened = Connection::over(kIdleServices, runtime, std::move(place), Descriptor(ends[0]));
    ASSERT_TRUE(opened) << opened.failure().message;
    Device device(*opened);
    for (int i = 0; i < 500; ++i) EXPECT_TRUE(device.query("hal.device.id", "null"));
    constexpr milliseconds kTime{1000};
    milliseconds used = kTime;
    for (int turn = 0; turn < 10 && used > kTime / 20;
         ++turn) {  // on a busy machine it may take a while until it is idle
      const milliseconds before = processor_time();
      std::this_thread::sleep_for(kTime);
      used = processor_time() - before;
    }
    EXPECT_LE(used, kTime / 20);
    EXPECT_TRUE(device.query("hal.device.id", "null"));
  }
  (*server)->stop();
  serving.join();
}

INSTANTIATE_TEST_SUITE_P(Polls, Idle, testing::Values(0, 50, 1000));

}  // namespace
}  // namespace halyard::remote
