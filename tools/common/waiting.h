// The line that shows what a tool is waiting for: "waiting: call, 3 s". It appears on a terminal when a phase
// has taken one second, and is removed when the phase ends.
#pragma once

#include <memory>
#include <string_view>

namespace halyard::tools {

class Loop;

// Thread-safe.
class Waiting {
 public:
  // Null if standard error is not a terminal, or if the loop cannot be created.
  static std::unique_ptr<Waiting> on_terminal();
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;
  ~Waiting();

  // Begins and ends a phase. Both calls are cheap, because the timer runs once a second anyway.
  void begin(std::string_view phase);
  void end();
  // Removes the line, before other output on the terminal. The line reappears.
  void clear();

 private:
  struct State;
  explicit Waiting(std::shared_ptr<Loop> loop);

  std::shared_ptr<Loop> loop_;
  std::shared_ptr<State> state_;
};

}  // namespace halyard::tools
