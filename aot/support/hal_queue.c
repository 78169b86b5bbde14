/* Fences, and work that is not a kernel. Work cannot wait: a fence that work waits for must have been
 * reached. */
#include "hal_buffers.c"

/*@@ hal_fence */
/* A point that is reached once, or a join of several. */
typedef struct hal_fence {
  vm_object object;
  int is_reached;
  int status;          /* of the failure; 0: none */
  uint32_t part_count; /* of a join: its points */
  vm_ref* parts;
} hal_fence;

/*@@ hal_fence_of */
static inline hal_fence* hal_fence_of(vm_ref object) { return (hal_fence*)(void*)object; }

/*@@ hal_fence_type */
static void hal_fence_destroy(vm_state* s, vm_ref object) {
  for (uint32_t i = 0; i < hal_fence_of(object)->part_count; ++i)
    vm_release(s, hal_fence_of(object)->parts[i]);
  vm_free(s, hal_fence_of(object)->parts);
}

static const vm_type hal_fence_type = {"hal.fence", hal_fence_destroy};

/*@@ hal_is_fence */
static inline int hal_is_fence(vm_ref object) { return object != NULL && object->type == &hal_fence_type; }

/*@@ hal_make_fence */
static int hal_make_fence(vm_state* s, vm_ref* out) {
  *out = vm_create(s, &hal_fence_type, sizeof(hal_fence));
  return *out != NULL ? 0 : vm_no_room(s, sizeof(hal_fence));
}

/*@@ hal_fence_create */
static int hal_fence_create(vm_state* s, vm_ref device, uint64_t flags, vm_ref* out) {
  (void)flags;
  const int status = hal_check(s, device, &hal_device_type);
  return status != 0 ? status : hal_make_fence(s, out);
}

/*@@ hal_fence_create_5 */
static int hal_fence_create_5(vm_state* s, vm_ref device, uint32_t flags, vm_ref* out) {
  return hal_fence_create(s, device, flags, out);
}

/*@@ hal_fence_state */
/* 0: reached; 17: not yet; else the status of the first failure. Anything that is not a fence counts as
 * reached. */
static int hal_fence_state(vm_ref object) {
  if (!hal_is_fence(object)) return 0;
  const hal_fence* const fence = hal_fence_of(object);
  if (fence->part_count == 0) return fence->status != 0 ? fence->status : fence->is_reached ? 0 : 17;
  int state = 0;
  for (uint32_t i = 0; i < fence->part_count; ++i) {
    const int part = hal_fence_state(fence->parts[i]);
    if (part != 0 && part != 17) return part;
    if (part == 17) state = 17;
  }
  return state;
}

/*@@ hal_wait */
static int hal_wait(vm_state* s, vm_ref fence) {
  const int state = hal_fence_state(fence);
  if (state == 0) return 0;
  if (state != 17) return vm_fail(s, state, "the fence has failed");
  return vm_fail(
      s, 12,
      "work waits for a fence that nothing has signaled; without a runtime, work runs when it is submitted");
}

/*@@ hal_signal */
/* Ends work: its fence is reached, or fails. The first failure stays. Returns the status. */
static int hal_signal(vm_ref object, int status) {
  if (!hal_is_fence(object)) return status;
  hal_fence* const fence = hal_fence_of(object);
  for (uint32_t i = 0; i < fence->part_count; ++i) (void)hal_signal(fence->parts[i], status);
  if (fence->part_count == 0 && fence->status == 0) {
    if (status == 0)
      fence->is_reached = 1;
    else
      fence->status = status;
  }
  return status;
}

/*@@ hal_fence_join */
/* Null if there is nothing to wait for. */
static int hal_fence_join(vm_state* s, uint64_t flags, uint32_t count, const vm_item* fences, vm_ref* out) {
  (void)flags;
  uint32_t parts = 0;
  for (uint32_t i = 0; i < count; ++i) {
    if (fences[i].r == NULL) continue;
    const int status = hal_check(s, fences[i].r, &hal_fence_type);
    if (status != 0) return status;
    ++parts;
  }
  if (parts == 0) return 0;
  vm_ref made = NULL;
  int status = hal_make_fence(s, &made);
  if (status != 0) return status;
  hal_fence_of(made)->parts = (vm_ref*)vm_allocate(s, parts * sizeof(vm_ref));
  if (hal_fence_of(made)->parts == NULL) {
    vm_release(s, made);
    return vm_no_room(s, parts * sizeof(vm_ref));
  }
  for (uint32_t i = 0; i < count; ++i)
    if (fences[i].r != NULL)
      hal_fence_of(made)->parts[hal_fence_of(made)->part_count++] = vm_share(fences[i].r);
  *out = made;
  return 0;
}

