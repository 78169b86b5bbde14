// Contexts and calls in the C ABI.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <system_error>

#include "handles.h"
#include "made_here.h"
#include "modules/check_module.h"
#include "modules/hal_inline_module.h"
#include "modules/hal_loader_module.h"
#include "modules/hal_module.h"
#include "modules/parameters.h"
#include "scalars.h"
#include "step_trace.h"

namespace halyard::c {

const ObjectType Function::kType = object_type<Function>("halyard.function");
const ObjectType Call::kType = object_type<Call>("halyard.call");

namespace {

using Modules = std::vector<vm::Module*>;  // borrowed from the caller's array

bool needs(const Modules& given, std::string_view builtin) {
  return std::ranges::any_of(given, [&](const vm::Module* module) { return uses_module(*module, builtin); });
}

Result<Modules> modules_of(const halyard_context_options_t& options) {
  HALYARD_TRY(check_array(options.modules, options.module_count, "modules", "modules"));
  if (options.module_count == 0)
    return fail(Code::INVALID_ARGUMENT, "expected at least one module for a context, found none");
  Modules given;
  for (size_t i = 0; i < options.module_count; ++i)
    given.push_back(HALYARD_TRY(with_note(module_of(options.modules[i]), fmt::format("modules[{}]", i))));
  return given;
}

// Like uses_module(), but ignores optional uses.
bool needs_module(const vm::Module& module, std::string_view name) {
  const std::string prefix = std::string(name) + ".";
  return std::ranges::any_of(
             module.dependencies(),
             [&](const vm::Dependency& each) { return each.name == name && !each.optional; }) ||
         std::ranges::any_of(module.imports(), [&](const vm::Import& each) {
           return each.name.starts_with(prefix) && !each.optional;
         });
}

modules::TargetFeatures target_features(const Modules& given) {
  modules::TargetFeatures targets;
  for (const vm::Module* module : given) targets.add(*module);
  return targets;
}

// If a program has code only for other processors, it fails with a message of its compiler. Adds the reasons
// of the devices to this message.
Status explain_formats(const Modules& given, const halyard_context_options_t& options, Status failure) {
  for (const std::string& format : target_features(given).formats())
    for (size_t i = 0; i < options.device_count; ++i) {
      const auto* const device = from_handle<hal::Device>(options.devices[i]);
      const hal::Device::Grade grade = device->grade_executable(format, nullptr, 0);
      if (grade.grade == HALYARD_GRADE_RECOMPILE)
        failure = std::move(failure).note(fmt::format("device '{}': {}", device->uri(), grade.reason));
    }
  return failure;
}

// Explains to the embedder why the module at `index` could not be added.
Status explain_failure(const Modules& given, size_t index, const halyard_context_options_t& options,
                       Status failure) {
  const vm::Module& module = *given[index];
  const auto is_there = [&](std::string_view name) {
    return std::ranges::find(given.begin(), given.begin() + static_cast<ptrdiff_t>(index), name,
                             &vm::Module::name) != given.begin() + static_cast<ptrdiff_t>(index);
  };
  if (failure.code() == Code::NOT_FOUND)
    for (size_t later = index + 1; later < given.size(); ++later)
      if (needs_module(module, given[later]->name()) && !is_there(given[later]->name()))
        return Status(
            Code::INVALID_ARGUMENT,
            fmt::format("module '{}' (modules[{}]) imports from module '{}' (modules[{}]), which comes "
                        "later; put it first",
                        module.name(), index, given[later]->name(), later));
  if (options.device_count == 0 && uses_module(module, "hal"))
    return std::move(failure).note(
        "the module uses `hal`, but the context has no devices: open one, such as local-sync, and add it to "
        "`devices`");
  return failure.code() == Code::INCOMPATIBLE ? explain_formats(given, options, std::move(failure))
                                              : std::move(failure);
}

// Checks options that do not depend on other objects.
Result<> check_options(const halyard_context_options_t& options) {
  HALYARD_TRY(check_flags(options.flags,
                          HALYARD_CONTEXT_PRELOAD_PARAMETERS | HALYARD_CONTEXT_CONCURRENT_CALLS |
                              HALYARD_CONTEXT_SEPARATE_CALLS | HALYARD_CONTEXT_TRACE_STEPS,
                          "HALYARD_CONTEXT_*"));
  HALYARD_TRY(check_reserved(options.reserved, "halyard_context_options_t"));
  HALYARD_TRY(check_array(options.devices, options.device_count, "devices", "devices"));
  HALYARD_TRY(check_array(options.parameters, options.parameter_count, "files", "parameters"));
  HALYARD_TRY(
      check_array(options.loader_settings, options.loader_setting_count, "settings", "loader_settings"));
  for (size_t i = 0; i < options.loader_setting_count; ++i) {
    HALYARD_TRY(check_text(options.loader_settings[i].key, "loader_settings", i, ".key"));
    HALYARD_TRY(check_text(options.loader_settings[i].value, "loader_settings", i, ".value"));
  }
  for (size_t i = 0; i < options.device_count; ++i)
    HALYARD_TRY(with_note(checked<hal::Device>(options.devices[i]), fmt::format("devices[{}]", i)));
  return {};
}

modules::TraceSink trace_sink(const halyard_context_options_t& options) {
  if (!options.trace) return {};
  return [trace = options.trace, user = options.trace_user](std::string_view key,
                                                            std::span<hal::BufferView* const> views) {
    std::vector<halyard_object_t> handles;
    for (hal::BufferView* traced : views) handles.push_back(to_handle<halyard_object_t>(traced));
    trace(user, to_text(key), handles.data(), handles.size());
  };
}

Result<modules::HalOptions> hal_options(const halyard_context_options_t& options) {
  modules::HalOptions hal;
  if (options.lead_device > options.device_count)
    return fail(Code::INVALID_ARGUMENT,
                "lead_device is {}, but there are {} devices; expected a smaller number, or 0",
                options.lead_device, options.device_count);
  if (options.lead_device != 0) hal.lead_allocator = options.lead_device - 1;
  for (size_t i = 0; i < options.device_count; ++i)
    hal.devices.push_back(Ref<hal::Device>::share(from_handle<hal::Device>(options.devices[i])));
  hal.trace = trace_sink(options);
  if (options.channels)
    hal.channels =
        Ref<hal::ChannelProvider>::share(HALYARD_TRY(checked<hal::ChannelProvider>(options.channels)));
  return hal;
}

modules::HalLoaderOptions loader_options(const halyard_context_options_t& options, const Instance* instance) {
  modules::HalLoaderOptions loader;
  for (size_t i = 0; i < options.device_count && !loader.device; ++i) {
    auto* const device = from_handle<hal::Device>(options.devices[i]);
    if (modules::runs_loader_kernels(*device)) loader.device = Ref<hal::Device>::share(device);
  }
  if (instance) loader.drivers = instance->drivers;
  for (size_t i = 0; i < options.loader_setting_count; ++i)
    loader.settings.emplace_back(options.loader_settings[i].key, options.loader_settings[i].value);
  return loader;
}

Result<Ref<hal::TensorTrace>> requested_trace(const halyard_context_options_t& options) {
  if (!options.tensor_pattern || !options.tensor) return Ref<hal::TensorTrace>();
  if (options.capture_path)
    return fail(Code::INVALID_ARGUMENT,
                "a context cannot both write a capture and trace tensors; choose one of them");
  return tensor_trace(
      options.tensor_pattern, options.tensor, options.tensor_user,
      options.flags & HALYARD_CONTEXT_TRACE_STEPS ? hal::TracedSteps::all : hal::TracedSteps::dispatches);
}

// A random number, which differs from those of other contexts without a table of the users of devices. 0
// means no owner: no memory may keep data for the next call.
uint64_t owner_for(const halyard_context_options_t& options) {
  if (options.flags & HALYARD_CONTEXT_SEPARATE_CALLS) return 0;
  uint64_t number = 0;
  // std::random_device would first ask the processor for its features.
  if (::getentropy(&number, sizeof number) != 0) throw std::system_error(errno, std::generic_category());
  return number;
}

vm::Limits limits_of(const halyard_context_options_t& options, const Instance* instance) {
  vm::Limits limits;
  const std::shared_ptr<LiveObjects> objects = instance ? instance->objects : nullptr;
  if (options.max_memory || objects)
    limits.memory = make<Budget>(options.max_memory ? options.max_memory : Budget::kNoLimit, objects);
  if (options.max_stack) limits.stack_bytes = options.max_stack;
  constexpr uint64_t kMaxTime = uint64_t{1} << 62;  // more than a century, without overflow of a clock
  limits.time = std::chrono::nanoseconds(std::min(options.max_time_ns, kMaxTime));
  limits.concurrent_calls = (options.flags & HALYARD_CONTEXT_CONCURRENT_CALLS) != 0;
  return limits;
}

modules::ExpectationSink expectation_sink(const halyard_context_options_t& options) {
  if (!options.expectation) return {};
  return [tell = options.expectation,
          user = options.expectation_user](const modules::FailedExpectation& failed) {
    const halyard_failed_expectation_t given = {.struct_size = sizeof given,
                                                .reserved = 0,
                                                .function = to_text(failed.function),
                                                .message = to_text(failed.message),
                                                .place = to_text(failed.place)};
    tell(user, &given);
  };
}

modules::ParameterWarning parameter_warning(const halyard_context_options_t& options) {
  if (!options.warning) return {};
  return [tell = options.warning, user = options.warning_user](std::string_view text, std::string_view path) {
    const halyard_warning_t given = {sizeof given, 0, to_text(text), to_text(path)};
    tell(user, &given);
  };
}

Result<modules::ParameterScopes> parameter_scopes(const halyard_context_options_t& options) {
  std::vector<modules::ParameterFile> files;
  for (size_t i = 0; i < options.parameter_count; ++i)
    files.push_back(
        {std::string(view(options.parameters[i].scope)), std::string(view(options.parameters[i].path))});
  modules::ParameterProgress progress;
  if (options.progress)
    progress = [tell = options.progress, user = options.progress_user](uint64_t done, uint64_t total) {
      return to_result(Status::adopt(tell(user, done, total)));
    };
  return modules::load_parameters(files,
                                  options.flags & HALYARD_CONTEXT_PRELOAD_PARAMETERS
                                      ? modules::ParameterMode::preload
                                      : modules::ParameterMode::file,
                                  progress);
}

}  // namespace
}  // namespace halyard::c

