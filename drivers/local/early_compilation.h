// EarlyCompilation: on a device that compiles hot kernels (jit=auto), chooses kernels of an executable that
// are compiled before their first dispatch runs, because interpreting that dispatch would take longer.
// Samples of the interpreter find the other hot kernels. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>

#include "halyard/driver.h"
#include "kernel_runner.h"
#include "vm/compile/loaded_module.h"

namespace halyard::local {

class EarlyCompilation {
 public:
  explicit EarlyCompilation(vm::LoadedModule& module);

  // Takes the dispatch's kernel from the cache. If the cache does not have it, estimates how long the
  // interpreter would take, and queues the kernel. The number of workgroups must be known.
  void foresee(const halyard_command_dispatch_t& dispatch, const Kernel& kernel);
  // Compiles the kernel on this thread, or waits for the thread that does, if foresee() chose to wait for it.
  void settle(uint32_t kernel, const uint32_t* stop);

 private:
  enum class Choice : uint8_t { undecided, settled, waits };
  struct State {
    std::atomic<Choice> choice = Choice::undecided;
    std::atomic<uint8_t> estimates = 0;  // of dispatches
  };
  Choice choose(const halyard_command_dispatch_t& dispatch, const Kernel& kernel, uint8_t estimates);
  std::optional<uint64_t> interpreted_nanoseconds(const halyard_command_dispatch_t& dispatch,
                                                  const Kernel& kernel) const;

  vm::LoadedModule& module_;
  std::atomic<bool> is_large_ = false;  // a kernel was worth compiling
  std::unique_ptr<State[]> states_;     // by kernel number
};

}  // namespace halyard::local
