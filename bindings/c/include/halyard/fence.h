/* Fences. Asynchronous functions wait for fences and signal fences. Plain C11; link with libhalyard.
 *
 * A fence is a set of timepoints. It is reached when all its timepoints are reached; it has failed when one
 * has failed. Fences are created with halyard_fence_create or halyard_fence_join, and passed to an
 * asynchronous function as one of its last two arguments. Any thread, at any time. Specified by
 * docs/spec/hal-semantics.md, "Timelines".
 */
#ifndef HALYARD_FENCE_H_
#define HALYARD_FENCE_H_

#include "halyard/halyard.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Sets *reached to 1 if the fence is reached, else to 0. If the fence has failed, returns its failure, with
 * its cause. Does not block. */
HALYARD_API halyard_status_t halyard_fence_query(halyard_object_t fence, uint32_t* reached);

/* Signals the fence. INVALID_ARGUMENT: the fence is already reached. If the fence has failed, returns its
 * failure. */
HALYARD_API halyard_status_t halyard_fence_signal(halyard_object_t fence);

/* Fails the fence with this status, which is borrowed; everything that waits for the fence fails with it. No
 * effect if the fence is reached or has failed. INVALID_ARGUMENT: `failure` is null. */
HALYARD_API halyard_status_t halyard_fence_fail(halyard_object_t fence, halyard_status_t failure);

/* Creates a fence that is reached when all of these are reached; a null counts as reached. *out is null if
 * there is nothing to wait for. */
HALYARD_API halyard_status_t halyard_fence_join(const halyard_object_t* fences, size_t count,
                                                halyard_object_t* out);

/* Calls `reached` once, when the fence is reached (status null) or has failed (status borrowed for the call):
 * on the thread that signals or fails the fence, or before this function returns. The callback may begin
 * calls and use fences. It must be quick and must not block, because other work of the device may wait for
 * it. If this function fails, the callback is never called. The caller may release the fence earlier; if
 * nothing can signal the fence any longer, the callback gets ABORTED. */
typedef void (*halyard_fence_fn)(void* user, halyard_status_t status);
HALYARD_API halyard_status_t halyard_fence_on_reached(halyard_object_t fence, halyard_fence_fn reached,
                                                      void* user);

/* Blocks until all fences are reached or one has failed; a null counts as reached. At most 32 fences
 * (INVALID_ARGUMENT). `timeout_ms` as in halyard_fence_wait; DEADLINE_EXCEEDED: timeout. Returns the first
 * failure. */
HALYARD_API halyard_status_t halyard_fences_wait(const halyard_object_t* fences, size_t count,
                                                 uint32_t timeout_ms);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* HALYARD_FENCE_H_ */
