// One call on an executor: how it begins, resumes and completes. halyard/asio.hpp has the public functions.
#ifndef HALYARD_CPP_ASIO_CALL_HPP_
#define HALYARD_CPP_ASIO_CALL_HPP_

#include <algorithm>
#include <chrono>
#include <memory>
#include <mutex>
#include <span>
#include <tuple>

#include "halyard/cpp/asio_base.hpp"
#include "halyard/cpp/context.hpp"

namespace halyard::inline HALYARD_CPP_FORM::inline HALYARD_CPP_ASIO_FORM {

namespace asio_detail {

using namespace detail;

// The arguments of a completion handler: (std::exception_ptr, R...), or one expected.
#if HALYARD_CPP_EXCEPTIONS
template <typename... R>
using CompletionSignature = void(std::exception_ptr, R...);
template <typename Handler, typename... R>
void complete_with(Handler& handler, halyard_status_t failure, std::tuple<R...>& results) {
  std::exception_ptr error = failure ? std::make_exception_ptr(Error::adopt(failure)) : nullptr;
  std::apply([&](R&... each) { std::move(handler)(std::move(error), std::move(each)...); }, results);
}
#else
template <typename... R>
using CompletionSignature = void(expected<ReturnedBy_t<R...>, Error>);
template <typename Handler, typename... R>
void complete_with(Handler& handler, halyard_status_t failure, std::tuple<R...>& results) {
  using Outcome = expected<ReturnedBy_t<R...>, Error>;
  if (failure) return std::move(handler)(Outcome(unexpected<Error>(Error::adopt(failure))));
  if constexpr (sizeof...(R) == 0) {
    std::move(handler)(Outcome());
  } else if constexpr (sizeof...(R) == 1) {
    std::move(handler)(Outcome(std::move(std::get<0>(results))));
  } else {
    std::move(handler)(Outcome(std::move(results)));
  }
}
#endif

// A handler bound to its arguments. Owns the failure until the handler is called.
template <typename Handler, typename... R>
class Completion {
 public:
  using allocator_type = net::associated_allocator_t<Handler>;

  Completion(Handler handler, halyard_status_t failure, std::tuple<R...> results)
      : handler_(std::move(handler)), failure_(failure), results_(std::move(results)) {}
  Completion(Completion&& other) noexcept
      : handler_(std::move(other.handler_)),
        failure_(std::exchange(other.failure_, nullptr)),
        results_(std::move(other.results_)) {}
  ~Completion() { halyard_status_release(failure_); }
  allocator_type get_allocator() const noexcept { return net::get_associated_allocator(handler_); }

  void operator()() {
#if HALYARD_CPP_ASIO_CANCELS_
    net::get_associated_cancellation_slot(handler_).clear();
#endif
    complete_with(handler_, std::exchange(failure_, nullptr), results_);
  }

 private:
  Handler handler_;
  halyard_status_t failure_;
  std::tuple<R...> results_;
};

// The destination of results: a tuple, or values of the caller.
template <typename... R>
struct TypedResults {
  using Signature = CompletionSignature<R...>;
  template <typename Handler>
  using CompletionOf = Completion<Handler, R...>;
  std::tuple<R...> tuple = {};

  halyard_status_t take(const Call& call) {
    std::array<halyard_value_t, sizeof...(R)> results;
    halyard_status_t failure = halyard_call_results(call.get(), results.data(), results.size());
    if (!failure) failure = check_results<R...>(results.data());
    if (!failure) tuple = take_all<R...>(results.data());
    return failure;
  }
};
struct ResultsInto {
  using Signature = CompletionSignature<>;
  template <typename Handler>
  using CompletionOf = Completion<Handler>;
  std::span<Value> results;
  std::tuple<> tuple = {};

