// The error of an exhausted budget.
#include "base/budget.h"

namespace halyard {

const ObjectType Budget::kType = object_type<Budget>("halyard.budget");

namespace {

std::unexpected<Status> spent(const Budget& budget, uint64_t bytes, const char* what) {
  return fail(Code::RESOURCE_EXHAUSTED,
              "{} needs {} more bytes, but the context's memory limit is {} bytes, and {} are in use; raise "
              "the limit (max_memory) if it is too low",
              what, bytes, budget.limit(), budget.used());
}

}  // namespace

Result<Charge> Charge::take(Ref<Budget> budget, uint64_t bytes, const char* what) {
  Charge charge(std::move(budget));
  HALYARD_TRY(charge.grow_by(bytes, what));
  return charge;
}

Result<> Charge::begin(Budget& budget, uint64_t bytes, const char* what) {
  if (!budget.take(bytes)) return spent(budget, bytes, what);
  budget_ = Ref<Budget>::share(&budget);
  bytes_ = bytes;
  return {};
}

Result<> Charge::grow(uint64_t bytes, const char* what) {
  if (!budget_->take(bytes)) return spent(*budget_, bytes, what);
  bytes_ += bytes;
  return {};
}

}  // namespace halyard
