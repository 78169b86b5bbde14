// Of the kit (halyard/driver.hpp): the host's request to end work, or the loading of an executable, early.
#ifndef HALYARD_DRIVER_STOP_HPP_
#define HALYARD_DRIVER_STOP_HPP_

#include <cstdint>

#include "halyard/driver/failure.hpp"

namespace halyard::kit {

// Cheap enough to ask before each workgroup and in each iteration of a long loop. Any thread.
class Stop {
 public:
  Stop() = default;  // never stops
  explicit Stop(const halyard_submission_t& submission)
      : word_(HALYARD_HAS_FIELD(&submission, halyard_submission_t, stop) ? submission.stop : nullptr) {}
  explicit Stop(const halyard_executable_args_t& args)
      : word_(HALYARD_HAS_FIELD(&args, halyard_executable_args_t, stop) ? args.stop : nullptr) {}

  bool requested() const { return code() != HALYARD_OK; }
  // The failure to return from work that was stopped: CANCELLED or DEADLINE_EXCEEDED [R69, R97].
  Result<> check() const {
    const halyard_status_code_t found = code();
    if (found == HALYARD_OK) [[likely]]
      return {};
    return Failure{found, found == HALYARD_DEADLINE_EXCEEDED
                              ? "the work was stopped, because its call has passed its time limit"
                              : "the work was stopped, because its call was cancelled"};
  }

 private:
  halyard_status_code_t code() const {
    return word_ ? static_cast<halyard_status_code_t>(__atomic_load_n(word_, __ATOMIC_RELAXED))
                 : halyard_status_code_t{HALYARD_OK};
  }

  const uint32_t* word_ = nullptr;  // of the host
};

}  // namespace halyard::kit

#endif  // HALYARD_DRIVER_STOP_HPP_