  halyard_status_t take(const Call& call) {
    for (Value& result : results) result = Value();
    return halyard_call_results(call.get(), raw(results), results.size());
  }
};

// The state of an AsyncCall. It lives as long as a call is in progress.
// THE PHASE controls which thread may continue the call. In phase `running`, one step is queued or executing;
// only that step uses the call, the timers and the operation. A step that leaves the call waiting sets the
// phase to `waiting`. The first wakeup changes `waiting` to `woken` and queues the next step. A wakeup during
// a step also sets `woken`, and the step then checks the call again. Wakeups may be duplicates, or belong to
// an earlier wait, so a step asks the call whether it still waits.
template <typename Executor>
class CallCore final : public CallService::Member, public std::enable_shared_from_this<CallCore<Executor>> {
 public:
  using Clock = Call::Clock;

  // An operation is stored in the core's memory.
  class Operation {
   public:
    virtual halyard_status_t begin(const Call& call, uint32_t* state) = 0;
    virtual void complete(halyard_status_t failure) = 0;  // destroys it, and calls the handler
    virtual void destroy() noexcept = 0;

   protected:
    virtual ~Operation() = default;
  };

  CallCore(const Executor& executor, Call call)
      : executor_(executor), deadline_timer_(executor), wait_timer_(executor), call_(std::move(call)) {
    this->join(net::use_service<CallService>(context_of(executor)));
    call_.on_ready([](void* user) { static_cast<CallCore*>(user)->wake(); }, this);
  }
  CallCore(const CallCore&) = delete;
  CallCore& operator=(const CallCore&) = delete;
  ~CallCore() override {
    call_.on_ready(nullptr, nullptr);
    this->leave();
  }

  const Executor& executor() const noexcept { return executor_; }
  const Call& call() const noexcept { return call_; }
  void set_expiry(Clock::time_point expiry) noexcept { expiry_ = expiry; }
  void set_begins_here(bool here) noexcept { begins_here_ = here; }

  // Reserves the core for a call; returns false if it is in use. From then on cancel(number) can cancel the
  // call.
  bool reserve(uint64_t& number) {
    const std::lock_guard lock(mutex_);
    if (is_busy_) return false;
    is_busy_ = true;
    is_expired_ = false;
    number = ++number_;
    halyard_call_arm(call_.get());
    return true;
  }
  // Begins the operation that `make` constructs in the memory passed to it.
  template <typename Make>
  void start(size_t size, uint64_t number, Make&& make) {
    struct Unreserve {
      CallCore* core;
      ~Unreserve() {
        if (core) core->release();
      }
    } unreserve{this};
    if (const Clock::time_point expiry = std::exchange(expiry_, Clock::time_point::max());
        expiry != Clock::time_point::max()) {
      has_deadline_ = true;
      deadline_timer_.expires_at(expiry);
      deadline_timer_.async_wait(TimerHandler{this->shared_from_this(), number, true});
    }
    operation_ = std::forward<Make>(make)(operation_memory_.get(size));
    unreserve.core = nullptr;
    self_ = this->shared_from_this();
    phase_.store(running);
    if (begins_here_) return step(true);
    post_step(true);
  }
  // Ends the reservation. Returns whether a deadline has ended the call.
  bool release() noexcept {
    const std::lock_guard lock(mutex_);
    is_busy_ = false;
    return is_expired_;
  }
  // Keeps the core alive while the handler is called.
  std::shared_ptr<CallCore> take_self() noexcept { return std::move(self_); }

  // Cancels call `number`, or any current call if 0. No effect on later calls. Any thread.
  void cancel(uint64_t number, bool expired) noexcept {
    const std::lock_guard lock(mutex_);
    if (!is_busy_ || (number != 0 && number != number_)) return;
    is_expired_ |= expired;
    call_.cancel();
  }

 private:
  enum Phase : uint32_t { idle, running, waiting, woken };

