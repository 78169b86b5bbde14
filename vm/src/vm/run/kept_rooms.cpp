#include "vm/run/kept_rooms.h"

namespace halyard::vm {

Result<KeptRooms::Room*> KeptRooms::keep(uint32_t objects, uint32_t bytes, const Ref<Budget>& budget) {
  constexpr size_t kUnit = sizeof(std::max_align_t);
  static_assert(alignof(std::max_align_t) == 16);
  if (rooms_.size() == count_) rooms_.push_back(std::make_unique<Room>());
  Room& room = *rooms_[count_];
  room.charge = {};  // of an earlier call
  room.charge = HALYARD_TRY(Charge::take(
      budget, block_bytes(sizeof(Room)) + block_bytes(objects * sizeof(Object*)) + block_bytes(bytes),
      "the registers of a call that waits"));
  room.objects.assign(objects, nullptr);
  room.bytes.assign(bytes / kUnit + (bytes % kUnit != 0), {});
  room.byte_count = bytes;
  ++count_;
  return &room;
}

void KeptRooms::drop_to(size_t count) {
  while (count_ > count) {
    Room& room = *rooms_[--count_];
    // A destructor of an object may end calls, but not make rooms here.
    for (Object*& object : room.objects) release(std::exchange(object, nullptr));
    room.charge = {};
  }
}

}  // namespace halyard::vm
