// Contexts, functions and calls. The shortest way to call a function is Function::call: f.call<float>(2.0f).
#ifndef HALYARD_CPP_CONTEXT_HPP_
#define HALYARD_CPP_CONTEXT_HPP_

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "halyard/cpp/channels.hpp"
#include "halyard/cpp/module.hpp"
#include "halyard/cpp/tensor.hpp"
#include "halyard/cpp/value.hpp"

namespace halyard::inline HALYARD_CPP_FORM {

struct ParameterFile {
  std::string scope;  // "" for the unnamed scope
  std::string path;   // .irpa, .gguf, .safetensors, .safetensors.index.json
};

// See halyard_context_options_t. The Context, its functions and its calls keep the callbacks alive. A
// callback that returns a Result fails the work with its error or its exception; the other callbacks must not
// throw.
struct ContextOptions {
  std::vector<Module> modules{};  // a module may import from earlier ones; the last is the main module
  std::vector<Device> devices{};
  std::vector<ParameterFile> parameters{};
  uint32_t flags = 0;                    // HALYARD_CONTEXT_*
  uint64_t max_memory = 0;               // bytes; 0: no limit
  uint64_t max_stack = 0;                // bytes; 0: 8 MiB
  std::chrono::nanoseconds max_time{0};  // of one call; 0: no limit
  uint32_t lead_device = 0;              // index in `devices`, counted from 1; 0: none
  std::string capture_path{};
  std::vector<std::pair<std::string, std::string>> loader_settings{};
  // Called for hal.buffer_view.trace; the views are borrowed.
  std::function<void(std::string_view key, std::span<const halyard_object_t> views)> trace{};
  std::string tensor_pattern{};  // wildcards for the names of functions; selects dispatches for `tensor`
  std::function<Result<void>(const halyard_traced_tensor_t& tensor)> tensor{};
  std::function<Result<void>(uint64_t done, uint64_t total)> progress{};
  std::function<void(const halyard_failed_expectation_t& failed)> expectation{};
  Channels channels{};  // the program's rank; empty: the rank that the launcher gave to the process
  std::function<void(const halyard_warning_t& warning)> warning{};  // called if results are probably wrong
};

namespace detail {

// A handle that keeps the callbacks of its context. It releases its object first, because the context may
// call them until it is destroyed.
template <typename C>
class CallingHandle : public Handle<C> {
 public:
  using Handle<C>::Handle;
  CallingHandle(adopt_t, C handle, std::shared_ptr<const void> callbacks) noexcept
      : Handle<C>(adopt, handle), callbacks_(std::move(callbacks)) {}
  CallingHandle(const CallingHandle&) noexcept = default;
  CallingHandle(CallingHandle&&) noexcept = default;
  CallingHandle& operator=(const CallingHandle&) noexcept = default;
  CallingHandle& operator=(CallingHandle&&) noexcept = default;
  ~CallingHandle() { this->reset(); }

 protected:
  const std::shared_ptr<const void>& callbacks() const noexcept { return callbacks_; }

 private:
  std::shared_ptr<const void> callbacks_;
};

}  // namespace detail

class Call;
class Function;

// Linked modules with their state. One call at a time, unless HALYARD_CONTEXT_CONCURRENT_CALLS is set.
class Context : public detail::CallingHandle<halyard_context_t> {
 public:
  using CallingHandle::CallingHandle;

  // Runs each module's `__init`.
  static Result<Context> create(const Instance& instance, ContextOptions options);

  // Finds an export of the main module, or of `module`. NOT_FOUND names similar exports.
  Result<Function> find(CString name, CString module = nullptr) const;

 private:
  struct Callbacks {
    decltype(ContextOptions::trace) trace;
    decltype(ContextOptions::tensor) tensor;
    decltype(ContextOptions::progress) progress;
    decltype(ContextOptions::expectation) expectation;
    decltype(ContextOptions::warning) warning;
  };
  friend class Call;
  friend class Function;
};

enum class CallState : uint32_t {
  done = HALYARD_CALL_DONE,
  ready = HALYARD_CALL_READY,      // resume it at any time
  waiting = HALYARD_CALL_WAITING,  // resume it after the ready callback was called, or at its deadline
};

// A reusable invocation; a warm call does not allocate. One thread at a time, except cancel().
class Call : public detail::CallingHandle<halyard_call_t> {
 public:
  using Clock = std::chrono::steady_clock;
  using CallingHandle::CallingHandle;
  Call(adopt_t, halyard_call_t handle, const Context& context) noexcept
      : CallingHandle(adopt, handle, context.callbacks()) {}

  static Result<Call> create(const Context& context) {
    halyard_call_t made = nullptr;
    return detail::finish(halyard_call_create(context.get(), &made),
                          [&] { return Call(adopt, made, context); });
  }

