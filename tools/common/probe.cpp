// The two processes of a probe. The child writes records to a pipe, each ended by a zero byte: 's' and the
// step that it begins, at the end 'r' and its result.
#include "common/probe.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstring>
#include <optional>

#include "common/printable.h"
#include "common/quantities.h"

extern char** environ;

namespace halyard::tools {

namespace {

constexpr int kReportFd = 3;          // of the child
constexpr size_t kMostWritten = 400;  // bytes kept of what a driver writes to standard error
constexpr char kLastStep[] = "exit";  // behind the steps of halyard_driver_probe: the process ends

void report(char kind, std::string_view text) {
  std::string record = kind + std::string(text) + '\0';
  std::string_view rest = record;
  while (!rest.empty()) {
    const ssize_t written = ::write(kReportFd, rest.data(), rest.size());
    if (written <= 0) return;  // nobody listens any more
    rest.remove_prefix(static_cast<size_t>(written));
  }
}

// Its ends lie above the child's standard ones and the report's, even where this process was started without
// some of them: they would be overwritten while the child is made.
struct Pipe {
  Pipe() {
    int low[2];
    if (::pipe2(low, O_CLOEXEC) != 0) return;
    for (int i = 0; i < 2; ++i) {
      ends[i] = ::fcntl(low[i], F_DUPFD_CLOEXEC, kReportFd + 1);
      ::close(low[i]);
    }
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  ~Pipe() {
    for (const int end : ends)
      if (end >= 0) ::close(end);
  }
  void close_writer() { ::close(std::exchange(ends[1], -1)); }
  int ends[2] = {-1, -1};  // to read from, to write to
};

// What is known of a child.
struct Child {
  std::string records;
  std::string written;  // the end of what it wrote to standard error
  bool late = false;
  int status = 0;  // as waitpid gives it
};

// Its own process group, so that what a driver starts is killed with it.
Result<pid_t> start(const std::string& path, const Pipe& records, const Pipe& errors) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawnattr_init(&attributes);
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  ::posix_spawn_file_actions_adddup2(&actions, errors.ends[1], STDERR_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, records.ends[1], kReportFd);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  std::string program = program_invocation_short_name;
  std::string argument = kProbeArgument;
  std::string file = path;
  char* const arguments[] = {program.data(), argument.data(), file.data(), nullptr};
  pid_t child = 0;
  const int error = ::posix_spawn(&child, "/proc/self/exe", &actions, &attributes, arguments, environ);
  ::posix_spawn_file_actions_destroy(&actions);
  ::posix_spawnattr_destroy(&attributes);
  if (error != 0)
    return fail(HALYARD_UNAVAILABLE, "cannot start a process to try driver '{}' in: {}", path,
                std::strerror(error));
  return child;
}

// Reads what there is; false at the end.
bool drain(int fd, std::string& text) {
  char buffer[4096];
  const ssize_t size = ::read(fd, buffer, sizeof buffer);
  if (size > 0) text.append(buffer, static_cast<size_t>(size));
  return size > 0 || (size < 0 && errno == EINTR);
}

// Until the child has ended, or the time is over. A process that it started may keep the pipes open: then the
// time decides.
void follow(const Pipe& records, const Pipe& errors, std::chrono::nanoseconds limit, Child& child) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  pollfd waits[] = {{records.ends[0], POLLIN, 0}, {errors.ends[0], POLLIN, 0}};
  while (waits[0].fd >= 0) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    child.late = left.count() <= 0;
    if (child.late) return;
    constexpr int64_t kLongest = 1 << 30;
    if (::poll(waits, 2, static_cast<int>(std::min<int64_t>(left.count(), kLongest))) < 0) continue;
    if (waits[1].revents && !drain(waits[1].fd, child.written)) waits[1].fd = -1;
    if (waits[0].revents && !drain(waits[0].fd, child.records)) waits[0].fd = -1;
    if (child.written.size() > kMostWritten) child.written.erase(0, child.written.size() - kMostWritten);
  }
}

std::string last_words(const Child& child) {
  std::string text = child.written;
  while (!text.empty() && text.back() == '\n') text.pop_back();
  std::ranges::replace(text, '\n', ' ');
  return text.empty() ? "" : fmt::format("; it wrote: {}", printable(text));
}

