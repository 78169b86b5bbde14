// Step: deferred work as an intrusive list node. Its owner has already allocated it, so posting it cannot
// fail.
#pragma once

namespace halyard {

struct Step {
  void (*run)(Step& self) noexcept = nullptr;  // may free the step
  Step* next = nullptr;                        // of the list that holds it
};

}  // namespace halyard