using namespace halyard;
using namespace halyard::c;

halyard_status_t halyard_context_create(halyard_instance_t instance, const halyard_context_options_t* options,
                                        halyard_context_t* out) {
  return guarded([&]() -> Result<> {
    HALYARD_TRY(check_output(out, "out"));
    const halyard_context_options_t known = HALYARD_TRY(known_fields(options));
    HALYARD_TRY(check_options(known));
    const Modules given = HALYARD_TRY(modules_of(known));
    modules::ParameterScopes parameters = HALYARD_TRY(parameter_scopes(known));
    const Instance* const owner = instance ? HALYARD_TRY(checked<Instance>(instance)) : nullptr;
    const vm::Limits limits = limits_of(known, owner);
    Ref<hal::Capture> capture;
    if (known.capture_path) capture = HALYARD_TRY(hal::Capture::create(known.capture_path));
    auto context =
        vm::Context::create(limits, owner ? owner->tracer : Ref<Tracer>(), owner ? owner->loop : Ref<Loop>());
    Ref<hal::TensorTrace> tensors = HALYARD_TRY(requested_trace(known));
    const uint64_t memory_owner = owner_for(known);
    if (needs(given, "hal")) {
      modules::HalOptions hal = HALYARD_TRY(hal_options(known));
      hal.memory = limits.memory;
      hal.owner = memory_owner;
      hal.capture = std::move(capture);
      hal.tensors = tensors;
      hal.targets = target_features(given);
      HALYARD_TRY(context->add(modules::create_hal_module(std::move(hal))));
    }
    if (needs(given, "io_parameters"))
      HALYARD_TRY(context->add(modules::create_io_parameters_module(std::move(parameters), limits.memory,
                                                                    owner ? owner->loop : Ref<Loop>(),
                                                                    parameter_warning(known))));
    if (needs(given, "hal_inline"))
      HALYARD_TRY(
          context->add(modules::create_hal_inline_module({trace_sink(known), limits.memory, memory_owner})));
    if (needs(given, "hal_loader")) {
      modules::HalLoaderOptions loader = loader_options(known, owner);
      loader.targets = target_features(given);
      loader.memory = limits.memory;
      loader.tensors = std::move(tensors);
      HALYARD_TRY(context->add(modules::create_hal_loader_module(std::move(loader))));
    }
    if (needs(given, "check"))
      HALYARD_TRY(context->add(
          modules::create_check_module({.failed = expectation_sink(known), .memory = limits.memory})));
    for (size_t i = 0; i < given.size(); ++i)
      if (Result<> added = context->add(Ref<vm::Module>::share(given[i])); !added)
        return std::unexpected(explain_failure(given, i, known, std::move(added).error()));
    note_made(context.get());
    *out = give<halyard_context_t>(std::move(context));
    return {};
  });
}

