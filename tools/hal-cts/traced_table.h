// A driver's table whose functions record a trail.
#pragma once

#include "halyard/driver.h"
#include "trail.h"

namespace halyard::cts {

// Wraps the functions: each records on `trail` when it is entered and when it returns. Null entries stay
// null. Only one table at a time: a second call replaces the wrapped functions of the first.
halyard_driver_table_t traced(const halyard_driver_table_t& table, Trail& trail);

// While this object exists, the thread counts as being inside of the function `name`, a literal. `trail` may
// be null.
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
