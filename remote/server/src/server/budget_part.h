// BudgetPart: a part of a budget, with a limit of its own. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/budget.h"

namespace halyard::device_server {

class BudgetPart {
 public:
  BudgetPart(uint64_t limit, Ref<Budget> whole) : limit_(limit), whole_(std::move(whole)) {}
  BudgetPart(const BudgetPart&) = delete;
  BudgetPart& operator=(const BudgetPart&) = delete;

  // Both limits hold for its charges. This object outlives them.
  Ref<Budget> budget() {
    const Budget::Source source = {
        .user = this,
        .take = [](void* user, uint64_t bytes) { return int32_t{of(user).take(bytes)}; },
        .give_back =
            [](void* user, uint64_t bytes) {
              of(user).used_.fetch_sub(bytes);
              of(user).whole_->give_back(bytes);
            },
        .used = [](void* user) { return of(user).used_.load(); },
    };
    return make<Budget>(limit_, source);
  }

 private:
  static BudgetPart& of(void* user) { return *static_cast<BudgetPart*>(user); }
  bool take(uint64_t bytes) {
    uint64_t used = used_.load();
    do {
      if (bytes > limit_ - used) return false;
    } while (!used_.compare_exchange_weak(used, used + bytes));
    if (whole_->take(bytes)) return true;
    used_.fetch_sub(bytes);
    return false;
  }

  const uint64_t limit_;
  const Ref<Budget> whole_;
  std::atomic<uint64_t> used_ = 0;
};

}  // namespace halyard::device_server
