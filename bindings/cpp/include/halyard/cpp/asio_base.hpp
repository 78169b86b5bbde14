// Foundations of halyard/asio.hpp: selection of Asio, memory and lifetimes of operations.
#ifndef HALYARD_CPP_ASIO_BASE_HPP_
#define HALYARD_CPP_ASIO_BASE_HPP_

#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <new>
#include <type_traits>
#include <utility>

// Boost.Asio 1.74 or later; standalone Asio 1.18 or later if the program defines HALYARD_STANDALONE_ASIO.
#if defined(HALYARD_STANDALONE_ASIO)
#include <asio/any_io_executor.hpp>
#include <asio/associated_allocator.hpp>
#include <asio/associated_executor.hpp>
#include <asio/async_result.hpp>
#include <asio/basic_waitable_timer.hpp>
#include <asio/dispatch.hpp>
#include <asio/execution_context.hpp>
#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <asio/system_executor.hpp>
#include <asio/thread_pool.hpp>
#include <asio/version.hpp>
#if ASIO_VERSION >= 101900
#include <asio/associated_cancellation_slot.hpp>
#define HALYARD_CPP_ASIO_CANCELS_ 1
#else
#define HALYARD_CPP_ASIO_CANCELS_ 0
#endif
#define HALYARD_CPP_ASIO_FORM over_standalone_asio
#else
#if !__has_include(<boost/asio/version.hpp>)
#error \
    "halyard/asio.hpp needs Boost.Asio (Debian: libboost-dev), or standalone Asio with HALYARD_STANDALONE_ASIO defined"
#endif
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/associated_allocator.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/execution_context.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/system_executor.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/version.hpp>
#if BOOST_ASIO_VERSION >= 101900
#include <boost/asio/associated_cancellation_slot.hpp>
#define HALYARD_CPP_ASIO_CANCELS_ 1
#else
#define HALYARD_CPP_ASIO_CANCELS_ 0
#endif
#define HALYARD_CPP_ASIO_FORM over_boost_asio
#endif

#include "halyard/cpp/error.hpp"

namespace halyard::inline HALYARD_CPP_FORM::inline HALYARD_CPP_ASIO_FORM {

#if defined(HALYARD_STANDALONE_ASIO)
namespace net = ::asio;
#else
namespace net = ::boost::asio;
#endif

namespace asio_detail {

using namespace detail;

// Memory that Asio allocates for one call at a time: steps and timers. Any thread; falls back to the heap.
class HandlerMemory {
 public:
  HandlerMemory() = default;
  HandlerMemory(const HandlerMemory&) = delete;
  HandlerMemory& operator=(const HandlerMemory&) = delete;

  void* allocate(size_t size) {
    if (size <= sizeof(Slot::bytes))
      for (Slot& slot : slots_)
        if (!slot.is_used.exchange(true, std::memory_order_acquire)) return slot.bytes;
    return ::operator new(size);
  }
  void deallocate(void* memory) noexcept {
    for (Slot& slot : slots_)
      if (memory == slot.bytes) return slot.is_used.store(false, std::memory_order_release);
    ::operator delete(memory);
  }

 private:
  struct Slot {
    alignas(std::max_align_t) std::byte bytes[192];
    std::atomic<bool> is_used = false;
  };
  std::array<Slot, 4> slots_;
};

template <typename T>
class HandlerAllocator {
 public:
  using value_type = T;
  explicit HandlerAllocator(HandlerMemory& memory) noexcept : memory_(&memory) {}
  template <typename U>
  HandlerAllocator(const HandlerAllocator<U>& other) noexcept : memory_(other.memory_) {}
  T* allocate(size_t count) { return static_cast<T*>(memory_->allocate(count * sizeof(T))); }
  void deallocate(T* memory, size_t) noexcept { memory_->deallocate(memory); }
  template <typename U>
  bool operator==(const HandlerAllocator<U>& other) const noexcept {
    return memory_ == other.memory_;
  }

