// Sharing: how a device accesses memory of another driver's device. A driver only knows its own handles, so
// the host creates a second handle for the same bytes if both sides support host memory: the owner exports
// the address, and the user imports it. Nothing is copied. Specified by hal-semantics.md, "Objects".
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "hal/device/buffer.h"
#include "hal/device/device.h"

namespace halyard::hal {

enum class Sharing : uint8_t {
  none,         // bytes must be copied between them
  host_memory,  // the user imports the owner's host memory
  same_driver,  // the user can use the owner's handles
};

// How `user` can access memory that `owner` allocates, according to their properties. Memory that is not
// host-visible, or not aligned as `user` requires, is never shared.
Sharing sharing(const Device& owner, const Device& user);

// The handle of the allocation in `user`'s driver, created on first use. It lives as long as the allocation.
// The call counts as a use by the caller. FAILED_PRECONDITION: the bytes do not exist yet (the alloca has not
// run) or no longer (dealloca). INVALID_ARGUMENT: the devices share no memory; the message says why.
// Thread-safe.
Result<halyard_driver_memory_t> memory_on(Device& user, Allocation& allocation);

inline bool is_foreign(const Device& user, const Buffer& buffer) {
  return &buffer.device().library() != &user.library();
}

// Announces that held work will request a handle once the bytes exist. The bytes must then live as long as
// the allocation. Returns false after end_sharing().
bool expect_sharing(Allocation& allocation);

// Ends the creation of handles: FAILED_PRECONDITION from now on. Returns true if no handle exists or is
// announced, and the host does not map the bytes; otherwise the bytes must live as long as the allocation.
bool end_sharing(Allocation& allocation);

// Reverses end_sharing(), because the dealloca was refused.
void resume_sharing(Allocation& allocation) noexcept;

}  // namespace halyard::hal
