// Copies the C ABI's record, and formats it.
#include "common/expectations.h"

namespace halyard::tools {

FailedExpectation::FailedExpectation(const halyard_failed_expectation_t& failed)
    : function(view(failed.function)), message(view(failed.message)), place(view(failed.place)) {}

std::string FailedExpectation::text() const {
  return fmt::format("check.{}{}{}: {}", function, place.empty() ? "" : " ", place, message);
}

}  // namespace halyard::tools