/*@@ hal_fence_join_5 */
static int hal_fence_join_5(vm_state* s, uint32_t count, const vm_item* fences, vm_ref* out) {
  return hal_fence_join(s, 0, count, fences, out);
}

/*@@ hal_fence_query */
static int hal_fence_query(vm_state* s, vm_ref fence, uint32_t* status) {
  const int wrong = hal_check(s, fence, &hal_fence_type);
  if (wrong == 0) *status = (uint32_t)hal_fence_state(fence);
  return wrong;
}

/*@@ hal_fence_signal */
static int hal_fence_signal(vm_state* s, vm_ref fence) {
  const int status = hal_check(s, fence, &hal_fence_type);
  if (status != 0) return status;
  if (hal_fence_state(fence) == 0) return vm_fail(s, 3, "the fence was signaled before");
  return hal_signal(fence, 0);
}

/*@@ hal_fence_fail */
static int hal_fence_fail(vm_state* s, vm_ref fence, uint32_t code) {
  const int status = hal_check(s, fence, &hal_fence_type);
  code &= 31;
  if (status == 0) (void)hal_signal(fence, code == 0 || code == 17 || code > 18 ? 2 : (int)code);
  return status;
}

/*@@ hal_fence_await */
#define HAL_MAX_AWAITED 32
static int hal_fence_await(vm_state* s, uint32_t timeout, uint64_t flags, uint32_t count,
                           const vm_item* fences, uint32_t* result) {
  (void)flags;
  int state = 0;
  if (count > HAL_MAX_AWAITED)
    return vm_fail_with(s, 11, "$ fences exceed the limit of $", count, HAL_MAX_AWAITED, 0);
  for (uint32_t i = 0; i < count; ++i) {
    const int status = fences[i].r == NULL ? 0 : hal_check(s, fences[i].r, &hal_fence_type);
    if (status != 0) return status;
    const int each = hal_fence_state(fences[i].r);
    if (each != 0 && each != 17) return vm_fail(s, each, "the fence has failed");
    if (each == 17) state = 17;
  }
  *result = state == 0 ? 0 : 4;
  /* Nothing else runs that could signal the fences. */
  if (state != 0 && timeout == UINT32_MAX)
    return vm_fail(s, 12, "the program waits without a limit for a fence that nothing can signal");
  return 0;
}

/*@@ hal_fence_await_5 */
static int hal_fence_await_5(vm_state* s, uint32_t timeout, uint32_t count, const vm_item* fences,
                             uint32_t* result) {
  return hal_fence_await(s, timeout, 0, count, fences, result);
}

/*@@ hal_begin */
/* The checks before work of a queue; a failed wait fails the signal. */
static int hal_begin(vm_state* s, vm_ref device, vm_ref wait, vm_ref signal) {
  const int status = hal_check(s, device, &hal_device_type);
  return status != 0 ? status : hal_wait(s, wait) != 0 ? hal_signal(signal, hal_wait(s, wait)) : 0;
}

/*@@ hal_queue_alloca */
static int hal_queue_alloca(vm_state* s, vm_ref device, uint64_t affinity, vm_ref wait, vm_ref signal,
                            uint64_t pool, uint32_t type, uint32_t usage, uint64_t length, uint64_t flags,
                            vm_ref* out) {
  (void)affinity;
  (void)flags;
  if (pool != 0) return vm_fail_with(s, 12, "there is no pool $; expected 0", pool, 0, 0);
  int status = hal_begin(s, device, wait, signal);
  if (status != 0) return status;
  status = hal_allocate(s, length, type, usage, out);
  return hal_signal(signal, status);
}

