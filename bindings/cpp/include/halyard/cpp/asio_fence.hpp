// Waits for a fence on an executor.
#ifndef HALYARD_CPP_ASIO_FENCE_HPP_
#define HALYARD_CPP_ASIO_FENCE_HPP_

#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "halyard/cpp/asio_call.hpp"
#include "halyard/cpp/fence.hpp"

namespace halyard::inline HALYARD_CPP_FORM::inline HALYARD_CPP_ASIO_FORM {

namespace asio_detail {

using namespace detail;

// One wait. The fence keeps it alive until the fence is reached, even if the wait is cancelled earlier.
template <typename Handler, typename Executor>
class FenceWait final : public CallService::Member,
                        public std::enable_shared_from_this<FenceWait<Handler, Executor>> {
 public:
  using HandlerExecutor = net::associated_executor_t<Handler, Executor>;

  FenceWait(Handler handler, const Executor& executor)
      : work_(net::get_associated_executor(handler, executor)), handler_(std::move(handler)) {
    this->join(net::use_service<CallService>(context_of(work_->get_executor())));
  }
  ~FenceWait() override { this->leave(); }

  void start(const Fence& fence) {
    self_ = this->shared_from_this();
    const halyard_fence_fn reached = [](void* user, halyard_status_t failure) noexcept {
      const std::shared_ptr<FenceWait> wait = std::move(static_cast<FenceWait*>(user)->self_);
      wait->finish(failure);
    };
    if (!fence) return reached(this, nullptr);
    if (halyard_status_t failure = halyard_fence_on_reached(fence.get(), reached, this)) {
      reached(this, failure);
      halyard_status_release(failure);
    }
  }
  // Only the first call has an effect. The failure is borrowed. Any thread.
  void finish(halyard_status_t failure) noexcept {
    const std::lock_guard lock(mutex_);  // keeps the execution context from shutting down meanwhile
    if (!handler_) return;
    Completion<Handler> completion(std::move(*handler_), halyard_status_retain(failure), {});
    handler_.reset();
    post_to(work_->get_executor(), std::move(completion));
    work_.reset();
  }

 private:
  std::shared_ptr<void> keep() const noexcept override {
    return std::const_pointer_cast<FenceWait>(this->weak_from_this().lock());
  }
  void shut_down() noexcept override {
    std::optional<Handler> dropped;  // destroyed after the lock is released
    const std::lock_guard lock(mutex_);
    if (handler_) dropped.emplace(std::move(*handler_));
    handler_.reset();
    work_.reset();
  }

  std::mutex mutex_;
  std::optional<net::executor_work_guard<HandlerExecutor>> work_;
  std::optional<Handler> handler_;
  std::shared_ptr<FenceWait> self_;  // set until the fence is reached
};

template <typename Executor>
struct InitiateFenceWait {
  Executor executor;

  using executor_type = Executor;
  executor_type get_executor() const noexcept { return executor; }

  template <typename Handler>
  void operator()(Handler&& given, const Fence& fence) {
    using Plain = std::decay_t<Handler>;
    using Wait = FenceWait<Plain, Executor>;
    Plain handler(std::forward<Handler>(given));
#if HALYARD_CPP_ASIO_CANCELS_
    auto slot = net::get_associated_cancellation_slot(handler);
#endif
    const auto wait = std::make_shared<Wait>(std::move(handler), executor);
#if HALYARD_CPP_ASIO_CANCELS_
    if (slot.is_connected())
      slot.assign([weak = std::weak_ptr<Wait>(wait)](net::cancellation_type type) {
        const std::shared_ptr<Wait> waiting = weak.lock();
        if (type == net::cancellation_type::none || !waiting) return;
        Error cancelled(StatusCode::CANCELLED, "the wait for a fence was cancelled");
        waiting->finish(cancelled.status());
      });
#endif
    wait->start(fence);
  }
};

}  // namespace asio_detail

}  // namespace halyard::inline HALYARD_CPP_FORM::inline HALYARD_CPP_ASIO_FORM

#endif  // HALYARD_CPP_ASIO_FENCE_HPP_
