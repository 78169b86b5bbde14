// One function for each kind of command, in a table by kind.
#include "perform.h"

#include <iterator>

#include "base/work_scope.h"
#include "bytes.h"
#include "halyard/driver/trace.hpp"
#include "kernel_call.h"
#include "kernel_runner.h"
#include "partial_fills.h"

namespace halyard::local {

namespace {

Result<> perform_fill(const halyard_command_t& command, const Execution& execution) {
  kit::TraceSpan span(*execution.services, "fill");
  span.set_command(execution.submission, &command);
  const auto& fill_command = as<halyard_command_fill_t>(command);
  if (execution.partial_fills)
    if (const PartialFills::Fill* const partial = execution.partial_fills->of(command))
      return fill_parts(fill_command, partial->rest, execution);
  return fill(fill_command.target, fill_command.pattern, fill_command.pattern_size, execution);
}
Result<> perform_update(const halyard_command_t& command, const Execution& execution) {
  kit::TraceSpan span(*execution.services, "update");
  span.set_command(execution.submission, &command);
  const auto& update_command = as<halyard_command_update_t>(command);
  return update(update_command.source, update_command.target, execution);
}
Result<> perform_copy(const halyard_command_t& command, const Execution& execution) {
  kit::TraceSpan span(*execution.services, "copy");
  span.set_command(execution.submission, &command);
  const auto& copy_command = as<halyard_command_copy_t>(command);
  return copy(copy_command.source, copy_command.target, execution);
}
Result<> perform_dispatch(const halyard_command_t& command, const Execution& execution) {
  return run_alone(as<halyard_command_dispatch_t>(command), execution);
}
Result<> perform_nothing(const halyard_command_t&, const Execution&) { return {}; }

// Indexed by kind.
using Perform = Result<> (*)(const halyard_command_t& command, const Execution& execution);
constexpr Perform kPerform[] = {
    nullptr,           // there is no kind 0
    perform_nothing,   // HALYARD_COMMAND_BARRIER
    perform_fill,      // HALYARD_COMMAND_FILL
    perform_update,    // HALYARD_COMMAND_UPDATE
    perform_copy,      // HALYARD_COMMAND_COPY
    perform_dispatch,  // HALYARD_COMMAND_DISPATCH
    nullptr,           // HALYARD_COMMAND_COLLECTIVE
    perform_nothing,   // HALYARD_COMMAND_BEGIN_GROUP
    perform_nothing,   // HALYARD_COMMAND_END_GROUP
};

}  // namespace

bool has_command(uint32_t kind) { return kind < std::size(kPerform) && kPerform[kind]; }
bool does_something(uint32_t kind) { return kPerform[kind] != perform_nothing; }

Result<> perform(const halyard_command_t& command, const Execution& execution) {
  if (stop_code(execution.stop) != Code::OK) [[unlikely]]
    return go_on_unless_stopped(execution.stop);
  return kPerform[command.kind](command, execution);
}

}  // namespace halyard::local