  // Runs a function to its end: call.invoke<float>(f, 2.0f), call.invoke<Tensor, int32_t>(f, tensor).
  // Arguments are borrowed. INVALID_ARGUMENT: wrong numbers or kinds of arguments or results.
  template <Returned... R, Argument... A>
  Result<detail::ReturnedBy_t<R...>> invoke(const Handle<halyard_function_t>& function,
                                            const A&... arguments) const {
    std::array<halyard_value_t, sizeof...(A)> given = {to_value(arguments)...};
    std::array<halyard_value_t, sizeof...(R)> results;
    if (halyard_status_t status = halyard_call_invoke(get(), function.get(), given.data(), given.size(),
                                                      results.data(), results.size())) [[unlikely]]
      return detail::fail<detail::ReturnedBy_t<R...>>(Error::adopt(status));
    return detail::take_results<R...>(results.data());
  }
  // The same, with numbers of values that are known at run time.
  Result<void> invoke_with(const Handle<halyard_function_t>& function, std::span<const Value> arguments,
                           std::span<Value> results) const {
    for (Value& result : results) result = Value();
    return detail::finish(halyard_call_invoke(get(), function.get(), detail::raw(arguments), arguments.size(),
                                              detail::raw(results), results.size()));
  }

  // Runs a call in steps: begin, resume until done, then take the results, once. A failure ends the call.
  template <Argument... A>
  Result<CallState> begin(const Handle<halyard_function_t>& function, const A&... arguments) const {
    const std::array<halyard_value_t, sizeof...(A)> given = {to_value(arguments)...};
    uint32_t state = 0;
    return detail::finish(halyard_call_begin(get(), function.get(), given.data(), given.size(), &state),
                          [&] { return static_cast<CallState>(state); });
  }
  Result<CallState> begin_with(const Handle<halyard_function_t>& function,
                               std::span<const Value> arguments) const {
    uint32_t state = 0;
    return detail::finish(
        halyard_call_begin(get(), function.get(), detail::raw(arguments), arguments.size(), &state),
        [&] { return static_cast<CallState>(state); });
  }
  Result<CallState> resume() const {
    uint32_t state = 0;
    return detail::finish(halyard_call_resume(get(), &state), [&] { return static_cast<CallState>(state); });
  }
  template <Returned... R>
  Result<detail::ReturnedBy_t<R...>> results() const {
    std::array<halyard_value_t, sizeof...(R)> results;
    if (halyard_status_t status = halyard_call_results(get(), results.data(), results.size())) [[unlikely]]
      return detail::fail<detail::ReturnedBy_t<R...>>(Error::adopt(status));
    return detail::take_results<R...>(results.data());
  }
  Result<void> results_into(std::span<Value> results) const {
    for (Value& result : results) result = Value();
    return detail::finish(halyard_call_results(get(), detail::raw(results), results.size()));
  }

  // The time at which a waiting call can be resumed without a wakeup; time_point::max(): never.
  Clock::time_point wait_deadline() const noexcept {
    const int64_t at = halyard_call_deadline(get());
    return at == INT64_MAX ? Clock::time_point::max() : Clock::time_point(std::chrono::nanoseconds(at));
  }
  // Fails the suspended call, or else the next call, with DEADLINE_EXCEEDED at that time; time_point::max():
  // no deadline. The instance's event loop measures the time.
  Result<void> set_deadline(Clock::time_point deadline) const {
    const auto at = std::chrono::duration_cast<std::chrono::nanoseconds>(deadline.time_since_epoch()).count();
    return detail::finish(
        halyard_call_set_deadline(get(), deadline == Clock::time_point::max() ? INT64_MAX : at));
  }
  // Sets the callback that is called whenever a wait ends, on the thread that ends it. It must only notify
  // the thread that resumes the call. Set it before the call begins.
  void on_ready(void (*ready)(void* user), void* user) const noexcept {
    halyard_call_on_ready(get(), ready, user);
  }
  // Fails the call with CANCELLED, and stops its work on devices. Any thread.
  void cancel() const noexcept { halyard_call_cancel(get()); }
  // Lets cancel() also cancel the next call, before it begins.
  void arm() const noexcept { halyard_call_arm(get()); }
  // Selects whether the instance's trace records the next calls; default: it does.
  void set_traced(bool traced) const noexcept { halyard_call_trace(get(), traced); }
  // The state of the call; `done` if no call is suspended. resume() fails in state `waiting`.
  CallState state() const noexcept { return static_cast<CallState>(halyard_call_state(get())); }
};

// An export in a context. Each copy has its own call, for one thread at a time.
class Function : public detail::CallingHandle<halyard_function_t> {
 public:
  Function() = default;
  Function(adopt_t, halyard_function_t handle, Context context) noexcept
      : CallingHandle(adopt, handle, context.callbacks()), context_(std::move(context)) {}
  Function(const Function& other) noexcept : CallingHandle(other), context_(other.context_) {}
  Function(Function&& other) noexcept = default;
  Function& operator=(Function other) noexcept {
    context_ = std::move(other.context_);
    call_ = std::move(other.call_);
    CallingHandle::operator=(std::move(other));
    return *this;
  }

