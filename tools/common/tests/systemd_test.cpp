// The protocols of systemd: sockets from descriptor 3 on, and datagrams to $NOTIFY_SOCKET.
#include "common/systemd.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdlib>
#include <functional>

#include "fixtures.h"
#include "in_child.h"

namespace halyard::tools {
namespace {

void set_variables(const std::string& process, const std::string& count) {
  ::setenv("LISTEN_PID", process.c_str(), 1);
  ::setenv("LISTEN_FDS", count.c_str(), 1);
  ::setenv("LISTEN_FDNAMES", "http", 1);
}

std::string own_process() { return std::to_string(::getpid()); }

// "3 4", or the message; "; variables" if a variable is left. Called in a child process, because descriptors
// from 3 on belong to the test program.
std::string taken() {
  std::string text;
  if (const Result<std::vector<int>> sockets = inherited_sockets(); !sockets) {
    text = sockets.error().line();
  } else {
    for (const int socket : *sockets) text += (text.empty() ? "" : " ") + std::to_string(socket);
  }
  for (const char* name : {"LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"})
    if (std::getenv(name)) text += "; variables";
  return text;
}

void replace(int descriptor, int by) {
  if (by != descriptor) {
    ::dup2(by, descriptor);
    ::close(by);
  }
}

int listening_socket() {
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  EXPECT_EQ(::listen(socket, 1), 0);
  return socket;
}

TEST(InheritedSockets, AreThoseOfThisProcess) {
  EXPECT_EQ(in_child([] {
              set_variables(own_process(), "2");
              const int first = listening_socket(), second = listening_socket();
              const int kept = ::fcntl(second, F_DUPFD, 100);
              replace(3, first);
              replace(4, kept);
              std::string text = taken();
              // Programs that this one starts must not have them.
              for (const int socket : {3, 4}) text += ::fcntl(socket, F_GETFD) & FD_CLOEXEC ? " closes" : "";
              return text;
            }),
            "3 4 closes closes");
}

TEST(InheritedSockets, AreNoneWithoutBothVariablesOrForAnotherProcess) {
  const std::pair<std::string, std::string> others[] = {
      {"", "1"}, {"1", ""}, {"1", "1"}, {"x", "1"}, {own_process(), "1"}};  // the parent's number
  for (const auto& [process, count] : others)
    EXPECT_EQ(in_child([&] {
                set_variables(process, count);
                replace(3, listening_socket());
                return taken();
              }),
              "")
        << process << ", " << count;
  EXPECT_EQ(in_child([] {
              set_variables(own_process(), "0");
              return taken();
            }),
            "");
  EXPECT_EQ(in_child([] {
              for (const char* name : {"LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"}) ::unsetenv(name);
              return taken();
            }),
            "");
}

TEST(InheritedSockets, WrongNumbersAreRefused) {
  for (const std::string count : {"-1", "65", "two", "1x", "99999999999999999999"})
    EXPECT_NE(in_child([&] {
                set_variables(own_process(), count);
                return taken();
              }).find("$LISTEN_FDS is '" + count + "'; expected a number of sockets, at most 64"),
              std::string::npos)
        << count;
}

TEST(InheritedSockets, OtherDescriptorsAreRefused) {
  const std::pair<const char*, std::function<int()>> others[] = {
      {"closed", [] { return -1; }},
      {"a file", [] { return ::open("/dev/null", O_RDWR); }},
      {"not listening", [] { return ::socket(AF_INET, SOCK_STREAM, 0); }},
      {"datagrams", [] { return ::socket(AF_INET, SOCK_DGRAM, 0); }},
  };
  for (const auto& [name, open] : others)
    EXPECT_NE(in_child([&] {
                set_variables(own_process(), "1");
                ::close(3);
                if (const int descriptor = open(); descriptor >= 0) replace(3, descriptor);
                return taken();
              }).find("descriptor 3 of $LISTEN_FDS is not a listening stream socket"),
              std::string::npos)
        << name;
}

// ---- Notifications

sockaddr_un address_of(const std::string& name, socklen_t& size) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  name.copy(address.sun_path, sizeof address.sun_path);
  if (name.front() == '@') address.sun_path[0] = 0;
  size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
  return address;
}

// Receives what is sent to an address.
class Manager {
 public:
  explicit Manager(const std::string& name) : socket_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0)) {
    socklen_t size = 0;
    const sockaddr_un address = address_of(name, size);
    EXPECT_EQ(::bind(socket_, reinterpret_cast<const sockaddr*>(&address), size), 0) << name;
  }
  Manager(const Manager&) = delete;
  ~Manager() { ::close(socket_); }
  std::string received() const {
    std::array<char, 256> block;
    const ssize_t size = ::recv(socket_, block.data(), block.size(), 0);
    return size < 0 ? "" : std::string(block.data(), static_cast<size_t>(size));
  }

 private:
  int socket_;
};

class Notifications : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"}) ::unsetenv(name);
  }
  void TearDown() override { SetUp(); }
};

TEST_F(Notifications, GoToAFileOrToAnAbstractAddress) {
  const TemporaryFolder folder;
  for (const std::string& name : {(folder / "socket").string(), "@halyard-test-" + own_process()}) {
    const Manager manager(name);
    ::setenv("NOTIFY_SOCKET", name.c_str(), 1);
    const Notifier notifier;
    EXPECT_EQ(std::getenv("NOTIFY_SOCKET"), nullptr) << "programs that this one starts must not notify";
    notifier.send("READY=1\nSTATUS=a b");
    EXPECT_EQ(manager.received(), "READY=1\nSTATUS=a b");
    notifier.send_reloading();
    const std::string reloading = manager.received();
    EXPECT_TRUE(reloading.starts_with("RELOADING=1\nMONOTONIC_USEC=")) << reloading;
    EXPECT_GT(std::stoll(reloading.substr(reloading.rfind('=') + 1)), 0);
  }
}

TEST_F(Notifications, AreNotSentWithoutAnAddress) {
  const std::string too_long = "/" + std::string(sizeof(sockaddr_un::sun_path), 'x');
  for (const std::string& name : {std::string(), std::string("relative"), too_long}) {
    ::setenv("NOTIFY_SOCKET", name.c_str(), 1);
    const Notifier notifier;
    notifier.send("READY=1");
  }
  ::setenv("NOTIFY_SOCKET", "/nonexistent/socket", 1);
  const Notifier nobody_listens;
  nobody_listens.send("READY=1");
}

TEST_F(Notifications, TheWatchdogWantsTwoInItsTime) {
  using namespace std::chrono_literals;
  const std::string own = own_process();
  const struct {
    const char* time;
    std::string process;
    std::optional<std::chrono::microseconds> expected;
  } cases[] = {
      {"3000000", "", 1500000us},
      {"3000000", own, 1500000us},
      {"3000000", "1", {}},
      {"3000000", "x", {}},
      {"0", "", {}},
      {"-5", "", {}},
      {"soon", "", {}},
      {"10ms", "", {}},
  };
  for (const auto& [time, process, expected] : cases) {
    ::setenv("WATCHDOG_USEC", time, 1);
    if (!process.empty()) ::setenv("WATCHDOG_PID", process.c_str(), 1);
    EXPECT_EQ(Notifier().watchdog(), expected) << time << " of " << process;
    EXPECT_EQ(std::getenv("WATCHDOG_USEC"), nullptr);
    EXPECT_EQ(std::getenv("WATCHDOG_PID"), nullptr);
  }
  EXPECT_EQ(Notifier().watchdog(), std::nullopt);
}

}  // namespace
}  // namespace halyard::tools
