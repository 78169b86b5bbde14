// Child processes on an event loop: starts them, reads their output, limits their time and waits for them.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/failure.h"

namespace halyard::tools {

// An executable file to run in a child.
struct ChildProgram {
  // A descriptor of the child that is a pipe to this process. The last `most` bytes of the output are kept.
  struct Output {
    int descriptor;
    size_t most;
  };

  std::string path;
  std::vector<std::string> arguments;  // the first is the name of the program
  std::vector<Output> outputs;         // descriptors 0 to 2 that are not listed are /dev/null
};

// The output of a child, and how it ended.
struct ChildExit {
  std::vector<std::string> outputs;  // in the order of ChildProgram::outputs; one for fork()
  bool is_late = false;              // it was killed because its time limit had passed
  int status = 0;                    // as from waitpid()

  bool is_signalled() const;
  int signal() const;     // precondition: is_signalled()
  int exit_code() const;  // otherwise
};

// Children of this process, on one event loop. Each has its own process group: when a child ends, the
// processes that it started and left are killed. One thread, except terminate().
class Children {
 public:
  using Done = std::function<void(ChildExit)>;

  Children();
  Children(const Children&) = delete;
  Children& operator=(const Children&) = delete;
  ~Children();  // kills the remaining children

  // Starts a program. run() calls `done` when the program has ended, and kills it after `limit`. UNAVAILABLE:
  // it cannot be started. RESOURCE_EXHAUSTED: no free descriptor. The text contains only the reason.
  Result<> spawn(const ChildProgram& program, std::optional<std::chrono::nanoseconds> limit, Done done);
  // Runs `body` in a copy of this process, with a pipe to write to. The child then exits with code 0. Its
  // standard output is standard error. It is killed if this process ends. No other thread of this process may
  // hold a lock.
  Result<> fork(const std::function<void(int pipe)>& body, std::optional<std::chrono::nanoseconds> limit,
                Done done);
  // Returns when every child has ended, including children that `done` functions have started.
  void run();
  // Sends SIGTERM to every running child. Any thread.
  void terminate();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace halyard::tools