  struct Step {
    using allocator_type = HandlerAllocator<std::byte>;
    std::shared_ptr<CallCore> core;
    bool begins;
    allocator_type get_allocator() const noexcept { return allocator_type(core->memory_); }
    void operator()() { core->step(begins); }
  };
  struct TimerHandler {
    using allocator_type = HandlerAllocator<std::byte>;
    std::shared_ptr<CallCore> core;
    uint64_t number;
    bool is_deadline;
    allocator_type get_allocator() const noexcept { return allocator_type(core->memory_); }
    template <typename ErrorCode>
    void operator()(const ErrorCode& error) {
      if (error) return;
      if (is_deadline) {
        core->cancel(number, true);
      } else {
        core->wake();
      }
    }
  };

  // Terminates the program if memory is exhausted, because the call could never continue.
  void post_step(bool begins) noexcept { post_to(executor_, Step{self_, begins}); }

  // Called on any thread, perhaps while a lock of libhalyard is held.
  void wake() noexcept {
    uint32_t phase = phase_.load();
    while (phase == running || phase == waiting) {
      if (!phase_.compare_exchange_weak(phase, woken)) continue;
      if (phase == waiting) post_step(false);
      return;
    }
  }

  void step(bool begins) {
    if (!operation_) return;  // the execution context is being destroyed
    for (;;) {
      phase_.store(running);
      if (begins || halyard_call_state(call_.get()) != HALYARD_CALL_WAITING) {
        uint32_t state = HALYARD_CALL_DONE;
        halyard_status_t failure = std::exchange(begins, false) ? operation_->begin(call_, &state)
                                                                : halyard_call_resume(call_.get(), &state);
        if (failure || state == HALYARD_CALL_DONE) return complete(failure);
        if (state == HALYARD_CALL_READY) return post_step(false);
        set_wait_timer();
      }
      uint32_t phase = running;
      if (phase_.compare_exchange_strong(phase, waiting)) return;
    }
  }

  // Sets the timer for the current wait.
  void set_wait_timer() {
    const Clock::time_point deadline = call_.wait_deadline();
    if (std::exchange(has_wait_timer_, deadline != Clock::time_point::max())) wait_timer_.cancel();
    if (!has_wait_timer_) return;
    wait_timer_.expires_at(deadline);
    wait_timer_.async_wait(TimerHandler{self_, 0, false});
  }

  void complete(halyard_status_t failure) {
    phase_.store(idle);
    if (std::exchange(has_deadline_, false)) deadline_timer_.cancel();
    if (std::exchange(has_wait_timer_, false)) wait_timer_.cancel();
    std::exchange(operation_, nullptr)->complete(failure);
  }

  std::shared_ptr<void> keep() const noexcept override {
    return std::const_pointer_cast<CallCore>(this->weak_from_this().lock());
  }
  void shut_down() noexcept override {
    call_.on_ready(nullptr, nullptr);
    const std::shared_ptr<CallCore> released = std::move(self_);
    phase_.store(idle);
    if (Operation* const operation = std::exchange(operation_, nullptr)) {
      cancel(0, false);
      operation->destroy();
    }
    release();
  }

  using Timer = net::basic_waitable_timer<Clock, net::wait_traits<Clock>, Executor>;

  Executor executor_;
  HandlerMemory memory_;
  OperationMemory operation_memory_;
  std::mutex mutex_;  // guards the next three fields, which decide who cancels and who ends a call
  uint64_t number_ = 0;
  bool is_busy_ = false;
  bool is_expired_ = false;
  std::atomic<uint32_t> phase_ = idle;
  Operation* operation_ = nullptr;
  std::shared_ptr<CallCore> self_;                       // set while there is an operation
  Clock::time_point expiry_ = Clock::time_point::max();  // deadline of the next call
  bool begins_here_ = false;
  bool has_deadline_ = false;
  bool has_wait_timer_ = false;
  Timer deadline_timer_;
  Timer wait_timer_;
  Call call_;
};

// A call of `function`, with its handler and owned arguments.
template <typename Executor, typename Handler, typename Arguments, typename Results>
class CallOperation final : public CallCore<Executor>::Operation {
 public:
  using Core = CallCore<Executor>;
  using HandlerExecutor = net::associated_executor_t<Handler, Executor>;

