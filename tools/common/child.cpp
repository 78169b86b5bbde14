// The loop waits for the end of a child through a descriptor: Linux's pidfd, which becomes readable when the
// child has ended.
#include "common/child.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <list>
#include <utility>

#include "common/descriptor.h"
#include "common/interrupt.h"

namespace halyard::tools {

namespace asio = boost::asio;

namespace {

using Limit = std::optional<std::chrono::nanoseconds>;

std::unexpected<Failure> no_pipe() {
  return fail(HALYARD_RESOURCE_EXHAUSTED, "cannot make a pipe: {}", std::strerror(errno));
}

struct Pipe {
  Descriptor reader;
  Descriptor writer;
};

// Creates a pipe with descriptors of at least `lowest`. A child's descriptors below can then be replaced in
// any order.
Result<Pipe> make_pipe(int lowest) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return no_pipe();
  Pipe pipe{Descriptor(ends[0]), Descriptor(ends[1])};
  for (Descriptor* const end : {&pipe.reader, &pipe.writer}) {
    if (end->get() >= lowest) continue;
    *end = Descriptor(::fcntl(end->get(), F_DUPFD_CLOEXEC, lowest));
    if (end->get() < 0) return no_pipe();
  }
  return pipe;
}

// The file actions and attributes of posix_spawn.
class SpawnSetup {
 public:
  SpawnSetup() {
    ::posix_spawn_file_actions_init(&actions_);
    ::posix_spawnattr_init(&attributes_);
    // Unblocks all signals, because this process may block signals that must terminate the child.
    sigset_t none;
    ::sigemptyset(&none);
    ::posix_spawnattr_setsigmask(&attributes_, &none);
    ::posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
  }
  SpawnSetup(const SpawnSetup&) = delete;
  ~SpawnSetup() {
    ::posix_spawn_file_actions_destroy(&actions_);
    ::posix_spawnattr_destroy(&attributes_);
  }
  void open_null(int descriptor) {
    const int direction = descriptor == STDIN_FILENO ? O_RDONLY : O_WRONLY;
    ::posix_spawn_file_actions_addopen(&actions_, descriptor, "/dev/null", direction, 0);
  }
  void connect(int from, int descriptor) { ::posix_spawn_file_actions_adddup2(&actions_, from, descriptor); }
  // Returns 0 or errno.
  int spawn(const ChildProgram& program, pid_t& pid) {
    std::vector<std::string> texts = program.arguments;
    std::vector<char*> arguments;
    for (std::string& text : texts) arguments.push_back(text.data());
    arguments.push_back(nullptr);
    return ::posix_spawn(&pid, program.path.c_str(), &actions_, &attributes_, arguments.data(), environ);
  }

 private:
  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

[[noreturn]] void be_the_child(pid_t parent, const std::function<void(int)>& body, int pipe) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);  // it ended before this process asked to be told
  std::signal(SIGPIPE, SIG_DFL);          // the default of most programs
  Interrupt::release_in_child();
  ::dup2(STDERR_FILENO, STDOUT_FILENO);  // standard output is for the results of this process
  body(pipe);
  std::fflush(nullptr);
  std::exit(0);  // runs destructors of static objects, such as those in a library that the child has loaded
}

// Reads a pipe and keeps the end of the output.
class Reader {
 public:
  Reader(asio::io_context& context, Descriptor pipe, size_t most)
      : pipe_(context, pipe.release()), most_(most) {
    pipe_.non_blocking(true);
  }
  // Waits for readability and then reads, because finish() would not see the bytes of a pending read.
  void start() {
    pipe_.async_wait(asio::posix::stream_descriptor::wait_read,
                     [this](const boost::system::error_code& error) {
                       if (error) return;
                       const boost::system::error_code result = read();
                       if (!result || result == asio::error::would_block) start();
                     });
  }
  // Reads the bytes that are in the pipe now. Does not wait for the end of the pipe, because another process
  // may hold the other end.
  void finish() {
    constexpr int kMaxBlocks = 64;  // the capacity of the largest pipe
    boost::system::error_code error;
    for (int i = 0; i < kMaxBlocks && !error; ++i) error = read();
    (void)pipe_.close(error);
  }
  std::string text() {
    if (text_.size() > most_) text_.erase(0, text_.size() - most_);
    return std::move(text_);
  }

 private:
  boost::system::error_code read() {
    boost::system::error_code error;
    const size_t size = pipe_.read_some(asio::buffer(block_), error);
    text_.append(block_.data(), size);
    // Removes bytes only when the text is twice too long, because each removal moves the rest.
    if (text_.size() / 2 > most_) text_.erase(0, text_.size() - most_);
    return error;
  }

  asio::posix::stream_descriptor pipe_;
  const size_t most_;
  std::array<char, 16384> block_ = {};
  std::string text_;
};

}  // namespace

bool ChildExit::is_signalled() const { return WIFSIGNALED(status); }
int ChildExit::signal() const { return WTERMSIG(status); }
int ChildExit::exit_code() const { return WEXITSTATUS(status); }

struct Children::State {
  struct Process {
    Process(asio::io_context& context, pid_t number) : pid(number), end(context), timer(context) {}