halyard_status_t halyard_context_find(halyard_context_t handle, const char* module, const char* name,
                                      halyard_function_t* out) {
  return guarded([&]() -> Result<> {
    HALYARD_TRY(check_output(out, "out"));
    auto* context = HALYARD_TRY(checked<vm::Context>(handle));
    const std::string_view main = context->modules().back()->module->name();
    vm::Callable callable = HALYARD_TRY(
        context->find(module ? std::string_view(module) : main, HALYARD_TRY(given_text(name, "name"))));
    auto function = make<Function>();
    function->context = Ref<vm::Context>::share(context);
    function->callable = std::move(callable);
    note_made(function.get());
    *out = give<halyard_function_t>(std::move(function));
    return {};
  });
}

halyard_status_t halyard_call_create(halyard_context_t context, halyard_call_t* out) {
  return guarded([&]() -> Result<> {
    HALYARD_TRY(check_output(out, "out"));
    auto call = make<Call>(Ref<vm::Context>::share(HALYARD_TRY(checked<vm::Context>(context))));
    note_made(call.get());
    *out = give<halyard_call_t>(std::move(call));
    return {};
  });
}

namespace {

// Reserves a call's vectors for one halyard_call_invoke, because callbacks that run during the call may pass
// the same handle again.
class Invoking {
 public:
  // FAILED_PRECONDITION: they are reserved.
  static Result<> check(const Call& call) {
    if (!call.is_invoked) [[likely]]
      return {};
    return fail(Code::FAILED_PRECONDITION,
                "the handle is in a call that has not ended, so it cannot begin another one; create a handle "
                "for each call that runs within a call");
  }
  explicit Invoking(Call& call) : call_(call) { call.is_invoked = true; }
  Invoking(const Invoking&) = delete;
  Invoking& operator=(const Invoking&) = delete;
  ~Invoking() { call_.is_invoked = false; }

