// The two processes of a probe. The child writes records to a pipe, each terminated by a zero byte: 's' and
// the name of the step that begins; at the end 'r' and the result.
#include "common/probe.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <functional>

#include "common/child.h"
#include "common/printable.h"

namespace halyard::tools {

namespace {

constexpr int kReportFd = 3;          // in the child
constexpr size_t kMaxWritten = 400;   // kept bytes of a driver's standard error
constexpr char kLastStep[] = "exit";  // after the steps of halyard_driver_probe, when the process exits

void report(char kind, std::string_view text) {
  std::string record = kind + std::string(text) + '\0';
  std::string_view rest = record;
  while (!rest.empty()) {
    const ssize_t written = ::write(kReportFd, rest.data(), rest.size());
    if (written <= 0) return;  // the parent has ended
    rest.remove_prefix(static_cast<size_t>(written));
  }
}

ChildProgram probe_of(const std::string& path) {
  return {.path = "/proc/self/exe",
          .arguments = {program_invocation_short_name, kProbeArgument, path},
          .outputs = {{kReportFd, SIZE_MAX}, {STDERR_FILENO, kMaxWritten}}};
}

std::string last_words(const ChildExit& child) {
  std::string text = child.outputs[1];
  while (!text.empty() && text.back() == '\n') text.pop_back();
  std::ranges::replace(text, '\n', ' ');
  return text.empty() ? "" : fmt::format("; it wrote: {}", printable(text));
}

// "initialize"; the library's constructors run in "load".
std::string_view step_text(std::string_view step) {
  if (step.empty()) return "the process that tries it, before any code of the driver";
  if (step == "load") return "load (a constructor of the library)";
  if (step == kLastStep) return "exit (a destructor or an exit handler of the library)";
  return step;
}

Result<> verdict(const std::string& path, const ChildExit& child, std::chrono::nanoseconds limit) {
  std::string_view step;
  std::optional<std::string_view> result;
  std::string_view rest = child.outputs[0];
  while (!rest.empty()) {
    const size_t size = std::min(rest.find('\0'), rest.size());
    if (rest.front() == 's') step = rest.substr(1, size - 1);
    if (rest.front() == 'r') result = rest.substr(1, size - 1);
    rest.remove_prefix(std::min(size + 1, rest.size()));
  }
  const std::string where = fmt::format("{}{}", step_text(step), last_words(child));
  if (child.is_late)
    return fail(HALYARD_DEADLINE_EXCEEDED,
                "driver '{}': no answer within {:.4g} s in {}; raise the limit with --timeout", path,
                std::chrono::duration<double>(limit).count(), where);
  if (child.is_signalled()) {
    const int signal = child.signal();
    const char* const name = ::sigabbrev_np(signal);
    return fail(HALYARD_INTERNAL, "driver '{}' crashed with signal {} (SIG{}) in {}", path, signal,
                name ? name : "?", where);
  }
  if (!result || child.exit_code() != 0)
    return fail(HALYARD_INTERNAL, "driver '{}' ended the process with exit status {} in {}", path,
                child.exit_code(), where);
  halyard_status_code_t code = HALYARD_UNKNOWN;
  const char* const begin = result->data();
  const char* const end = begin + result->size();
  const char* const text = std::from_chars(begin, end, code).ptr;
  if (code == HALYARD_OK) return {};
  return std::unexpected(Failure{code, std::string(text + (text != end), end)});
}

}  // namespace

Result<> probe_driver(const std::string& path, std::chrono::nanoseconds limit) {
  std::vector<std::optional<Failure>> failures = probe_drivers({&path, 1}, limit);
  if (failures.front()) return std::unexpected(*std::move(failures.front()));
  return {};
}

std::vector<std::optional<Failure>> probe_drivers(std::span<const std::string> paths,
                                                  std::chrono::nanoseconds limit) {
  constexpr size_t kMaxAtOnce = 8;  // processes spend most of the time waiting for drivers that hang
  std::vector<std::optional<Failure>> failures(paths.size());
  Children children;
  size_t next = 0;
  const std::function<void()> start_next = [&] {
    while (next < paths.size()) {
      const size_t index = next++;
      const Result<> started =
          children.spawn(probe_of(paths[index]), limit, [&, index](const ChildExit& child) {
            if (Result<> tried = verdict(paths[index], child, limit); !tried)
              failures[index] = std::move(tried.error());
            start_next();
          });
      if (started) return;
      failures[index] = {started.error().code, fmt::format("cannot start a process to try driver '{}' in: {}",
                                                           paths[index], started.error().text)};
    }
  };
  for (size_t i = 0; i < kMaxAtOnce; ++i) start_next();
  children.run();
  return failures;
}

Result<std::chrono::nanoseconds> probe_limit(const Flags& flags, const Duration& flag) {
  return TOOL_TRY(flags[flag]).value_or(std::chrono::seconds(10));
}

int probe_main(const char* path) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const rlimit none = {0, 0};
  ::setrlimit(RLIMIT_CORE, &none);
  // A crash must terminate the process with its signal, without a handler such as a sanitizer's.
  for (const int signal : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT}) std::signal(signal, SIG_DFL);
  ::fcntl(kReportFd, F_SETFD, FD_CLOEXEC);
  const Result<> done = check(halyard::probe_driver(path, [](const char* step) { report('s', step); }));
  report('r', done ? "0" : fmt::format("{} {}", done.error().code, done.error().text));
  report('s', kLastStep);
  return 0;
}

}  // namespace halyard::tools
