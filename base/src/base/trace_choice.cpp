// One thread-local byte.
#include "base/trace_choice.h"

#include <utility>

#include "base/thread_local.h"

namespace halyard {

namespace {

HALYARD_SMALL_THREAD_LOCAL thread_local TraceChoice current = TraceChoice::unset;

}  // namespace

TraceChoice current_trace_choice() noexcept { return current; }

TraceChoice TraceChoiceScope::exchange(TraceChoice choice) noexcept { return std::exchange(current, choice); }

}  // namespace halyard
