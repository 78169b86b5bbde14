// Sharing: how a device gets at memory of another driver's device. A driver sees only its own handles, so the
// host makes it one for the same bytes where both sides can meet in host memory: the owner tells where its
// bytes are, the other imports them. Nothing is copied. Specified by hal-semantics.md, "Objects".
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "hal/device/buffer.h"
#include "hal/device/device.h"

namespace halyard::hal {

enum class Sharing : uint8_t {
  none,         // bytes are copied between them
  host_memory,  // the user imports what the owner has in host memory
  same_driver,  // the owner's handles are the user's too
};

// What `user` can have of memory that `owner` allocates, as far as their properties tell: memory that the
// host cannot see, or that is not aligned as `user` wants it, is not shared for all that.
Sharing sharing(const Device& owner, const Device& user);

// The handle by which `user`'s driver knows the bytes. It is made when it is first asked for, lives as long
// as the allocation, and counts as a use of it by the caller. FAILED_PRECONDITION: there are no bytes yet
// (alloca whose turn has not come) or no longer (dealloca). INVALID_ARGUMENT: they share no memory; says why.
// Any thread.
Result<halyard_driver_memory_t> memory_on(Device& user, Allocation& allocation);

inline bool is_foreign(const Device& user, const Buffer& buffer) {
  return &buffer.device().library() != &user.library();
}

// A handle will be asked for later, by work that is held until there are bytes: they must stay until the
// allocation goes. Whether there will be one: not after end_sharing().
bool expect_sharing(Allocation& allocation);

// The allocation will get no more handles: FAILED_PRECONDITION from now on. Whether it has none, and
// none is expected; otherwise its bytes must stay until it goes.
bool end_sharing(Allocation& allocation);

}  // namespace halyard::hal
