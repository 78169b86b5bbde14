// A driver's table whose functions write the log of a case.
#pragma once

#include "case_log.h"
#include "halyard/driver.h"

namespace halyard::cts {

// Wraps the functions: each writes to `case_log` when it is entered and when it returns. Null entries stay
// null. Only one table at a time: a second call replaces the wrapped functions of the first.
halyard_driver_table_t traced(const halyard_driver_table_t& table, CaseLog& case_log);

// While this object exists, the thread counts as being inside of the function `name`, a literal. `case_log`
// may be null.
class Entered {
 public:
  Entered(CaseLog* case_log, const char* name) : case_log_(case_log) {
    if (case_log_) call_ = case_log_->enter(name);
  }
  Entered(const Entered&) = delete;
  ~Entered() {
    if (case_log_) case_log_->leave(call_);
  }

 private:
  CaseLog* const case_log_;
  CaseLog::Call call_ = {};
};

}  // namespace halyard::cts
