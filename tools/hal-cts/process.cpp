// A child tells over a pipe, one record at a time, so that what it said before it died is not lost. Records:
// kind, size of the rest in bytes, texts that end in 0.
#include "process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <stdexcept>
#include <string_view>

#include "common/interrupt.h"
#include "session.h"

namespace halyard::cts {

namespace {

enum Kind : char { kProblem = 'P', kSkipped = 'S', kNote = 'N', kEnd = 'E' };
constexpr size_t kHeader = 1 + sizeof(uint32_t);

class PipeTeller final : public Teller {
 public:
  explicit PipeTeller(int fd) : fd_(fd) {}
  void problem(const Problem& it) override { send(kProblem, {it.rule, it.what, it.expected, it.found}); }
  void skipped(const std::string& reason) override { send(kSkipped, {reason}); }
  void note(const std::string& text) override { send(kNote, {text}); }
  void end() { send(kEnd, {}); }

 private:
  void send(Kind kind, const std::vector<std::string>& texts) {
    std::string record(kHeader, kind);
    for (const std::string& text : texts) record.append(text.c_str()).push_back('\0');
    const auto size = static_cast<uint32_t>(record.size() - kHeader);
    std::memcpy(record.data() + 1, &size, sizeof size);
    const std::lock_guard lock(mutex_);
    for (size_t sent = 0; sent < record.size();) {
      const ssize_t count = write(fd_, record.data() + sent, record.size() - sent);
      if (count < 0 && errno != EINTR) return;  // nobody listens any more
      if (count > 0) sent += static_cast<size_t>(count);
    }
  }

  std::mutex mutex_;
  const int fd_;
};

class DirectTeller final : public Teller {
 public:
  explicit DirectTeller(Report& report) : report_(report) {}
  void problem(const Problem& it) override {
    const std::lock_guard lock(mutex_);
    report_.problems.push_back(it);
  }
  void skipped(const std::string& reason) override {
    report_.skipped = true;
    report_.reason = reason;
  }
  void note(const std::string& text) override { report_.notes.push_back(text); }

 private:
  std::mutex mutex_;
  Report& report_;
};

// Takes the whole records from the front of `bytes`. Whether the last one was among them.
bool take_records(std::string& bytes, Report& report) {
  bool ended = false;
  while (bytes.size() >= kHeader) {
    uint32_t size = 0;
    std::memcpy(&size, bytes.data() + 1, sizeof size);
    if (bytes.size() - kHeader < size) break;
    std::vector<std::string> texts;
    for (size_t at = kHeader; at < kHeader + size; at += texts.back().size() + 1)
      texts.emplace_back(bytes.c_str() + at);
    texts.resize(4);
    switch (bytes[0]) {
      case kProblem:
        report.problems.push_back({texts[0], texts[1], texts[2], texts[3]});
        break;
      case kSkipped:
        report.skipped = true;
        report.reason = texts[0];
        break;
      case kNote:
        report.notes.push_back(texts[0]);
        break;
      default:
        ended = true;
    }
    bytes.erase(0, kHeader + size);
  }
  return ended;
}

[[noreturn]] void be_the_child(const std::function<void(Teller&)>& body, int fd) {
  setpgid(0, 0);  // so that what a driver starts goes with it
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  std::signal(SIGPIPE, SIG_DFL);  // as in most programs
  tools::Interrupt::release_in_child();
  dup2(STDERR_FILENO, STDOUT_FILENO);  // standard output is the report's
  PipeTeller teller(fd);
  body(teller);
  teller.end();
  std::fflush(nullptr);
  std::exit(0);  // with destructors of static objects: a driver may have some
}

std::string seconds(int64_t ns) { return fmt::format("{:g} s", static_cast<double>(ns) / 1e9); }

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  int get() const { return fd_; }

 private:
  const int fd_;
};

[[noreturn]] void throw_errno(const char* what) {
  throw std::runtime_error(fmt::format("{}: {}", what, std::strerror(errno)));
}

// Reads what there is; false at the end.
bool read_some(int fd, std::string& bytes) {
  char block[4096];
  const ssize_t count = read(fd, block, sizeof block);
  if (count > 0) bytes.append(block, static_cast<size_t>(count));
  return count > 0 || (count < 0 && (errno == EINTR || errno == EAGAIN));
}

}  // namespace

Report run_apart(const std::function<void(Teller&)>& body, int64_t timeout_ns) {
  Report report;
  if (timeout_ns == 0) {
    DirectTeller teller(report);
    body(teller);
    return report;
  }
  std::fflush(nullptr);  // or the child writes it again
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw_errno("cannot make a pipe");
  const Descriptor from(ends[0]);
  pid_t child = -1;
  {
    const Descriptor to(ends[1]);
    child = fork();
    if (child < 0) throw_errno("cannot start a process");
    if (child == 0) be_the_child(body, to.get());
  }
  // Not by glibc's pidfd_open: 2.36 declares it without C linkage.
  const Descriptor process(static_cast<int>(syscall(SYS_pidfd_open, child, 0)));
  if (process.get() < 0) throw_errno("cannot watch a process (pidfd_open)");
  fcntl(from.get(), F_SETFL, O_NONBLOCK);

  const int64_t deadline = now_ns() + timeout_ns;
  std::string bytes;
  bool ended = false, over = false, late = false;
  pollfd watched[] = {{from.get(), POLLIN, 0}, {process.get(), POLLIN, 0}};
  while (!over && !late) {
    const int64_t left = deadline - now_ns();
    late = left <= 0;
    poll(watched, 2, late ? 0 : static_cast<int>(left / 1'000'000 + 1));
    if (watched[0].revents != 0 && !read_some(from.get(), bytes)) watched[0].fd = -1;
    over = watched[1].revents != 0;
  }
  if (late && !over) kill(-child, SIGKILL), kill(child, SIGKILL);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  while (watched[0].fd >= 0) {  // what it said last; a process that it started may still hold the other end
    const size_t before = bytes.size();
    if (!read_some(from.get(), bytes) || bytes.size() == before) break;
  }
  ended = take_records(bytes, report);

  const char* const where = ended ? "the process after the case" : "the case";
  if (late && !over) {
    report.problems.push_back({"R34", where, "an end", "no answer in " + seconds(timeout_ns)});
  } else if (WIFSIGNALED(status)) {
    const int number = WTERMSIG(status);
    report.problems.push_back({ended ? "R9" : "R35", where, "an end",
                               fmt::format("died of signal {} ({})", number, strsignal(number))});
  } else if (WEXITSTATUS(status) != 0 || !ended) {
    report.problems.push_back({ended ? "R9" : "R35", where, "an end with exit code 0",
                               fmt::format("the process ended with exit code {}", WEXITSTATUS(status))});
  }
  return report;
}

}  // namespace halyard::cts
