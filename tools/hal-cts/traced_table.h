// A driver's table whose functions leave a trail.
#pragma once

#include "halyard/driver.h"
#include "trail.h"

namespace halyard::cts {

// The same functions, each of which notes on `trail` that it was entered and that it returned. Null entries
// stay null. One table at a time: a second one replaces the functions of the first.
halyard_driver_table_t traced(const halyard_driver_table_t& table, Trail& trail);

// While this object exists, the thread counts as inside of `name`, a literal. `trail` may be null.
class Entered {
 public:
  Entered(Trail* trail, const char* name) : trail_(trail) {
    if (trail_) call_ = trail_->enter(name);
  }
  Entered(const Entered&) = delete;
  ~Entered() {
    if (trail_) trail_->leave(call_);
  }

 private:
  Trail* const trail_;
  Trail::Call call_ = {};
};

}  // namespace halyard::cts
