// Step: something to do later, as a link of a list. Whoever has one has the memory for it already, so handing
// it on cannot fail.
#pragma once

namespace halyard {

struct Step {
  void (*run)(Step& self) noexcept = nullptr;  // may free the step
  Step* next = nullptr;                        // of the list that holds it
};

}  // namespace halyard
