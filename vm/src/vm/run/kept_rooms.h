// KeptRooms: the data of native functions that wait, from one attempt at their call to the next. The
// functions of a call chain make rooms from the innermost to the outermost one, and take them in the opposite
// order. One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/budget.h"
#include "base/object.h"
#include "base/status.h"

namespace halyard::vm {

class KeptRooms {
 public:
  struct Room {
    std::vector<Object*> objects;  // owned
    std::vector<std::max_align_t> bytes;
    uint32_t byte_count = 0;
    Charge charge;
  };

  KeptRooms() = default;
  KeptRooms(const KeptRooms&) = delete;
  KeptRooms& operator=(const KeptRooms&) = delete;
  ~KeptRooms() { clear(); }

  size_t size() const { return count_; }
  // Makes a room of zeroes. `budget` may be null. RESOURCE_EXHAUSTED.
  Result<Room*> keep(uint32_t objects, uint32_t bytes, const Ref<Budget>& budget);
  // Takes the last room, whose objects the caller then owns. It is valid until the next keep(). Null: none.
  Room* take() { return count_ == 0 ? nullptr : rooms_[--count_].get(); }
  // Drops all rooms but the first `count`, and releases their objects.
  void drop_to(size_t count);
  void clear() {
    if (count_ != 0) [[unlikely]]
      drop_to(0);
  }

 private:
  std::vector<std::unique_ptr<Room>> rooms_;  // those past count_ are reused
  size_t count_ = 0;
};

}  // namespace halyard::vm
