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

Result<Target> target_of(halyard_module_t module, uint32_t index) {
  Target target;
  target.description.struct_size = sizeof target.description;
  TOOL_TRY(check(halyard_module_function(module, index, &target.description)));
  target.name = view(target.description.name);
  halyard_text_t kind = {};
  TOOL_TRY(check(halyard_module_function_attribute(module, index, "iree.benchmark", &kind)));
  target.is_dispatch = view(kind) == "dispatch" && view(target.description.convention).starts_with("0i_");
  return target;
}

halyard_value_t of_object(halyard_object_t object) {
  halyard_value_t value = {};
  value.kind = object ? HALYARD_VALUE_OBJECT : 0;
  value.object = object;
  return value;
}

}  // namespace

Result<std::vector<Target>> chosen_targets(const Flags& flags, halyard_module_t module) {
  const halyard_module_info_t info = TOOL_TRY(info_of(module));
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

Result<Arguments> arguments_of(const Flags& flags, const Target& target, halyard_device_t device,
                               uint64_t batch) {
  if (target.is_dispatch && !flags.has(flag::input)) {
    Arguments arguments;
    halyard_value_t count = {};
    count.kind = HALYARD_VALUE_I32;
    count.i32 = static_cast<int32_t>(batch);
    arguments.add(count);
    return arguments;
  }
  const std::string types = TOOL_TRY(input_types(target.description));
  Arguments arguments = TOOL_TRY(parse_inputs(flags[flag::input], types, device, flag::input));
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

Result<std::unique_ptr<Caller>> Caller::make(halyard_context_t context, const Target& target,
                                             const Arguments& arguments, halyard_device_t device,
                                             Stop& stop) {
  auto caller = std::unique_ptr<Caller>(new Caller(target, device, stop));
  TOOL_TRY(check(halyard_context_find(context, nullptr, target.name.c_str(), caller->function_.out())));
  caller->arguments_ = arguments.values();
  if (target.description.is_async) caller->arguments_.resize(caller->arguments_.size() + 2);
  caller->results_.resize(target.description.result_count);
  caller->fences_.resize(1);
  TOOL_TRY(check(halyard_call_create(context, caller->call_.out())));
  stop.calls.add(caller->call_.get());
  return caller;
}

Caller::Caller(const Target& target, halyard_device_t device, Stop& stop)
    : target_(target), device_(device), stop_(stop) {}

Caller::~Caller() {
  if (call_) stop_.calls.remove(call_.get());
  release_results();
}

void Caller::release_results() {
  for (halyard_value_t& result : results_) {
    if (result.kind == HALYARD_VALUE_OBJECT) halyard_release(result.object);
    result = {};
  }
}

Result<> Caller::make_fence() {
  fences_.front() = {};
  return check(halyard_fence_create(device_, fences_.front().out()));
}

Result<> Caller::submit() {
  if (target_.description.is_async) {
    arguments_[arguments_.size() - 2] = {};
    arguments_.back() = of_object(fences_.front().get());
  }
  return check(halyard_call_invoke(call_.get(), function_.get(), arguments_.data(), arguments_.size(),
                                   results_.data(), results_.size()));
}

Result<> Caller::wait() { return wait_for(fences_.front().get()); }

Result<> Caller::wait_for(halyard_object_t fence) {
  constexpr uint32_t kPieceMs = 100;  // maximum delay of Ctrl-C
  constexpr double kPiece = 0.099;
  Result<> done = check(halyard_fence_wait(fence, kPieceMs));
  while (!done && done.error().code == HALYARD_DEADLINE_EXCEEDED) {
    if (stop_.asked_for()) return fail(HALYARD_CANCELLED, "interrupted while waiting for the device");
    const Clock::time_point begin = Clock::now();
    done = check(halyard_fence_wait(fence, kPieceMs));
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
  std::vector<Handle<halyard_object_t>>& fences = fences_;
  for (auto& fence : fences) fence = {};
  fences.resize(std::max<uint64_t>(1, std::min(count, in_flight)));
  for (uint64_t i = 0; i < count; ++i) {
    Handle<halyard_object_t>& slot = fences[i % fences.size()];
    const Handle<halyard_object_t> earlier = std::exchange(slot, {});
    TOOL_TRY(check(halyard_fence_create(device_, slot.out())));
    arguments_[arguments_.size() - 2] = of_object(earlier.get());
    arguments_.back() = of_object(slot.get());
    TOOL_TRY(check(halyard_call_invoke(call_.get(), function_.get(), arguments_.data(), arguments_.size(),
                                       results_.data(), results_.size())));
    release_results();
  }
  for (const auto& fence : fences) TOOL_TRY(wait_for(fence.get()));
  return {};
}

}  // namespace halyard::tools
