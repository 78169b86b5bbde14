// What a signal that asks for an end does to a run. A call is cancelled and the run ends as after any
// failure; all else cannot be stopped and ends with the process, whose trace is finished first. A capture is
// closed in the first case only.
#pragma once

#include <mutex>

#include "common/interrupt.h"
#include "common/program.h"

namespace halyard::tools {

class Stop {
 public:
  enum class Stage {
    before_call,
    call,
    device,      // the call has returned; what it began on a device is waited for
    after_call,  // results are compared or written
    end,         // it goes on to its end, which is near
  };

  explicit Stop(const Program& program) : program_(program) {}

  // `call` is that of Stage::call.
  void enter(Stage stage, halyard_call_t call = nullptr);
  // As Interrupt::explain().
  Failure explain(Failure failure) const { return interrupt_.explain(std::move(failure)); }

 private:
  void now();

  const Program& program_;
  std::mutex mutex_;  // guards the two that follow
  Stage stage_ = Stage::before_call;
  halyard_call_t call_ = nullptr;
  Interrupt interrupt_{[this] { now(); }};
};

}  // namespace halyard::tools
