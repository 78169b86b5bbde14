// Step: deferred work as an intrusive list node. Posting a step cannot fail, because its owner has already
// allocated it.
#pragma once

namespace halyard {

struct Step {
  void (*run)(Step& self) noexcept = nullptr;  // may free the step
  Step* next = nullptr;                        // link of the list that holds it
};

}  // namespace halyard