  // Runs the function to its end: f.call<float>(2.0f), f.call<>(), f.call<Tensor, int32_t>(tensor). See
  // Call::invoke.
  template <Returned... R, Argument... A>
  Result<detail::ReturnedBy_t<R...>> call(const A&... arguments) const {
    if (!call_) [[unlikely]] {
      halyard_call_t made = nullptr;
      if (halyard_status_t status = halyard_call_create(context_.get(), &made))
        return detail::fail<detail::ReturnedBy_t<R...>>(Error::adopt(status));
      call_ = Call(adopt, made);
    }
    return call_.invoke<R...>(*this, arguments...);
  }
  const Context& context() const noexcept { return context_; }
  // The function's arguments and results.
  Result<Signature> signature() const {
    halyard_signature_t made = nullptr;
    return detail::finish(halyard_function_signature(get(), &made), [&] { return Signature(adopt, made); });
  }

 private:
  Context context_;
  mutable Call call_;  // created by the first call
};

inline Result<Context> Context::create(const Instance& instance, ContextOptions options) {
  std::vector<halyard_module_t> modules;
  for (const Module& module : options.modules) modules.push_back(module.get());
  std::vector<halyard_device_t> devices;
  for (const Device& device : options.devices) devices.push_back(device.get());
  std::vector<halyard_parameter_file_t> parameters;
  for (const ParameterFile& file : options.parameters)
    parameters.push_back({file.scope.c_str(), file.path.c_str()});
  std::vector<halyard_device_setting_t> settings;
  for (const auto& [key, value] : options.loader_settings) settings.push_back({key.c_str(), value.c_str()});
  const auto callbacks = std::make_shared<const Callbacks>(
      Callbacks{std::move(options.trace), std::move(options.tensor), std::move(options.progress),
                std::move(options.expectation), std::move(options.warning)});
  void* const user = const_cast<Callbacks*>(callbacks.get());

  auto given = detail::sized<halyard_context_options_t>();
  given.modules = modules.data();
  given.module_count = modules.size();
  given.devices = devices.data();
  given.device_count = devices.size();
  given.parameters = parameters.data();
  given.parameter_count = parameters.size();
  given.flags = options.flags;
  given.max_memory = options.max_memory;
  given.max_stack = options.max_stack;
  given.max_time_ns = options.max_time.count() > 0 ? static_cast<uint64_t>(options.max_time.count()) : 0;
  given.lead_device = options.lead_device;
  given.capture_path = options.capture_path.empty() ? nullptr : options.capture_path.c_str();
  given.loader_settings = settings.data();
  given.loader_setting_count = settings.size();
  given.channels = options.channels.get();
  given.trace_user = given.tensor_user = given.progress_user = given.expectation_user = given.warning_user =
      user;
  if (callbacks->trace)
    given.trace = [](void* of, halyard_text_t key, const halyard_object_t* views, size_t count) noexcept {
      static_cast<const Callbacks*>(of)->trace(view(key), std::span(views, count));
    };
  if (callbacks->tensor && !options.tensor_pattern.empty()) {
    given.tensor_pattern = options.tensor_pattern.c_str();
    given.tensor = [](void* of, const halyard_traced_tensor_t* tensor) noexcept {
      return detail::status_of([&] { return static_cast<const Callbacks*>(of)->tensor(*tensor); });
    };
  }
  if (callbacks->progress)
    given.progress = [](void* of, uint64_t done, uint64_t total) noexcept {
      return detail::status_of([&] { return static_cast<const Callbacks*>(of)->progress(done, total); });
    };
  if (callbacks->expectation)
    given.expectation = [](void* of, const halyard_failed_expectation_t* failed) noexcept {
      static_cast<const Callbacks*>(of)->expectation(*failed);
    };
  if (callbacks->warning)
    given.warning = [](void* of, const halyard_warning_t* warning) noexcept {
      static_cast<const Callbacks*>(of)->warning(*warning);
    };
  halyard_context_t made = nullptr;
  return detail::finish(halyard_context_create(instance.get(), &given, &made),
                        [&] { return Context(adopt, made, callbacks); });
}

inline Result<Function> Context::find(CString name, CString module) const {
  halyard_function_t made = nullptr;
  return detail::finish(halyard_context_find(get(), module.get(), name.get(), &made),
                        [&] { return Function(adopt, made, *this); });
}

}  // namespace halyard::inline HALYARD_CPP_FORM

#endif  // HALYARD_CPP_CONTEXT_HPP_
