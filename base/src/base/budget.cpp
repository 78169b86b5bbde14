// What is said when a budget is spent.
#include "base/budget.h"

namespace halyard {

const ObjectType Budget::kType = object_type<Budget>("halyard.budget");

Result<Charge> Charge::take(Ref<Budget> budget, uint64_t bytes, const char* what) {
  Charge charge(std::move(budget));
  HALYARD_TRY(charge.grow_to(bytes, what));
  return charge;
}

Result<> Charge::grow_to(uint64_t bytes, const char* what) {
  if (!budget_ || bytes <= bytes_) return {};
  if (!budget_->take(bytes - bytes_)) {
    return fail(Code::RESOURCE_EXHAUSTED,
                "{} of {} bytes passes the context's memory limit of {} bytes, of which {} are in use; raise "
                "it where that is too little",
                what, bytes, budget_->limit(), budget_->used());
  }
  bytes_ = bytes;
  return {};
}

}  // namespace halyard
