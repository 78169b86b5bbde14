// Spawning; what is printed goes to files in memory, so that nothing is left to do while the child runs.
#include "child.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

namespace halyard::tools {

namespace {

class MemoryFile {
 public:
  MemoryFile() : descriptor_(::memfd_create("output", MFD_CLOEXEC)) {}
  MemoryFile(const MemoryFile&) = delete;
  ~MemoryFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  int get() const { return descriptor_; }
  std::string contents() const {
    constexpr off_t kMost = off_t{64} << 20;
    struct stat status = {};
    if (::fstat(descriptor_, &status) != 0) return "";
    std::string text(static_cast<size_t>(std::min(status.st_size, kMost)), '\0');
    const ssize_t size = ::pread(descriptor_, text.data(), text.size(), 0);
    text.resize(size < 0 ? 0 : static_cast<size_t>(size));
    return text;
  }

 private:
  int descriptor_;
};

std::unexpected<Failure> cannot_start(const std::string& command, int error) {
  return fail(HALYARD_UNAVAILABLE, "cannot start '{}': {}", command, std::strerror(error));
}

}  // namespace

Result<ChildOutput> run_child(const std::string& command, const std::vector<std::string>& arguments,
                              Stop& stop) {
  const MemoryFile out;
  const MemoryFile error;
  if (out.get() < 0 || error.get() < 0) return cannot_start(command, errno);
  std::string script = "exec " + command + " \"$@\"";
  std::vector<std::string> texts = {"sh", "-c", script, "sh"};
  texts.insert(texts.end(), arguments.begin(), arguments.end());
  std::vector<char*> words;
  for (std::string& text : texts) words.push_back(text.data());
  words.push_back(nullptr);

  posix_spawn_file_actions_t actions;
  if (const int failed = ::posix_spawn_file_actions_init(&actions)) return cannot_start(command, failed);
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&actions, out.get(), STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, error.get(), STDERR_FILENO);
  // Not the signals that this process has blocked, or could not end the child by.
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  sigset_t none;
  ::sigemptyset(&none);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  pid_t pid = 0;
  const int failed = ::posix_spawn(&pid, "/bin/sh", &actions, &attributes, words.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  ::posix_spawnattr_destroy(&attributes);
  if (failed) return cannot_start(command, failed);

  stop.set_also([pid] { ::kill(pid, SIGTERM); });
  siginfo_t info = {};
  while (::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOWAIT) != 0 && errno == EINTR) {
  }
  stop.set_also({});  // before the number may become another process's
  int status = 0;
  ::waitpid(pid, &status, 0);

  ChildOutput output = {out.contents(), error.contents(), -1, 0};
  if (WIFEXITED(status)) output.exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) output.signal = WTERMSIG(status);
  return output;
}

}  // namespace halyard::tools