    const pid_t pid;  // also the number of the process group
    asio::posix::stream_descriptor end;
    asio::steady_timer timer;
    std::list<Reader> readers;
    Done done;
    bool is_late = false;
    bool is_reaped = false;
  };

  // Takes over a running process.
  Result<> follow(pid_t pid, std::vector<std::pair<Descriptor, size_t>> pipes, Limit limit, Done done) {
    Process& child = processes.emplace_back(context, pid);
    child.done = std::move(done);
    // Does not use glibc's pidfd_open, because glibc 2.36 declares it without C linkage.
    const int descriptor = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
    if (descriptor < 0) {
      const int error = errno;
      reap(child);
      processes.pop_back();
      return fail(HALYARD_UNAVAILABLE, "cannot watch a process (pidfd_open): {}", std::strerror(error));
    }
    child.end.assign(descriptor);
    for (auto& [pipe, most] : pipes) child.readers.emplace_back(context, std::move(pipe), most).start();
    wait_for_end(child);
    if (!limit) return {};
    child.timer.expires_after(*limit);
    child.timer.async_wait([&child](const boost::system::error_code& error) {
      if (error || child.is_reaped || has_ended(child)) return;
      child.is_late = true;
      ::kill(-child.pid, SIGKILL);  // the wait for its end then completes
    });
    return {};
  }

  void wait_for_end(Process& child) {
    child.end.async_wait(asio::posix::stream_descriptor::wait_read,
                         [this, &child](const boost::system::error_code& error) {
                           if (error) return;
                           // Asio may report a descriptor as ready when it is not.
                           has_ended(child) ? finish(child) : wait_for_end(child);
                         });
  }

  static bool has_ended(const Process& child) {
    siginfo_t info = {};
    const int result = ::waitid(P_PID, static_cast<id_t>(child.pid), &info, WEXITED | WNOHANG | WNOWAIT);
    return result != 0 || info.si_pid != 0;
  }

  // Kills the remaining processes of the group and returns the status. A process group keeps its number until
  // its leader has been waited for.
  static int reap(const Process& child) {
    ::kill(-child.pid, SIGKILL);
    int status = 0;
    while (::waitpid(child.pid, &status, 0) < 0 && errno == EINTR) {
    }
    return status;
  }

  void finish(Process& child) {
    ChildExit exit{.outputs = {}, .is_late = child.is_late, .status = reap(child)};
    for (Reader& reader : child.readers) {
      reader.finish();
      exit.outputs.push_back(reader.text());
    }
    const Done done = std::move(child.done);
    child.is_reaped = true;
    child.timer.cancel();
    ended.splice(ended.end(), processes,
                 std::ranges::find_if(processes, [&](const Process& it) { return &it == &child; }));
    done(std::move(exit));
  }

  asio::io_context context{1};
  std::list<Process> processes;  // running
  std::list<Process> ended;      // handlers may still be queued
};

Children::Children() : state_(std::make_unique<State>()) {}

Children::~Children() {
  for (const State::Process& child : state_->processes) State::reap(child);
}

Result<> Children::spawn(const ChildProgram& program, Limit limit, Done done) {
  int lowest = STDERR_FILENO + 1;
  for (const ChildProgram::Output& output : program.outputs) lowest = std::max(lowest, output.descriptor + 1);
  SpawnSetup setup;
  std::vector<std::pair<Descriptor, size_t>> pipes;
  std::vector<Descriptor> writers;
  for (int standard = STDIN_FILENO; standard <= STDERR_FILENO; ++standard)
    if (std::ranges::find(program.outputs, standard, &ChildProgram::Output::descriptor) ==
        program.outputs.end())
      setup.open_null(standard);
  for (const ChildProgram::Output& output : program.outputs) {
    Pipe pipe = TOOL_TRY(make_pipe(lowest));
    setup.connect(pipe.writer.get(), output.descriptor);
    pipes.emplace_back(std::move(pipe.reader), output.most);
    writers.push_back(std::move(pipe.writer));
  }
  pid_t pid = 0;
  if (const int error = setup.spawn(program, pid); error != 0)
    return fail(HALYARD_UNAVAILABLE, "{}", std::strerror(error));
  return state_->follow(pid, std::move(pipes), limit, std::move(done));
}

Result<> Children::fork(const std::function<void(int)>& body, Limit limit, Done done) {
  std::fflush(nullptr);  // otherwise the child would write the buffered output again
  Pipe pipe = TOOL_TRY(make_pipe(STDERR_FILENO + 1));
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) return fail(HALYARD_UNAVAILABLE, "{}", std::strerror(errno));
  if (pid == 0) be_the_child(parent, body, pipe.writer.get());
  ::setpgid(pid, pid);  // in both processes, because either may run first
  std::vector<std::pair<Descriptor, size_t>> pipes;
  pipes.emplace_back(std::move(pipe.reader), SIZE_MAX);
  return state_->follow(pid, std::move(pipes), limit, std::move(done));
}

void Children::run() {
  state_->context.restart();
  state_->context.run();
  state_->ended.clear();
}

void Children::terminate() {
  asio::post(state_->context, [this] {
    for (const State::Process& child : state_->processes) ::kill(-child.pid, SIGTERM);
  });
}

}  // namespace halyard::tools