  CallOperation(Core& core, Handler&& handler, Handle<halyard_function_t> function, Arguments&& arguments,
                Results results)
      : core_(core),
        work_(core.executor()),
        handler_work_(net::get_associated_executor(handler, core.executor())),
        handler_(std::move(handler)),
        function_(std::move(function)),
        arguments_(std::move(arguments)),
        results_(std::move(results)) {}

  halyard_status_t begin(const Call& call, uint32_t* state) override {
    const std::span<const Value> values(arguments_);
    const halyard_status_t failure =
        halyard_call_begin(call.get(), function_.get(), raw(values), values.size(), state);
    arguments_ = Arguments();
    return failure;
  }
  void complete(halyard_status_t failure) override {
    if (!failure) failure = results_.take(core_.call());
    // Moves everything out of the operation's memory, because the handler may start its next call in it.
    auto work = std::move(work_);
    auto handler_work = std::move(handler_work_);
    Handler handler(std::move(handler_));
    auto tuple = std::move(results_.tuple);
    Core& core = core_;
    std::destroy_at(this);
    const std::shared_ptr<Core> kept = core.take_self();
    if (core.release() && halyard_status_code(failure) == HALYARD_CANCELLED) {
      halyard_status_release(failure);
      failure = halyard_status_create(HALYARD_DEADLINE_EXCEEDED, "the deadline of the call has passed");
    }
    using Completed = typename Results::template CompletionOf<Handler>;
    net::dispatch(handler_work.get_executor(), Completed(std::move(handler), failure, std::move(tuple)));
  }
  void destroy() noexcept override { std::destroy_at(this); }

 private:
  friend void std::destroy_at<CallOperation>(CallOperation*);
  Core& core_;
  net::executor_work_guard<Executor> work_;
  net::executor_work_guard<HandlerExecutor> handler_work_;
  Handler handler_;
  Handle<halyard_function_t> function_;
  Arguments arguments_;
  Results results_;
};

// Starts the operation for a handler, or fails it if the core is in use.
template <typename Executor, typename Arguments, typename Results>
struct InitiateCall {
  std::shared_ptr<CallCore<Executor>> core;

  using executor_type = Executor;
  executor_type get_executor() const noexcept { return core->executor(); }

  template <typename Handler>
  void operator()(Handler&& given, Handle<halyard_function_t> function, Arguments arguments,
                  Results results) {
    using Plain = std::decay_t<Handler>;
    using Operation = CallOperation<Executor, Plain, Arguments, Results>;
    static_assert(alignof(Operation) <= alignof(std::max_align_t));
    Plain handler(std::forward<Handler>(given));
    uint64_t number = 0;
    if (!core->reserve(number)) {
      const auto executor = net::get_associated_executor(handler, core->executor());
      using Completed = typename Results::template CompletionOf<Plain>;
      return net::post(executor, Completed(std::move(handler), refusal(), std::move(results.tuple)));
    }
#if HALYARD_CPP_ASIO_CANCELS_
    if (auto slot = net::get_associated_cancellation_slot(handler); slot.is_connected())
      slot.assign([core = core, number](net::cancellation_type type) {
        if (type != net::cancellation_type::none) core->cancel(number, false);
      });
#endif
    core->start(sizeof(Operation), number, [&](void* memory) {
      return ::new (memory)
          Operation(*core, std::move(handler), std::move(function), std::move(arguments), std::move(results));
    });
  }

 private:
  static halyard_status_t refusal() {
    return halyard_status_create(HALYARD_FAILED_PRECONDITION,
                                 "the AsyncCall still runs another call; wait for it, or use one for each");
  }
};

}  // namespace asio_detail

}  // namespace halyard::inline HALYARD_CPP_FORM::inline HALYARD_CPP_ASIO_FORM

#endif  // HALYARD_CPP_ASIO_CALL_HPP_