// "initialize"; the library's constructors run in "load".
std::string_view step_text(std::string_view step) {
  if (step.empty()) return "the process that tries it, before any of its code";
  if (step == "load") return "load (a constructor of the library)";
  if (step == kLastStep) return "exit (a destructor of the library, or what it registered)";
  return step;
}

Result<> verdict(const std::string& path, const Child& child, std::chrono::nanoseconds limit) {
  std::string_view step;
  std::optional<std::string_view> result;
  std::string_view rest = child.records;
  while (!rest.empty()) {
    const size_t size = std::min(rest.find('\0'), rest.size());
    if (rest.front() == 's') step = rest.substr(1, size - 1);
    if (rest.front() == 'r') result = rest.substr(1, size - 1);
    rest.remove_prefix(std::min(size + 1, rest.size()));
  }
  const std::string where = fmt::format("{}{}", step_text(step), last_words(child));
  if (child.late)
    return fail(HALYARD_DEADLINE_EXCEEDED,
                "driver '{}': no answer within {:.4g} s in {}; --timeout gives it longer", path,
                std::chrono::duration<double>(limit).count(), where);
  if (WIFSIGNALED(child.status)) {
    const int signal = WTERMSIG(child.status);
    const char* const name = ::sigabbrev_np(signal);
    return fail(HALYARD_INTERNAL, "driver '{}' crashed with signal {} (SIG{}) in {}", path, signal,
                name ? name : "?", where);
  }
  if (!result || WEXITSTATUS(child.status) != 0)
    return fail(HALYARD_INTERNAL, "driver '{}' ended the process with exit status {} in {}", path,
                WEXITSTATUS(child.status), where);
  halyard_status_code_t code = HALYARD_UNKNOWN;
  const char* const begin = result->data();
  const char* const end = begin + result->size();
  const char* const text = std::from_chars(begin, end, code).ptr;
  if (code == HALYARD_OK) return {};
  return std::unexpected(Failure{code, std::string(text + (text != end), end)});
}

}  // namespace

Result<> probe_driver(const std::string& path, std::chrono::nanoseconds limit) {
  Pipe records;
  Pipe errors;
  if (std::ranges::min({records.ends[0], records.ends[1], errors.ends[0], errors.ends[1]}) < 0)
    return fail(HALYARD_RESOURCE_EXHAUSTED, "cannot try driver '{}': {}", path, std::strerror(errno));
  const pid_t process = TOOL_TRY(start(path, records, errors));
  records.close_writer();
  errors.close_writer();
  Child child;
  follow(records, errors, limit, child);
  // It has ended, or is ending, or is killed now. A child that ended and left processes behind was not late.
  pid_t ended = ::waitpid(process, &child.status, child.late ? WNOHANG : 0);
  if (ended == process) child.late = false;
  ::kill(-process, SIGKILL);
  while (ended != process) {
    ended = ::waitpid(process, &child.status, 0);
    if (ended < 0 && errno != EINTR)
      return fail(HALYARD_INTERNAL, "lost the process that tries driver '{}': {}", path,
                  std::strerror(errno));
  }
  return verdict(path, child, limit);
}

Result<std::chrono::nanoseconds> probe_limit(const Flags& flags) {
  constexpr uint64_t kLongest = uint64_t{1} << 60;
  if (!flags.has("timeout")) return std::chrono::seconds(10);
  return std::chrono::nanoseconds(
      std::min(TOOL_TRY(parse_duration("timeout", flags.value("timeout"))), kLongest));
}

int probe_main(const char* path) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const rlimit none = {0, 0};
  ::setrlimit(RLIMIT_CORE, &none);
  // What is told is what the system says of a crash, not what a handler (a sanitizer's) makes of it.
  for (const int signal : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT}) std::signal(signal, SIG_DFL);
  ::fcntl(kReportFd, F_SETFD, FD_CLOEXEC);
  const Result<> done =
      check(halyard_driver_probe(path, [](void*, const char* step) { report('s', step); }, nullptr));
  report('r', done ? "0" : fmt::format("{} {}", done.error().code, done.error().text));
  report('s', kLastStep);
  return 0;
}

}  // namespace halyard::tools