/*@@ hal_queue_alloca_5 */
static int hal_queue_alloca_5(vm_state* s, vm_ref device, uint64_t affinity, vm_ref wait, vm_ref signal,
                              uint32_t pool, uint32_t type, uint32_t usage, uint64_t length, vm_ref* out) {
  return hal_queue_alloca(s, device, affinity, wait, signal, pool, type, usage, length, 0, out);
}

/*@@ hal_queue_dealloca */
/* The memory is free when the last reference to the buffer is released: programs use buffers after this. */
static int hal_queue_dealloca(vm_state* s, vm_ref device, uint64_t affinity, vm_ref wait, vm_ref signal,
                              vm_ref buffer, uint64_t flags) {
  (void)affinity;
  (void)flags;
  int status = hal_begin(s, device, wait, signal);
  if (status != 0) return status;
  status = hal_check(s, buffer, &hal_buffer_type);
  return hal_signal(signal, status);
}

/*@@ hal_queue_dealloca_5 */
static int hal_queue_dealloca_5(vm_state* s, vm_ref device, uint64_t affinity, vm_ref wait, vm_ref signal,
                                vm_ref buffer) {
  return hal_queue_dealloca(s, device, affinity, wait, signal, buffer, 0);
}

/*@@ hal_queue_fill */
static int hal_queue_fill(vm_state* s, vm_ref device, uint64_t affinity, vm_ref wait, vm_ref signal,
                          vm_ref target, uint64_t offset, uint64_t length, uint64_t pattern, uint32_t width,
                          uint64_t flags) {
  (void)affinity;
  (void)flags;
  hal_range range = {NULL, 0, 0};
  int status = hal_begin(s, device, wait, signal);
  if (status != 0) return status;
  status = hal_writable_range_of(s, target, offset, length, &range);
  if (status == 0) status = hal_check_fill(s, offset, range.length, width);
  if (status == 0) hal_fill(&range, pattern, width);
  return hal_signal(signal, status);
}

/*@@ hal_queue_copy */
static int hal_queue_copy(vm_state* s, vm_ref device, uint64_t affinity, vm_ref wait, vm_ref signal,
                          vm_ref source, uint64_t source_offset, vm_ref target, uint64_t target_offset,
                          uint64_t length, uint64_t flags) {
  (void)affinity;
  (void)flags;
  hal_range from = {NULL, 0, 0};
  hal_range to = {NULL, 0, 0};
  int status = hal_begin(s, device, wait, signal);
  if (status != 0) return status;
  status = hal_range_of(s, source, source_offset, length, &from);
  if (status == 0) status = hal_writable_range_of(s, target, target_offset, from.length, &to);
  if (status == 0 && to.length != 0) memmove(to.data, from.data, (size_t)to.length);
  return hal_signal(signal, status);
}

/*@@ hal_queue_update */
static int hal_queue_update(vm_state* s, vm_ref device, uint64_t affinity, vm_ref wait, vm_ref signal,
                            vm_ref source, uint64_t source_offset, vm_ref target, uint64_t target_offset,
                            uint64_t length, uint64_t flags) {
  (void)affinity;
  (void)flags;
  hal_range to = {NULL, 0, 0};
  int status = hal_begin(s, device, wait, signal);
  if (status != 0) return status;
  status = hal_check(s, source, &vm_buffer_type);
  if (status == 0) status = vm_range(s, vm_buffer_of(source), source_offset, length, 1);
  if (status == 0) status = hal_writable_range_of(s, target, target_offset, length, &to);
  if (status == 0 && to.length != 0)
    memmove(to.data, vm_buffer_of(source)->data + source_offset, (size_t)to.length);
  return hal_signal(signal, status);
}

/*@@ hal_file */
typedef struct hal_file {
  vm_object object;
  vm_ref bytes;
  uint64_t offset;
  uint64_t length;
} hal_file;

/*@@ hal_file_type */
static void hal_file_destroy(vm_state* s, vm_ref object) { vm_release(s, ((hal_file*)(void*)object)->bytes); }

static const vm_type hal_file_type = {"hal.file", hal_file_destroy};