 private:
  template <typename U>
  friend class HandlerAllocator;
  HandlerMemory* memory_;
};

// Memory for one operation at a time, kept from one operation to the next.
class OperationMemory {
 public:
  void* get(size_t size) {
    if (size > size_) {
      memory_ = std::make_unique_for_overwrite<std::max_align_t[]>((size + sizeof(std::max_align_t) - 1) /
                                                                   sizeof(std::max_align_t));
      size_ = size;
    }
    return memory_.get();
  }

 private:
  std::unique_ptr<std::max_align_t[]> memory_;
  size_t size_ = 0;
};

// Posts to the executor. A type-erased executor cannot use the handler's allocator, so this function recovers
// the executors of Asio's own contexts from it.
template <typename Executor, typename Handler>
void post_to(const Executor& executor, Handler&& handler) {
  if constexpr (std::is_same_v<Executor, net::any_io_executor>) {
    if (const auto* context = executor.template target<net::io_context::executor_type>())
      return static_cast<void>(net::post(*context, std::forward<Handler>(handler)));
    if (const auto* pool = executor.template target<net::thread_pool::executor_type>())
      return static_cast<void>(net::post(*pool, std::forward<Handler>(handler)));
  }
  net::post(executor, std::forward<Handler>(handler));
}

// Drops waiting operations when their execution context is destroyed; Asio itself drops only queued ones.
class CallService final : public net::execution_context::service {
  // May outlive the service, because members may.
  struct Registry;

 public:
  static inline net::execution_context::id id;

  // A member is owned by shared pointers. Its derived class calls leave() in the destructor.
  class Member {
   public:
    virtual void shut_down() noexcept = 0;                    // drops the handler
    virtual std::shared_ptr<void> keep() const noexcept = 0;  // null if the member is being destroyed

   protected:
    virtual ~Member() = default;
    inline void join(CallService& service);
    inline void leave() noexcept;

   private:
    friend class CallService;
    friend struct Registry;
    std::shared_ptr<Registry> registry_;
    Member* next_ = nullptr;
    Member* previous_ = nullptr;
    bool is_in_ = false;
  };

  explicit CallService(net::execution_context& context)
      : service(context), registry_(std::make_shared<Registry>()) {}

 private:
  struct Registry {
    std::mutex mutex;
    Member* first = nullptr;

    void link(Member& member) noexcept {
      member.next_ = first;
      if (first) first->previous_ = &member;
      first = &member;
      member.is_in_ = true;
    }
    void unlink(Member& member) noexcept {
      if (!member.is_in_) return;
      (member.previous_ ? member.previous_->next_ : first) = member.next_;
      if (member.next_) member.next_->previous_ = member.previous_;
      member.next_ = member.previous_ = nullptr;
      member.is_in_ = false;
    }
  };

  void shutdown() override {
    for (;;) {
      Member* member = nullptr;
      std::shared_ptr<void> kept;
      {
        const std::lock_guard lock(registry_->mutex);
        member = registry_->first;
        if (!member) return;
        registry_->unlink(*member);
        kept = member->keep();
      }
      if (kept) member->shut_down();
    }
  }

  const std::shared_ptr<Registry> registry_;
};

inline void CallService::Member::join(CallService& service) {
  registry_ = service.registry_;
  const std::lock_guard lock(registry_->mutex);
  registry_->link(*this);
}
inline void CallService::Member::leave() noexcept {
  const std::lock_guard lock(registry_->mutex);
  registry_->unlink(*this);
}

template <typename Executor>
net::execution_context& context_of(const Executor& executor) {
  return net::query(executor, net::execution::context);
}

}  // namespace asio_detail

}  // namespace halyard::inline HALYARD_CPP_FORM::inline HALYARD_CPP_ASIO_FORM

#endif  // HALYARD_CPP_ASIO_BASE_HPP_