 private:
  Call& call_;
};

Result<> take_arguments(Call& call, const Function& function, const halyard_value_t* arguments,
                        size_t count) {
  if (function.context.get() != &call.invocation.context())
    return fail(Code::INVALID_ARGUMENT, "function '{}' belongs to another context than the call",
                function.callable.function->name);
  HALYARD_TRY(check_array(arguments, count, "values", "arguments"));
  HALYARD_TRY(vm::check_argument_count(function.callable, count));
  call.arguments.clear();
  const std::vector<vm::ValueType>& wanted = function.callable.arguments;
  for (size_t i = 0; i < count; ++i) {
    vm::Variant argument = to_variant(arguments[i]);
    const bool is_plain = arguments[i].kind <= HALYARD_VALUE_OBJECT && arguments[i].reserved == 0;
    if (i < wanted.size() && (argument.type() != wanted[i] || !is_plain)) [[unlikely]]
      argument = HALYARD_TRY(convert_argument(function, i, arguments[i], wanted[i]));
    call.arguments.push_back(std::move(argument));
  }
  return {};
}

void give_results(Call& call, halyard_value_t* results) {
  for (size_t i = 0; i < call.results.size(); ++i) results[i] = to_value(std::exchange(call.results[i], {}));
}

uint32_t state_of(vm::Outcome outcome) {
  switch (outcome) {
    case vm::Outcome::done:
      return HALYARD_CALL_DONE;
    case vm::Outcome::yielded:
      return HALYARD_CALL_READY;
    default:
      return HALYARD_CALL_WAITING;
  }
}

// FAILED_PRECONDITION: the call has no results yet, or they have been taken.
Result<> check_done(const vm::Invocation& call) {
  if (call.is_suspended())
    return fail(Code::FAILED_PRECONDITION,
                "the call is not done, so it has no results yet; resume it until HALYARD_CALL_DONE");
  switch (call.results()) {
    case vm::Invocation::Results::ready:
      return {};
    case vm::Invocation::Results::taken:
      return fail(Code::FAILED_PRECONDITION,
                  "the results of the call were already taken; they can be taken once");
    default:
      return fail(Code::FAILED_PRECONDITION,
                  "there are no results to take: no call was begun with this handle, or it failed");
  }
}

}  // namespace

