// Calls and fences on Asio's event loops. Header only, for Boost.Asio 1.74 or later, or for standalone Asio
// if HALYARD_STANDALONE_ASIO is defined. Starts no thread.
//
//   boost::asio::io_context io;
//   auto instance = halyard::Instance::create(halyard::on_context(io));
//   ...
//   auto call = halyard::AsyncCall::create(io.get_executor(), context);
//   float y = co_await halyard::async_call<float>(call, f, halyard::arguments(2.0f),
//                                                 boost::asio::use_awaitable);
//   co_await halyard::async_wait(fence, boost::asio::use_awaitable);
//
// COMPLETION. Any completion token. Handlers take (std::exception_ptr, R...), where the pointer is null or a
// halyard::Error; without exceptions, they take one expected<...>. A handler runs on its associated executor,
// or else on the executor of the AsyncCall, and never within the function that starts the operation (except
// with AsyncCall::begin_here).
//
// WHERE CALLS RUN. Functions of the program, and kernels of local-sync, run on the executor of the AsyncCall.
// A waiting call holds no thread. A context takes one call at a time, so concurrent calls need separate
// contexts, a strand, or HALYARD_CONTEXT_CONCURRENT_CALLS.
//
// CANCELLATION. If Asio has cancellation slots (Boost 1.77, Asio 1.20), cancellation of any type cancels the
// call, which completes with CANCELLED; AsyncCall::cancel works with every version. expires_after sets a
// timer on the same executor; when it expires the call completes with DEADLINE_EXCEEDED.
//
// MEMORY. A warm call allocates nothing, except for its handler, if the executor is that of an io_context or
// a thread_pool, as its own type or as any_io_executor.
#ifndef HALYARD_ASIO_HPP_
#define HALYARD_ASIO_HPP_

#if __cplusplus < 202002L
#error "halyard/asio.hpp needs C++20; compile with -std=c++20"
#else

#include <concepts>

#include "halyard/cpp/asio_call.hpp"
#include "halyard/cpp/asio_fence.hpp"
#include "halyard/halyard.hpp"

namespace halyard::inline HALYARD_CPP_FORM::inline HALYARD_CPP_ASIO_FORM {

#if !defined(HALYARD_STANDALONE_ASIO)
// Options for an instance that runs its time limits on this io_context and starts no thread. The io_context
// must outlive the instance and all objects made with it. Needs the Boost with which libhalyard was built,
// because the library uses the io_context itself: with a Boost before 1.81 this function does not compile,
// and Instance::create fails (FAILED_PRECONDITION) with another version. Without this function, the instance
// starts its thread when a time limit or deadline is first used; or call halyard_instance_run.
template <std::derived_from<net::io_context> Context>
InstanceOptions on_context(Context& context, InstanceOptions options = {}) {
  static_assert(sizeof(Context) != 0 && BOOST_ASIO_VERSION >= 102600,
                "halyard::on_context needs Boost 1.81 or later, with which libhalyard is built (Debian: "
                "libboost1.81-dev); with an older Boost use halyard::Instance::create()");
  options.asio_context = static_cast<net::io_context*>(&context);
  options.asio_version = BOOST_ASIO_VERSION;
  return options;
}
#endif

// Arguments of a call. The call owns them until it begins.
template <Argument... A>
std::array<Value, sizeof...(A)> arguments(const A&... values) noexcept {
  return {Value(values)...};
}

// A reusable call handle on an executor; one call at a time. Threads may use distinct objects concurrently;
// any thread may call cancel(). The destructor cancels the call; its handler is still called.
template <typename Executor = net::any_io_executor>
class BasicAsyncCall {
 public:
  using executor_type = Executor;
  using Clock = Call::Clock;

  static Result<BasicAsyncCall> create(const Executor& executor, const Context& context) {
    halyard_call_t made = nullptr;
    return detail::finish(halyard_call_create(context.get(), &made), [&] {
      return BasicAsyncCall(
          std::make_shared<asio_detail::CallCore<Executor> >(executor, Call(adopt, made, context)));
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
  // Cancels the queued or running call, which completes with CANCELLED. Any thread.
  void cancel() const noexcept { core_->cancel(0, false); }
  // The next call completes with DEADLINE_EXCEEDED if it is not done by then. The time before the call starts
  // counts too.
  void expires_at(Clock::time_point time) const noexcept { core_->set_expiry(time); }
  void expires_after(Clock::duration duration) const noexcept { core_->set_expiry(Clock::now() + duration); }

  // If `here`, calls begin within the function that starts them, like asio::dispatch, instead of being
  // posted. This suits calls that are shorter than the time to wake another thread. Start such calls on a
  // thread of the executor. A call that does not wait also completes there: its handler may be called before
  // the function returns.
  void begin_here(bool here) const noexcept { core_->set_begins_here(here); }

  const std::shared_ptr<asio_detail::CallCore<Executor> >& core() const noexcept {
    return core_;
  }  // for async_call

 private:
  explicit BasicAsyncCall(std::shared_ptr<asio_detail::CallCore<Executor> > core) : core_(std::move(core)) {}
  std::shared_ptr<asio_detail::CallCore<Executor> > core_;
};
using AsyncCall = BasicAsyncCall<>;

// Calls `function` with `values`: arguments(...) or a std::vector<Value>. Results are those of Call::invoke:
// async_call<float>(...), async_call<Tensor, int32_t>(...), async_call<>(...). FAILED_PRECONDITION: the
// AsyncCall already runs a call.
template <Returned... R, typename Executor, typename Arguments, typename Token>
  requires std::convertible_to<const Arguments&, std::span<const Value> >
auto async_call(const BasicAsyncCall<Executor>& call, const Handle<halyard_function_t>& function,
                Arguments values, Token&& token) {
  using Results = asio_detail::TypedResults<R...>;
  return net::async_initiate<Token, typename Results::Signature>(
      asio_detail::InitiateCall<Executor, Arguments, Results>{call.core()}, token, function,
      std::move(values), Results());
}

// The same, with a number of results that is known at run time. `results` must live until the handler is
// called; they are valid if the handler gets no error.
template <typename Executor, typename Arguments, typename Token>
  requires std::convertible_to<const Arguments&, std::span<const Value> >
auto async_call_into(const BasicAsyncCall<Executor>& call, const Handle<halyard_function_t>& function,
                     Arguments values, std::span<Value> results, Token&& token) {
  return net::async_initiate<Token, asio_detail::ResultsInto::Signature>(
      asio_detail::InitiateCall<Executor, Arguments, asio_detail::ResultsInto>{call.core()}, token, function,
      std::move(values), asio_detail::ResultsInto{results});
}

// Waits for a fence. If the fence fails, its failure is the error. An empty fence counts as reached.
// Cancelling the wait does not change the fence. The handler runs on its associated executor; without one, on
// `executor`, or else on Asio's system executor.
template <typename Executor, typename Token>
auto async_wait(const Executor& executor, const Fence& fence, Token&& token) {
  return net::async_initiate<Token, asio_detail::CompletionSignature<> >(
      asio_detail::InitiateFenceWait<Executor>{executor}, token, fence);
}
template <typename Token>
auto async_wait(const Fence& fence, Token&& token) {
  return async_wait(net::system_executor(), fence, std::forward<Token>(token));
}

}  // namespace halyard::inline HALYARD_CPP_FORM::inline HALYARD_CPP_ASIO_FORM

#endif  // C++20

#endif  // HALYARD_ASIO_HPP_
