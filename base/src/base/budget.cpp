// What is said when a budget is spent.
#include "base/budget.h"

namespace halyard {

const ObjectType Budget::kType = object_type<Budget>("halyard.budget");

Result<Charge> Charge::take(Ref<Budget> budget, uint64_t bytes, const char* what) {
  Charge charge(std::move(budget));
  HALYARD_TRY(charge.grow_by(bytes, what));
  return charge;
}

Result<> Charge::begin(Budget& budget, uint64_t bytes, const char* what) {
  *this = HALYARD_TRY(take(Ref<Budget>::share(&budget), bytes, what));
  return {};
}

Result<> Charge::grow(uint64_t bytes, const char* what) {
  if (!budget_->take(bytes)) {
    return fail(
        Code::RESOURCE_EXHAUSTED,
        "{} takes {} bytes more, which passes the context's memory limit of {} bytes, of which {} are in "
        "use; raise the limit (--max_memory of the tools, max_memory of a context) where it is too little",
        what, bytes, budget_->limit(), budget_->used());
  }
  bytes_ += bytes;
  return {};
}

}  // namespace halyard
