// Child processes: started, read from, limited in time and waited for on an event loop.
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
  // A descriptor of the child that is a pipe to this process. Of what the child writes, the last `most` bytes
  // are kept.
  struct Output {
    int descriptor;
    size_t most;
  };

  std::string path;
  std::vector<std::string> arguments;  // the first is the program's name
  std::vector<Output> outputs;         // descriptors 0 to 2 that are not listed are /dev/null
};

// What a child wrote, and how it ended.
struct ChildExit {
  std::vector<std::string> outputs;  // in the order of ChildProgram::outputs; one for fork()
  bool is_late = false;              // it was killed because its time was over
  int status = 0;                    // as from waitpid()

  bool is_signalled() const;
  int signal() const;     // if is_signalled()
  int exit_code() const;  // otherwise
};

// Children of this process, on one event loop. Each has a process group of its own: processes that a child
// starts and leaves behind are killed when it ends. One thread, except terminate().
class Children {
 public:
  using Done = std::function<void(ChildExit)>;

  Children();
  Children(const Children&) = delete;
  Children& operator=(const Children&) = delete;
  ~Children();  // kills those that are left

  // Starts a program. run() calls `done` when it has ended, and kills it when `limit` is over. UNAVAILABLE:
  // it cannot be started; RESOURCE_EXHAUSTED: no descriptor is left. The text says why, and nothing else.
  Result<> spawn(const ChildProgram& program, std::optional<std::chrono::nanoseconds> limit, Done done);
  // Runs `body` in a copy of this process, with a pipe to write to. The child then ends with exit code 0. Its
  // standard output is standard error, and it is killed if this process ends. This process must have no other
  // thread that could hold a lock.
  Result<> fork(const std::function<void(int pipe)>& body, std::optional<std::chrono::nanoseconds> limit,
                Done done);
  // Returns when every child has ended, also those that `done` functions have started.
  void run();
  // Sends SIGTERM to every child that runs. Any thread.
  void terminate();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace halyard::tools
