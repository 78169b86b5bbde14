// The line that shows what a tool waits for: "waiting: call, 3 s". It appears on a terminal when a phase has
// taken a second, and goes when the phase ends.
#pragma once

#include <memory>
#include <string_view>

namespace halyard::tools {

class Loop;

// Thread-safe.
class Waiting {
 public:
  // Null if standard error is no terminal, or if the loop cannot be had.
  static std::unique_ptr<Waiting> on_terminal();
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;
  ~Waiting();

  // The phase that takes time from now on. Both calls are cheap: the timer runs once a second anyway.
  void begin(std::string_view phase);
  void end();
  // Removes the line before something else is printed on the terminal. It comes back.
  void clear();

 private:
  struct State;
  explicit Waiting(std::shared_ptr<Loop> loop);

  std::shared_ptr<Loop> loop_;
  std::shared_ptr<State> state_;
};

}  // namespace halyard::tools
