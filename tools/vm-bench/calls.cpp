// Complete calls, and calls in steps.
#include "calls.h"

#include <algorithm>
#include <utility>

#include "common/convention.h"
#include "common/program_flags.h"
#include "samples.h"
#include "text/suggest.h"

namespace halyard::tools {

namespace {

Result<Target> target_of(const Module& module, uint32_t index) {
  Target target;
  target.description = TOOL_TRY(module.function(index));
  target.name = view(target.description.name);
  target.is_dispatch = TOOL_TRY(module.attribute(index, "iree.benchmark")) == "dispatch" &&
                       view(target.description.convention).starts_with("0i_");
  return target;
}

}  // namespace

Result<std::vector<Target>> chosen_targets(const Flags& flags, const Module& module) {
  const halyard_module_info_t info = TOOL_TRY(module.info());
  std::vector<Target> all;
  for (uint32_t i = 0; i < info.function_count; ++i) all.push_back(TOOL_TRY(target_of(module, i)));
  std::vector<Target> chosen;
  if (flags[flag::function].empty()) {
    for (const Target& target : all) {
      if (target.name.starts_with("__") || target.name.contains('$')) continue;
      const Result<std::string> types = input_types(target.description);
      if (target.is_dispatch || (types && types->empty())) chosen.push_back(target);
    }
    if (!chosen.empty()) return chosen;
  }
  const std::string name = TOOL_TRY(chosen_function(flags, module));
  const auto found = std::ranges::find(all, name, &Target::name);
  if (found == all.end()) {
    std::vector<std::string_view> names;
    std::string list;
    for (const Target& target : all) {
      names.emplace_back(target.name);
      list += (list.empty() ? "" : ", ") + target.name;
    }
    return fail(HALYARD_NOT_FOUND, "no function '{}' in module '{}'{}; it exports {}", name, view(info.name),
                did_you_mean(name, names), list.empty() ? "nothing" : list);
  }
  return std::vector<Target>{*found};
}

Result<Arguments> arguments_of(const Flags& flags, const Target& target, const Device& device,
                               uint64_t batch) {
  if (target.is_dispatch && !flags.has(flag::input) && !flags.has(flag::inputs_from)) {
    Arguments arguments;
    arguments.add(static_cast<int32_t>(batch));
    return arguments;
  }
  const std::string types = TOOL_TRY(input_types(target.description));
  Arguments arguments = TOOL_TRY(given_inputs(flags, types, device));
  TOOL_TRY(check_inputs(target.description, types, arguments));
  return arguments;
}

void RunningCalls::add(halyard_call_t call) {
  const std::lock_guard lock(mutex_);
  calls_.insert(call);
}

void RunningCalls::remove(halyard_call_t call) {
  const std::lock_guard lock(mutex_);
  calls_.erase(call);
}

void RunningCalls::cancel() {
  const std::lock_guard lock(mutex_);
  for (halyard_call_t call : calls_) halyard_call_cancel(call);
}

void Stop::set_also(std::function<void()> action) {
  const std::lock_guard lock(mutex);
  also = std::move(action);
}

void Stop::now() {
  calls.cancel();
  const std::lock_guard lock(mutex);
  if (also) also();
}

Result<std::unique_ptr<Caller>> Caller::make(const Context& context, const Target& target,
                                             const Arguments& arguments, const Device& device, Stop& stop) {
  auto caller = std::unique_ptr<Caller>(new Caller(target, device, stop));
  caller->function_ = TOOL_TRY(context.find(target.name));
  caller->arguments_ = arguments.values();
  if (target.description.is_async) caller->arguments_.resize(caller->arguments_.size() + 2);
  caller->results_.resize(target.description.result_count);
  caller->fences_.resize(1);
  caller->call_ = TOOL_TRY(Call::create(context));
  stop.calls.add(caller->call_.get());
  return caller;
}

Caller::Caller(const Target& target, const Device& device, Stop& stop)
    : target_(target), device_(device), stop_(stop) {}

Caller::~Caller() {
  if (call_) stop_.calls.remove(call_.get());
}

void Caller::release_results() {
  for (Value& result : results_) result = Value();
}

Result<> Caller::make_fence() {
  fences_.front() = TOOL_TRY(Fence::create(device_));
  return {};
}

Result<> Caller::submit() {
  if (target_.description.is_async) {
    arguments_[arguments_.size() - 2] = Value();
    arguments_.back() = fences_.front();
  }
  return check(call_.invoke_with(function_, arguments_, results_));
}

Result<> Caller::wait() { return wait_for(fences_.front()); }

Result<> Caller::wait_for(const Fence& fence) {
  constexpr std::chrono::milliseconds kPieceMs(100);  // maximum delay of Ctrl-C
  constexpr double kPiece = 0.099;
  Result<> done = check(fence.wait(kPieceMs));
  while (!done && done.error().code == HALYARD_DEADLINE_EXCEEDED) {
    if (stop_.asked_for()) return fail(HALYARD_CANCELLED, "interrupted while waiting for the device");
    const Clock::time_point begin = Clock::now();
    done = check(fence.wait(kPieceMs));
    // A fence that has failed with DEADLINE_EXCEEDED fails at once.
    if (seconds_between(begin, Clock::now()) < kPiece) break;
  }
  return done;
}

Result<> Caller::call() {
  if (target_.description.is_async) TOOL_TRY(make_fence());
  TOOL_TRY(submit());
  release_results();
  if (target_.description.is_async) TOOL_TRY(wait());
  return {};
}

Result<> Caller::call_batch(uint64_t count, uint64_t in_flight) {
  if (!target_.description.is_async || (count == 1 && in_flight == 1)) return call();
  fences_.assign(std::max<uint64_t>(1, std::min(count, in_flight)), Fence());
  for (uint64_t i = 0; i < count; ++i) {
    Fence& slot = fences_[i % fences_.size()];
    arguments_[arguments_.size() - 2] = slot;
    slot = TOOL_TRY(Fence::create(device_));
    arguments_.back() = slot;
    TOOL_TRY(call_.invoke_with(function_, arguments_, results_));
    release_results();
  }
  for (const Fence& fence : fences_) TOOL_TRY(wait_for(fence));
  return {};
}

}  // namespace halyard::tools
