/* Fences of programs: what asynchronous functions wait for and signal. Plain C11; the functions are
 * libhalyard's.
 *
 * A fence is reached when all that it stands for is done, or has failed. It is made with
 * halyard_fence_create, or joined from others, and given to an asynchronous function as one of its last two
 * arguments. Any thread, at any time. Specified by hal-semantics.md, "Timelines".
 */
#ifndef HALYARD_FENCE_H_
#define HALYARD_FENCE_H_

#include "halyard/halyard.h"

#ifdef __cplusplus
extern "C" {
#endif

/* *reached is 1 where it is reached, else 0. The failure, with its cause, where it has failed. Does not
 * block. */
HALYARD_API halyard_status_t halyard_fence_query(halyard_object_t fence, uint32_t* reached);

/* Reached from now on. INVALID_ARGUMENT: it was already; its failure. */
HALYARD_API halyard_status_t halyard_fence_signal(halyard_object_t fence);

/* Failed from now on, with this status, which is borrowed: whatever waits for it fails with it. No effect
 * where it is reached or has failed. INVALID_ARGUMENT: a null status, which is no failure. */
HALYARD_API halyard_status_t halyard_fence_fail(halyard_object_t fence, halyard_status_t failure);

/* A fence that is reached when all of these are; nulls are reached. *out is null where there is nothing to
 * wait for. */
HALYARD_API halyard_status_t halyard_fence_join(const halyard_object_t* fences, size_t count,
                                                halyard_object_t* out);

/* Calls `reached` once, when the fence is reached (status null) or has failed (status borrowed for the call):
 * on the thread that makes it so, or before this returns. It must be quick: other work of the device may wait
 * for it; it may begin calls and use fences, but must not block. On a failure of this function it is never
 * called. The fence need not be held until then; where nothing can signal it any longer, the status is
 * ABORTED. */
typedef void (*halyard_fence_fn)(void* user, halyard_status_t status);
HALYARD_API halyard_status_t halyard_fence_on_reached(halyard_object_t fence, halyard_fence_fn reached,
                                                      void* user);

/* Blocks until all are reached or one has failed; nulls are reached. At most 32 (INVALID_ARGUMENT).
 * `timeout_ms` as in halyard_fence_wait: DEADLINE_EXCEEDED; the first failure. */
HALYARD_API halyard_status_t halyard_fences_wait(const halyard_object_t* fences, size_t count,
                                                 uint32_t timeout_ms);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* HALYARD_FENCE_H_ */
