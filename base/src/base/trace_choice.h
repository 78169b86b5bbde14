// Which calls of a tracing instance are recorded: a thread that runs one says so.
#pragma once

#include <cstdint>

namespace halyard {

enum class TraceChoice : uint8_t {
  unset,  // recorded, as everything is unless a call says otherwise
  on,
  off,
};

// Of the call that the calling thread runs; `unset` for none.
TraceChoice current_trace_choice() noexcept;

// The calling thread runs a call with this choice for the lifetime of this object.
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
