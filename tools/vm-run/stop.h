// Stops a run after a signal. A call is cancelled, including its work on devices, and the run ends as after
// any failure. In all other stages, and if a call or a device does not stop within half a second, the trace
// is finished and the process exits without closing a capture.
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
    device,      // the call has returned; waits for its device work, which is cancelled
    after_call,  // results are compared or written
    end,         // the run is ending
  };

  explicit Stop(const Program& program) : program_(program) {}

  // Stage::call and Stage::device require `call`.
  void enter(Stage stage, halyard_call_t call = nullptr);
  // See Interrupt::explain().
  Failure explain(Failure failure) const { return interrupt_.explain(std::move(failure)); }

 private:
  void now();

  const Program& program_;
  std::mutex mutex_;  // guards the next three members
  Stage stage_ = Stage::before_call;
  halyard_call_t call_ = nullptr;
  int asked_ = 0;  // number of times that the call or its device work was cancelled
  Interrupt interrupt_{[this] { now(); }};
};

}  // namespace halyard::tools
