// Memory for requests and responses. It is reserved before it is allocated, so that the process stays within
// its limit for any number of clients.
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>
#include <utility>

namespace halyard::tools::serve {

// Why a request is refused when nothing can be reserved.
inline constexpr std::string_view kNoRoom =
    "the requests and responses in the server use all memory that it may use; try again later";

// Any thread. Must outlive its reservations.
class Budget {
 public:
  // `used` counts the reserved bytes; it must outlive the budget.
  Budget(uint64_t limit, std::atomic<int64_t>& used) : limit_(limit), used_(used) {}

  bool reserve(uint64_t size) {
    if (size > limit_) return false;
    int64_t used = used_.load(std::memory_order_relaxed);
    do {
      if (static_cast<uint64_t>(used) > limit_ - size) return false;
    } while (
        !used_.compare_exchange_weak(used, used + static_cast<int64_t>(size), std::memory_order_relaxed));
    return true;
  }
  void release(uint64_t size) { used_.fetch_sub(static_cast<int64_t>(size), std::memory_order_relaxed); }
  uint64_t limit() const { return limit_; }

 private:
  const uint64_t limit_;
  std::atomic<int64_t>& used_;
};

// The reserved memory of one request or response. One thread.
class Reservation {
 public:
  Reservation() = default;
  explicit Reservation(Budget& budget) : budget_(&budget) {}
  Reservation(Reservation&& other) noexcept
      : budget_(std::exchange(other.budget_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  Reservation& operator=(Reservation&& other) noexcept {
    std::swap(budget_, other.budget_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~Reservation() {
    if (size_ > 0) budget_->release(size_);
  }

  // Reserves more. False: the limit is reached.
  bool add(uint64_t size) {
    if (!budget_->reserve(size)) return false;
    size_ += size;
    return true;
  }
  void give_back(uint64_t size) {
    if (size == 0) return;
    budget_->release(size);
    size_ -= size;
  }
  uint64_t size() const { return size_; }

 private:
  Budget* budget_ = nullptr;
  uint64_t size_ = 0;
};

}  // namespace halyard::tools::serve