halyard_status_t halyard_call_invoke(halyard_call_t handle, halyard_function_t function,
                                     const halyard_value_t* arguments, size_t argument_count,
                                     halyard_value_t* results, size_t result_count) {
  return guarded([&]() -> Result<> {
    Call* call = HALYARD_TRY(checked<Call>(handle));
    const Function* callee = HALYARD_TRY(checked<Function>(function));
    HALYARD_TRY(Invoking::check(*call));
    const Invoking invoking(*call);
    HALYARD_TRY(take_arguments(*call, *callee, arguments, argument_count));
    HALYARD_TRY(check_array(results, result_count, "values", "results"));
    HALYARD_TRY(vm::check_result_count(callee->callable, result_count));
    call->results.resize(result_count);
    auto done = call->invocation.call_moving(callee->callable, call->arguments, call->results);
    call->arguments.clear();
    if (!done) return done;
    give_results(*call, results);
    return {};
  });
}

halyard_status_t halyard_call_begin(halyard_call_t handle, halyard_function_t function,
                                    const halyard_value_t* arguments, size_t argument_count,
                                    uint32_t* state) {
  return guarded([&]() -> Result<> {
    HALYARD_TRY(check_output(state, "state"));
    Call* call = HALYARD_TRY(checked<Call>(handle));
    const Function* callee = HALYARD_TRY(checked<Function>(function));
    HALYARD_TRY(Invoking::check(*call));
    HALYARD_TRY(take_arguments(*call, *callee, arguments, argument_count));
    // Local, because callbacks may pass the handle to halyard_call_invoke.
    std::vector<vm::Variant> taken = std::exchange(call->arguments, {});
    const auto outcome = call->invocation.begin(callee->callable, taken);
    taken.clear();
    call->arguments = std::move(taken);
    *state = state_of(HALYARD_TRY(outcome));
    return {};
  });
}

halyard_status_t halyard_call_resume(halyard_call_t handle, uint32_t* state) {
  return guarded([&]() -> Result<> {
    HALYARD_TRY(check_output(state, "state"));
    Call* call = HALYARD_TRY(checked<Call>(handle));
    *state = state_of(HALYARD_TRY(call->invocation.resume()));
    return {};
  });
}

halyard_status_t halyard_call_results(halyard_call_t handle, halyard_value_t* results, size_t result_count) {
  return guarded([&]() -> Result<> {
    Call* call = HALYARD_TRY(checked<Call>(handle));
    HALYARD_TRY(check_array(results, result_count, "values", "results"));
    HALYARD_TRY(check_done(call->invocation));
    const size_t there = call->invocation.result_count();
    if (there != result_count)
      return fail(Code::INVALID_ARGUMENT, "the call has {} results, but there is room for {}", there,
                  result_count);
    call->results.resize(result_count);
    call->invocation.take_results(call->results);
    give_results(*call, results);
    return {};
  });
}

uint32_t halyard_call_state(halyard_call_t handle) {
  const Result<Call*> call = checked<Call>(handle);
  if (!call || !(*call)->invocation.is_suspended()) return HALYARD_CALL_DONE;
  return (*call)->invocation.still_waits() ? HALYARD_CALL_WAITING : HALYARD_CALL_READY;
}

int64_t halyard_call_deadline(halyard_call_t handle) {
  const Result<Call*> call = checked<Call>(handle);
  if (!call) return INT64_MAX;
  const vm::Deadline& deadline = (*call)->invocation.wait_deadline();
  if (!deadline) return INT64_MAX;
  return std::chrono::duration_cast<std::chrono::nanoseconds>(deadline->time_since_epoch()).count();
}

void halyard_call_on_ready(halyard_call_t handle, void (*ready)(void* user), void* user) {
  if (const Result<Call*> call = checked<Call>(handle)) (*call)->invocation.set_ready_hook({ready, user});
}

void halyard_call_cancel(halyard_call_t handle) {
  if (const Result<Call*> call = checked<Call>(handle)) (*call)->invocation.interrupt(Code::CANCELLED);
}

void halyard_call_arm(halyard_call_t handle) {
  if (const Result<Call*> call = checked<Call>(handle)) (*call)->invocation.arm();
}

void halyard_call_trace(halyard_call_t handle, int32_t is_traced) {
  if (const Result<Call*> call = checked<Call>(handle)) (*call)->invocation.set_traced(is_traced != 0);
}

halyard_status_t halyard_call_set_deadline(halyard_call_t handle, int64_t deadline_ns) {
  return guarded([&]() -> Result<> {
    vm::Deadline deadline;
    if (deadline_ns != INT64_MAX) deadline = vm::Clock::time_point(std::chrono::nanoseconds(deadline_ns));
    return HALYARD_TRY(checked<Call>(handle))->invocation.set_deadline(deadline);
  });
}