/*@@ hal_file_from_memory */
static int hal_file_from_memory(vm_state* s, vm_ref device, uint64_t affinity, uint32_t access, vm_ref bytes,
                                uint64_t offset, uint64_t length, uint32_t flags, vm_ref* out) {
  (void)affinity;
  (void)flags;
  int status = hal_check(s, device, &hal_device_type);
  if (status == 0) status = hal_check(s, bytes, &vm_buffer_type);
  if (status == 0 && (access & ~1u) != 0)
    status = vm_fail_with(s, 7, "expected access 1 (READ) for a file over memory, found $", access, 0, 0);
  if (status == 0 && length == UINT64_MAX && offset <= vm_buffer_of(bytes)->length)
    length = vm_buffer_of(bytes)->length - offset;
  if (status == 0) status = vm_range(s, vm_buffer_of(bytes), offset, length, 1);
  if (status != 0) return status;
  const vm_ref made = vm_create(s, &hal_file_type, sizeof(hal_file));
  if (made == NULL) return vm_no_room(s, sizeof(hal_file));
  hal_file* const file = (hal_file*)(void*)made;
  file->bytes = vm_share(bytes);
  file->offset = offset;
  file->length = length;
  *out = made;
  return 0;
}

/*@@ hal_queue_read */
static int hal_queue_read(vm_state* s, vm_ref device, uint64_t affinity, vm_ref wait, vm_ref signal,
                          vm_ref source, uint64_t source_offset, vm_ref target, uint64_t target_offset,
                          uint64_t length, uint64_t flags) {
  (void)affinity;
  (void)flags;
  hal_range to = {NULL, 0, 0};
  int status = hal_begin(s, device, wait, signal);
  if (status != 0) return status;
  status = hal_check(s, source, &hal_file_type);
  if (status == 0) status = hal_writable_range_of(s, target, target_offset, length, &to);
  if (status == 0) {
    const hal_file* const file = (const hal_file*)(const void*)source;
    if (source_offset > file->length || to.length > file->length - source_offset)
      status = vm_fail_with(s, 11, "$ bytes at offset $ are not within a file of $ bytes", to.length,
                            source_offset, file->length);
    else if (to.length != 0)
      memcpy(to.data, vm_buffer_of(file->bytes)->data + (file->offset + source_offset), (size_t)to.length);
  }
  return hal_signal(signal, status);
}

/*@@ hal_queue_read_5 */
static int hal_queue_read_5(vm_state* s, vm_ref device, uint64_t affinity, vm_ref wait, vm_ref signal,
                            vm_ref source, uint64_t source_offset, vm_ref target, uint64_t target_offset,
                            uint64_t length, uint32_t flags) {
  return hal_queue_read(s, device, affinity, wait, signal, source, source_offset, target, target_offset,
                        length, flags);
}

/*@@ hal_queue_write */
/* Files are over memory, which is read-only. */
static int hal_queue_write(vm_state* s, vm_ref device, uint64_t affinity, vm_ref wait, vm_ref signal,
                           vm_ref source, uint64_t source_offset, vm_ref target, uint64_t target_offset,
                           uint64_t length, uint64_t flags) {
  (void)affinity;
  (void)wait;
  (void)signal;
  (void)source_offset;
  (void)target_offset;
  (void)length;
  (void)flags;
  int status = hal_check(s, device, &hal_device_type);
  if (status == 0) status = hal_check(s, source, &hal_buffer_type);
  if (status == 0) status = hal_check(s, target, &hal_file_type);
  return status != 0 ? status : vm_fail(s, 7, "the file was opened for reading only");
}

/*@@ hal_queue_write_5 */
static int hal_queue_write_5(vm_state* s, vm_ref device, uint64_t affinity, vm_ref wait, vm_ref signal,
                             vm_ref source, uint64_t source_offset, vm_ref target, uint64_t target_offset,
                             uint64_t length, uint32_t flags) {
  return hal_queue_write(s, device, affinity, wait, signal, source, source_offset, target, target_offset,
                         length, flags);
}

/*@@ hal_queue_barrier */
static int hal_queue_barrier(vm_state* s, vm_ref device, uint64_t affinity, vm_ref wait, vm_ref signal,
                             uint64_t flags) {
  (void)affinity;
  (void)flags;
  const int status = hal_begin(s, device, wait, signal);
  return status != 0 ? status : hal_signal(signal, 0);
}

/*@@ hal_queue_flush */
static int hal_queue_flush(vm_state* s, vm_ref device, uint64_t affinity) {
  (void)affinity;
  return hal_check(s, device, &hal_device_type);
}
