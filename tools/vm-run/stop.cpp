// Stops a run in each of its stages.
#include "stop.h"

#include <cstdlib>

#include "common/standard_streams.h"

namespace halyard::tools {

namespace {
constexpr int kPatience = 10;  // half a second, because `stop` is called twenty times a second
}

void Stop::enter(Stage stage, halyard_call_t call) {
  const std::lock_guard lock(mutex_);
  stage_ = stage;
  call_ = call;
}

void Stop::now() {
  const std::lock_guard lock(mutex_);
  std::string_view where;
  switch (stage_) {
    case Stage::end:
      return;
    case Stage::call:
      if (++asked_ < kPatience) {
        halyard_call_cancel(call_);
        return;
      }
      where = "the call did not stop, because native code runs or code is being compiled";
      break;
    case Stage::before_call:
      where = "before the call";
      break;
    case Stage::device:
      if (++asked_ < kPatience) {
        halyard_call_cancel(call_);
        return;
      }
      where = "the call has returned, but its work on a device has not ended";
      break;
    case Stage::after_call:
      where = "the call has returned, but not all results were written";
      break;
  }
  Failure failure{.code = HALYARD_CANCELLED,
                  .text = fmt::format("stopped by {}: {}", interrupt_.cause(), where)};
  if (program_.trace)
    if (const Result<> finished = check(program_.trace.finish()); !finished)
      failure.text += "; " + finished.error().text;
  if (program_.waiting) program_.waiting->clear();
  print_error("vm-run: {}\n", failure.line());
  std::_Exit(interrupt_.exit_code());
}

}  // namespace halyard::tools
