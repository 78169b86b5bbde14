// Which calls a tracing instance records. A thread that runs a call sets the choice.
#pragma once

#include <cstdint>

namespace halyard {

enum class TraceChoice : uint8_t {
  unset,  // recorded, like everything without a choice
  on,
  off,
};

// The choice of the call that the calling thread runs; `unset` if it runs none.
TraceChoice current_trace_choice() noexcept;

// Sets the choice for the calling thread during the lifetime of this object.
class TraceChoiceScope {
 public:
  explicit TraceChoiceScope(TraceChoice choice) noexcept : is_set_(choice != TraceChoice::unset) {
    if (is_set_) [[unlikely]]
      before_ = exchange(choice);
  }
  TraceChoiceScope(const TraceChoiceScope&) = delete;
  TraceChoiceScope& operator=(const TraceChoiceScope&) = delete;
  ~TraceChoiceScope() {
    if (is_set_) [[unlikely]]
      exchange(before_);
  }

 private:
  static TraceChoice exchange(TraceChoice choice) noexcept;

  const bool is_set_;
  TraceChoice before_ = TraceChoice::unset;
};

}  // namespace halyard
