// Calls and fences on Asio's event loops: header only, for Boost.Asio from 1.74 on, and for standalone Asio
// where HALYARD_STANDALONE_ASIO is defined. Starts no thread.
//
//   boost::asio::io_context io;
//   auto instance = halyard::Instance::create(halyard::on_context(io));
//   ...
//   auto call = halyard::AsyncCall::create(io.get_executor(), context);
//   float y = co_await halyard::async_call<float>(call, f, halyard::arguments(2.0f),
//   boost::asio::use_awaitable); co_await halyard::async_wait(fence, boost::asio::use_awaitable);
//
// COMPLETION. Any token. Handlers take (std::exception_ptr, R...): null, or a halyard::Error; without
// exceptions, one expected<...>. They run on their associated executor, else on that of the AsyncCall, never
// in the function that starts the operation (but see AsyncCall::begin_here).
//
// WHERE CALLS RUN. On the executor of the AsyncCall: functions of the program and kernels of local-sync too.
// A call that waits holds no thread. A context takes one call at a time: several on several threads need a
// context each, a strand, or HALYARD_CONTEXT_CONCURRENT_CALLS.
//
// CANCELLATION, where Asio has slots (Boost 1.77, Asio 1.20): of every type, it cancels the call, which
// completes with CANCELLED; AsyncCall::cancel does so everywhere. expires_after is a timer on the same
// executor: the call completes with DEADLINE_EXCEEDED.
//
// MEMORY. A warm call allocates nothing but what its handler does, where the executor is that of an
// io_context or a thread_pool, by its own type or as any_io_executor.
#ifndef HALYARD_ASIO_HPP_
#define HALYARD_ASIO_HPP_

#include "halyard/cpp/asio_call.hpp"
#include "halyard/cpp/asio_fence.hpp"
#include "halyard/halyard.hpp"

namespace halyard::inline HALYARD_CPP_FORM::inline HALYARD_CPP_ASIO_FORM {

#if !defined(HALYARD_STANDALONE_ASIO)
// Options for an instance whose time limits run on this context: it starts no thread of its own then. The
// context must outlive what is made with the instance. Creating the instance fails (FAILED_PRECONDITION)
// where libhalyard was built with another Asio; such programs let it have its thread, which starts when a
// limit or deadline of Halyard's is first used, or run it by halyard_instance_run.
inline InstanceOptions on_context(net::io_context& context, InstanceOptions options = {}) {
  options.asio_context = &context;
  options.asio_version = BOOST_ASIO_VERSION;
  return options;
}
#endif

// Arguments of a call, which owns them until it begins.
template <Argument... A>
std::array<Value, sizeof...(A)> arguments(const A&... values) noexcept {
  return {Value(values)...};
}

// A call handle on an executor: one call at a time, again and again. Distinct objects may be used by distinct
// threads; cancel() by any. Destroying one cancels its call, whose handler is called nevertheless.
template <typename Executor = net::any_io_executor>
class BasicAsyncCall {
 public:
  using executor_type = Executor;
  using Clock = Call::Clock;

  static Result<BasicAsyncCall> create(const Executor& executor, const Context& context) {
    halyard_call_t made = nullptr;
    return detail::finish(halyard_call_create(context.get(), &made), [&] {
      return BasicAsyncCall(
          std::make_shared<asio_detail::CallCore<Executor>>(executor, Call(adopt, made, context)));
    });
  }
  BasicAsyncCall(BasicAsyncCall&&) noexcept = default;
  BasicAsyncCall& operator=(BasicAsyncCall&& other) noexcept {
    std::swap(core_, other.core_);
    return *this;
  }
  ~BasicAsyncCall() {
    if (core_) core_->cancel(0, false);
  }

  executor_type get_executor() const noexcept { return core_->executor(); }
  // Any thread: the call that is queued or under way completes with CANCELLED.
  void cancel() const noexcept { core_->cancel(0, false); }
  // The next call completes with DEADLINE_EXCEEDED if it is not done by then. Counts from now, not from its
  // begin.
  void expires_at(Clock::time_point time) const noexcept { core_->set_expiry(time); }
  void expires_after(Clock::duration duration) const noexcept { core_->set_expiry(Clock::now() + duration); }

  // Whether calls begin in the function that starts them, as if by asio::dispatch, instead of being posted:
  // for calls that are shorter than waking another thread. Start them on a thread of the executor. A call
  // that does not wait then completes there, too: its handler may be called before that function returns.
  void begin_here(bool here) const noexcept { core_->set_begins_here(here); }

  const std::shared_ptr<asio_detail::CallCore<Executor>>& core() const noexcept {
    return core_;
  }  // for async_call

 private:
  explicit BasicAsyncCall(std::shared_ptr<asio_detail::CallCore<Executor>> core) : core_(std::move(core)) {}
  std::shared_ptr<asio_detail::CallCore<Executor>> core_;
};
using AsyncCall = BasicAsyncCall<>;

// Calls `function` with `values`, which is arguments(...) or a std::vector<Value>; results as those of
// Call::invoke: async_call<float>(...), async_call<Tensor, int32_t>(...), async_call<>(...).
// FAILED_PRECONDITION: the AsyncCall has a call under way.
template <Returned... R, typename Executor, typename Arguments, typename Token>
  requires std::convertible_to<const Arguments&, std::span<const Value>>
auto async_call(const BasicAsyncCall<Executor>& call, const Handle<halyard_function_t>& function,
                Arguments values, Token&& token) {
  using Results = asio_detail::TypedResults<R...>;
  return net::async_initiate<Token, typename Results::Signature>(
      asio_detail::InitiateCall<Executor, Arguments, Results>{call.core()}, token, function,
      std::move(values), Results());
}

// The same with a number of results that is known at run time. They must live until the handler is called,
// and are valid if it gets no error.
template <typename Executor, typename Arguments, typename Token>
  requires std::convertible_to<const Arguments&, std::span<const Value>>
auto async_call_into(const BasicAsyncCall<Executor>& call, const Handle<halyard_function_t>& function,
                     Arguments values, std::span<Value> results, Token&& token) {
  return net::async_initiate<Token, asio_detail::ResultsInto::Signature>(
      asio_detail::InitiateCall<Executor, Arguments, asio_detail::ResultsInto>{call.core()}, token, function,
      std::move(values), asio_detail::ResultsInto{results});
}

// Waits for a fence; its failure is the error. An empty fence is reached. Cancelling the wait does not touch
// the fence. The handler runs on its associated executor; without one, on `executor`, else on Asio's system
// executor.
template <typename Executor, typename Token>
auto async_wait(const Executor& executor, const Fence& fence, Token&& token) {
  return net::async_initiate<Token, asio_detail::CompletionSignature<>>(
      asio_detail::InitiateFenceWait<Executor>{executor}, token, fence);
}
template <typename Token>
auto async_wait(const Fence& fence, Token&& token) {
  return async_wait(net::system_executor(), fence, std::forward<Token>(token));
}

}  // namespace halyard::inline HALYARD_CPP_FORM::inline HALYARD_CPP_ASIO_FORM

#endif  // HALYARD_ASIO_HPP_
