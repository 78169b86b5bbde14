// Reservation: a change of an object that is undone unless the work that needs it is accepted.
#pragma once

#include <utility>

#include "base/object.h"

namespace halyard::hal {

class Reservation {
 public:
  using Undo = void (*)(Object& object) noexcept;

  Reservation() = default;
  // The object is borrowed; the caller keeps it until the work is accepted or refused.
  Reservation(Object& object, Undo undo) : object_(&object), undo_(undo) {}
  Reservation(Reservation&& other) noexcept
      : object_(std::exchange(other.object_, nullptr)), undo_(other.undo_) {}
  Reservation& operator=(Reservation&& other) noexcept {
    std::swap(object_, other.object_);
    std::swap(undo_, other.undo_);
    return *this;
  }
  ~Reservation() {
    if (object_) undo_(*object_);
  }
  // The work is accepted.
  void keep() { object_ = nullptr; }

 private:
  Object* object_ = nullptr;
  Undo undo_ = nullptr;
};

}  // namespace halyard::hal
