/* The devices of a program in one: a device that runs work when it is submitted, in this thread, with kernels
 * that are functions of the program. Buffers are in the arena. Work cannot wait: a fence that work waits for
 * must have been reached. Arguments are borrowed, results are owned by the caller. */
#include "lists.c"

/*@@ vm_item */
/* One value of a span. */
typedef union vm_item {
  uint32_t i;
  uint64_t l;
  float f;
  double d;
  vm_ref r;
} vm_item;

/*@@ hal_nothing */
static void hal_nothing(vm_state* s, vm_ref object) {
  (void)s;
  (void)object;
}

/*@@ hal_device_type */
static const vm_type hal_device_type = {"hal.device", hal_nothing};
/*@@ hal_allocator_type */
static const vm_type hal_allocator_type = {"hal.allocator", hal_nothing};

/*@@ hal_plain */
/* The one object of its type, made when it is first needed. */
static int hal_plain(vm_state* s, void** kept, const vm_type* type, vm_ref* out) {
  if (*kept == NULL) *kept = vm_create(s, type, sizeof(vm_object));
  if (*kept == NULL) return vm_no_room(s, sizeof(vm_object));
  *out = vm_share((vm_ref)*kept);
  return 0;
}

/*@@ hal_check */
static int hal_check(vm_state* s, vm_ref object, const vm_type* type) {
  if (object == NULL) return vm_fail(s, 3, "ref is null");
  return object->type == type ? 0 : vm_wrong_type(s, object, type->name);
}

/*@@ hal_memory */
typedef struct hal_memory {
  vm_object object;
  unsigned char* data; /* null: deallocated, or empty */
  uint64_t length;
  int is_writable;
  int is_import; /* its bytes are never discarded, so the host may not store to them */
  uint32_t owners;
  void* block;  /* of the arena; null: not its own memory */
  vm_ref owner; /* keeps the bytes, if they belong to an object */
} hal_memory;

/*@@ hal_memory_type */
static void hal_memory_destroy(vm_state* s, vm_ref object) {
  hal_memory* const memory = (hal_memory*)(void*)object;
  vm_free(s, memory->block);
  vm_release(s, memory->owner);
}

static const vm_type hal_memory_type = {"hal.memory", hal_memory_destroy};

/*@@ hal_buffer */
typedef struct hal_buffer {
  vm_object object;
  vm_ref memory;
  uint64_t offset;
  uint64_t length;
  uint32_t type;
  uint32_t usage;
} hal_buffer;

/*@@ hal_buffer_type */
static void hal_buffer_destroy(vm_state* s, vm_ref object) {
  vm_release(s, ((hal_buffer*)(void*)object)->memory);
}

static const vm_type hal_buffer_type = {"hal.buffer", hal_buffer_destroy};

/*@@ hal_buffer_of */
static inline hal_buffer* hal_buffer_of(vm_ref object) { return (hal_buffer*)(void*)object; }

/*@@ hal_memory_of */
static inline hal_memory* hal_memory_of(vm_ref buffer) {
  return (hal_memory*)(void*)hal_buffer_of(buffer)->memory;
}

/*@@ hal_make_buffer */
/* Takes ownership of the memory. */
static int hal_make_buffer(vm_state* s, vm_ref memory, uint64_t offset, uint64_t length, uint32_t type,
                           uint32_t usage, vm_ref* out) {
  const vm_ref made = vm_create(s, &hal_buffer_type, sizeof(hal_buffer));
  if (made == NULL) {
    vm_release(s, memory);
    return vm_no_room(s, sizeof(hal_buffer));
  }
  hal_buffer_of(made)->memory = memory;
  hal_buffer_of(made)->offset = offset;
  hal_buffer_of(made)->length = length;
  hal_buffer_of(made)->type = type;
  hal_buffer_of(made)->usage = usage;
  *out = made;
  return 0;
}

/*@@ hal_allocate */
static int hal_allocate(vm_state* s, uint64_t length, uint32_t type, uint32_t usage, vm_ref* out) {
  const vm_ref object = vm_create(s, &hal_memory_type, sizeof(hal_memory));
  if (object == NULL) return vm_no_room(s, length);
  hal_memory* const memory = (hal_memory*)(void*)object;
  if (length < SIZE_MAX - 128) memory->block = vm_allocate(s, (size_t)length + 48);
  if (memory->block == NULL) {
    vm_release(s, object);
    return vm_no_room(s, length);
  }
  memory->data = (unsigned char*)memory->block + ((64 - ((uintptr_t)memory->block & 63)) & 63);
  memory->length = length;
  memory->is_writable = 1;
  memory->owners = 1;
  return hal_make_buffer(s, object, 0, length, type == 0 ? 0x3E : type | 0x16,
                         (usage == 0 ? 0xC03 : usage) | 0x3000000, out);
}

/*@@ hal_wrap */
/* A buffer over bytes that `owner` keeps, which may be null. */
static int hal_wrap(vm_state* s, unsigned char* data, uint64_t length, int is_writable, vm_ref owner,
                    uint32_t type, uint32_t usage, vm_ref* out) {
  const vm_ref object = vm_create(s, &hal_memory_type, sizeof(hal_memory));
  if (object == NULL) return vm_no_room(s, sizeof(hal_memory));
  hal_memory* const memory = (hal_memory*)(void*)object;
  memory->data = data;
  memory->length = length;
  memory->is_writable = is_writable;
  memory->owners = 1;
  memory->owner = vm_share(owner);
  return hal_make_buffer(s, object, 0, length, type, usage, out);
}

/*@@ hal_range hal_range_of */
/* A range of bytes that is there. */
typedef struct hal_range {
  unsigned char* data;
  uint64_t length;
  int is_writable;
} hal_range;

static int hal_range_of(vm_state* s, vm_ref buffer, uint64_t offset, uint64_t length, hal_range* range) {
  const int status = hal_check(s, buffer, &hal_buffer_type);
  if (status != 0) return status;
  const hal_buffer* const from = hal_buffer_of(buffer);
  const hal_memory* const memory = hal_memory_of(buffer);
  if (length == UINT64_MAX && offset <= from->length) length = from->length - offset;
  if (offset > from->length || length > from->length - offset)
    return vm_fail_with(s, 11, "$ bytes at offset $ are not within a buffer of $ bytes", length, offset,
                        from->length);
  if (memory->data == NULL && length != 0) return vm_fail(s, 9, "the memory of the buffer is deallocated");
  range->data = memory->data != NULL ? memory->data + (from->offset + offset) : NULL;
  range->length = length;
  range->is_writable = memory->is_writable;
  return 0;
}

/*@@ hal_writable_range_of */
static int hal_writable_range_of(vm_state* s, vm_ref buffer, uint64_t offset, uint64_t length,
                                 hal_range* range) {
  const int status = hal_range_of(s, buffer, offset, length, range);
  if (status != 0 || range->is_writable) return status;
  return vm_fail(s, 7, "the buffer is constant data, which the program may not write");
}

/*@@ hal_subspan */
static int hal_subspan(vm_state* s, vm_ref buffer, uint64_t offset, uint64_t length, vm_ref* out) {
  const int status = hal_check(s, buffer, &hal_buffer_type);
  if (status != 0) return status;
  const hal_buffer* const from = hal_buffer_of(buffer);
  if (offset <= from->length && length == UINT64_MAX) length = from->length - offset;
  if (offset > from->length || length > from->length - offset)
    return vm_fail_with(s, 11, "$ bytes at offset $ are not within a buffer of $ bytes", length, offset,
                        from->length);
  if (offset == 0 && length == from->length) {
    *out = vm_share(buffer);
    return 0;
  }
  return hal_make_buffer(s, vm_share(from->memory), from->offset + offset, length, from->type, from->usage,
                         out);
}

/*@@ hal_check_fill */
static int hal_check_fill(vm_state* s, uint64_t offset, uint64_t length, uint32_t width) {
  if (width != 1 && width != 2 && width != 4)
    return vm_fail_with(s, 3, "a pattern has $ bytes; expected 1, 2 or 4", width, 0, 0);
  if (offset % width != 0 || length % width != 0)
    return vm_fail_with(s, 3, "offset $ and length $ are not multiples of the pattern's $ bytes", offset,
                        length, width);
  return 0;
}

/*@@ hal_fill */
static void hal_fill(const hal_range* range, uint64_t pattern, uint32_t width) {
  for (uint64_t at = 0; at < range->length; at += width) memcpy(range->data + at, &pattern, width);
}

/*@@ hal_devices_count */
static int hal_devices_count(vm_state* s, uint32_t* count) {
  (void)s;
  *count = 1;
  return 0;
}

/*@@ hal_devices_get */
static int hal_devices_get(vm_state* s, uint32_t index, vm_ref* out) {
  return index == 0 ? hal_plain(s, &s->device, &hal_device_type, out) : 0;
}

/*@@ hal_device_allocator */
static int hal_device_allocator(vm_state* s, vm_ref device, vm_ref* out) {
  const int status = hal_check(s, device, &hal_device_type);
  return status != 0 ? status : hal_plain(s, &s->allocator, &hal_allocator_type, out);
}

/*@@ hal_text_is */
static int hal_text_is(vm_ref text, const char* expected) {
  const vm_buffer* const buffer = vm_buffer_of(text);
  return buffer->length == strlen(expected) && memcmp(buffer->data, expected, (size_t)buffer->length) == 0;
}

/*@@ hal_matches */
/* '*' stands for any characters, '?' for one. */
static int hal_matches(const unsigned char* pattern, uint64_t length, const char* name) {
  while (length != 0 && *pattern != '*') {
    if (*name == '\0' || (*pattern != '?' && *pattern != (unsigned char)*name)) return 0;
    ++pattern;
    --length;
    ++name;
  }
  if (length == 0) return *name == '\0';
  for (;; ++name) {
    if (hal_matches(pattern + 1, length - 1, name)) return 1;
    if (*name == '\0') return 0;
  }
}

/*@@ hal_device_query_i64 */
static int hal_device_query_i64(vm_state* s, vm_ref device, vm_ref category, vm_ref key, uint32_t* ok,
                                uint64_t* value) {
  int status = hal_check(s, device, &hal_device_type);
  if (status == 0) status = hal_check(s, category, &vm_buffer_type);
  if (status == 0) status = hal_check(s, key, &vm_buffer_type);
  if (status != 0) return status;
  *ok = 1;
  if (hal_text_is(category, "hal.device.id")) {
    *value = (uint64_t)hal_matches(vm_buffer_of(key)->data, vm_buffer_of(key)->length, "local-sync");
  } else if (hal_text_is(category, "hal.executable.format")) {
    *value = (uint64_t)hal_text_is(key, "vmvx-bytecode-fb");
  } else if (hal_text_is(category, "hal.device") && hal_text_is(key, "concurrency")) {
    *value = 1;
  } else if (hal_text_is(category, "hal.dispatch") && hal_text_is(key, "concurrency")) {
    *value = 1;
  } else {
    *ok = 0;
    *value = 0;
  }
  return 0;
}

/*@@ hal_allocator_allocate */
static int hal_allocator_allocate(vm_state* s, vm_ref allocator, uint64_t affinity, uint32_t type,
                                  uint32_t usage, uint64_t length, vm_ref* out) {
  (void)affinity;
  const int status = hal_check(s, allocator, &hal_allocator_type);
  return status != 0 ? status : hal_allocate(s, length, type, usage, out);
}

/*@@ hal_allocator_import */
static int hal_allocator_import(vm_state* s, vm_ref allocator, uint32_t attempt, uint64_t affinity,
                                uint32_t type, uint32_t usage, vm_ref source, uint64_t offset,
                                uint64_t length, vm_ref* out) {
  (void)affinity;
  int status = hal_check(s, allocator, &hal_allocator_type);
  if (status == 0) status = hal_check(s, source, &vm_buffer_type);
  if (status != 0) return status;
  const vm_buffer* const from = vm_buffer_of(source);
  if (length == UINT64_MAX) length = from->length;
  if (offset > from->length || length > from->length - offset)
    return vm_fail_with(s, 3, "$ bytes at offset $ are not within a buffer of $ bytes", length, offset,
                        from->length);
  if (!from->is_writable && !(usage & 0x80000u))
    return vm_fail(s, 7, "the source is read-only, so it can be imported only for constant data");
  if (((uintptr_t)(from->data + offset) & 63) != 0) /* as other devices demand */
    return attempt != 0 ? 0 : vm_fail(s, 11, "the bytes are not aligned to 64");
  status = hal_wrap(s, from->data + offset, length, from->is_writable && !(usage & 0x80000u), source, type,
                    usage, out);
  if (status == 0) hal_memory_of(*out)->is_import = 1;
  return status;
}

/*@@ hal_assert_failed */
/* The message of the program, then that of the check. */
static int hal_assert_failed(vm_state* s, vm_ref message, int code, const char* text, uint64_t a,
                             uint64_t b) {
  const vm_buffer* const name = vm_buffer_of(message);
  const size_t length =
      vm_is_buffer(message) ? (size_t)(name->length < sizeof s->text ? name->length : sizeof s->text - 1) : 0;
  if (length != 0) memcpy(s->text, name->data, length);
  s->text[length] = '\0';
  s->names[0] = s->text;
  return vm_fail_with(s, code, text, a, b, 0);
}

/*@@ hal_buffer_assert */
static int hal_buffer_assert(vm_state* s, vm_ref buffer, vm_ref message, vm_ref allocator, uint64_t minimum,
                             uint32_t type, uint32_t usage) {
  int status = hal_check(s, buffer, &hal_buffer_type);
  if (status != 0) return status;
  const hal_buffer* const checked = hal_buffer_of(buffer);
  if (checked->length < minimum)
    return hal_assert_failed(s, message, 3, "@ buffer byte length $ less than expected minimum $",
                             checked->length, minimum);
  if ((checked->type & type) != type)
    return hal_assert_failed(s, message, 7,
                             "@ buffer memory type is not compatible; buffer has $, operation requires $",
                             checked->type, type);
  if ((checked->usage & usage) != usage)
    return hal_assert_failed(s, message, 7,
                             "@ requested usage was not specified when the buffer was allocated; buffer "
                             "allows $, operation requires $",
                             checked->usage, usage);
  return hal_check(s, allocator, &hal_allocator_type);
}

/*@@ hal_buffer_length */
static int hal_buffer_length(vm_state* s, vm_ref buffer, uint64_t* length) {
  const int status = hal_check(s, buffer, &hal_buffer_type);
  if (status == 0) *length = hal_buffer_of(buffer)->length;
  return status;
}

/*@@ hal_buffer_subspan */
static int hal_buffer_subspan(vm_state* s, vm_ref buffer, uint64_t offset, uint64_t length, vm_ref* out) {
  return hal_subspan(s, buffer, offset, length, out);
}

/*@@ hal_buffer_load */
static int hal_buffer_load(vm_state* s, vm_ref buffer, uint64_t offset, uint32_t length, uint32_t* value) {
  hal_range range = {NULL, 0, 0};
  if (length > 4) return vm_fail_with(s, 3, "load length byte count $ exceeds max", length, 0, 0);
  const int status = hal_range_of(s, buffer, offset, length, &range);
  *value = 0;
  if (status == 0 && length != 0) memcpy(value, range.data, length);
  return status;
}

/*@@ hal_buffer_store */
static int hal_buffer_store(vm_state* s, uint32_t value, vm_ref buffer, uint64_t offset, uint32_t length) {
  hal_range range = {NULL, 0, 0};
  if (length > 4) return vm_fail_with(s, 3, "store length byte count $ exceeds max", length, 0, 0);
  const int status = hal_writable_range_of(s, buffer, offset, length, &range);
  if (status == 0 && hal_memory_of(buffer)->is_import)
    return vm_fail(s, 7, "the buffer is imported, and its bytes may not be discarded");
  if (status == 0 && length != 0) memcpy(range.data, &value, length);
  return status;
}

/*@@ hal_buffer_preserve */
static int hal_buffer_preserve(vm_state* s, vm_ref buffer) {
  const int status = hal_check(s, buffer, &hal_buffer_type);
  if (status == 0) ++hal_memory_of(buffer)->owners;
  return status;
}

/*@@ hal_buffer_discard */
static int hal_buffer_discard(vm_state* s, vm_ref buffer, uint32_t* was_last) {
  const int status = hal_check(s, buffer, &hal_buffer_type);
  if (status == 0) *was_last = --hal_memory_of(buffer)->owners == 0;
  return status;
}

/*@@ hal_buffer_is_terminal */
static int hal_buffer_is_terminal(vm_state* s, vm_ref buffer, uint32_t* is_terminal) {
  const int status = hal_check(s, buffer, &hal_buffer_type);
  if (status == 0) *is_terminal = hal_memory_of(buffer)->owners == 1;
  return status;
}

/*@@ hal_view */
typedef struct hal_view {
  vm_object object;
  vm_ref buffer;
  uint32_t element_type;
  uint32_t encoding;
  uint32_t rank;
  uint64_t shape[VM_MAX_RANK];
} hal_view;

/*@@ hal_view_type */
static void hal_view_destroy(vm_state* s, vm_ref object) {
  vm_release(s, ((hal_view*)(void*)object)->buffer);
}

static const vm_type hal_view_type = {"hal.buffer_view", hal_view_destroy};

/*@@ hal_view_of */
static inline hal_view* hal_view_of(vm_ref object) { return (hal_view*)(void*)object; }

/*@@ hal_buffer_view_create */
static int hal_buffer_view_create(vm_state* s, vm_ref buffer, uint64_t offset, uint64_t length,
                                  uint32_t element_type, uint32_t encoding, uint32_t rank,
                                  const vm_item* shape, vm_ref* out) {
  vm_ref range = NULL;
  if (rank > VM_MAX_RANK)
    return vm_fail_with(s, 11, "a view of $ dimensions exceeds the limit of $", rank, VM_MAX_RANK, 0);
  const int status = hal_subspan(s, buffer, offset, length, &range);
  if (status != 0) return status;
  const vm_ref made = vm_create(s, &hal_view_type, sizeof(hal_view));
  if (made == NULL) {
    vm_release(s, range);
    return vm_no_room(s, sizeof(hal_view));
  }
  hal_view_of(made)->buffer = range;
  hal_view_of(made)->element_type = element_type;
  hal_view_of(made)->encoding = encoding;
  hal_view_of(made)->rank = rank;
  for (uint32_t i = 0; i < rank; ++i) hal_view_of(made)->shape[i] = shape[i].l;
  *out = made;
  return 0;
}

/*@@ hal_is_integer */
static int hal_is_integer(uint32_t element_type) { return element_type >> 28 == 1; }

/*@@ hal_buffer_view_assert */
static int hal_buffer_view_assert(vm_state* s, vm_ref object, vm_ref message, uint32_t element_type,
                                  uint32_t encoding, uint32_t rank, const vm_item* shape) {
  const int status = hal_check(s, object, &hal_view_type);
  if (status != 0) return status;
  const hal_view* const view = hal_view_of(object);
  if (view->encoding != 0 && view->encoding != encoding)
    return hal_assert_failed(s, message, 3, "@ encoding mismatch; expected $ but have $", encoding,
                             view->encoding);
  const int fits = view->element_type >> 24 == 0 || view->element_type == element_type ||
                   (hal_is_integer(view->element_type) && hal_is_integer(element_type) &&
                    (view->element_type & 0xFF) == (element_type & 0xFF));
  if (!fits)
    return hal_assert_failed(s, message, 3, "@ element type mismatch; expected $ but have $", element_type,
                             view->element_type);
  if (view->rank != rank)
    return hal_assert_failed(s, message, 3, "@ shape rank mismatch; expected $ but have $", rank, view->rank);
  for (uint32_t i = 0; i < rank; ++i)
    if (view->shape[i] != shape[i].l)
      return hal_assert_failed(s, message, 3, "@ shape dimension mismatch; expected $ but have $", shape[i].l,
                               view->shape[i]);
  return 0;
}

/*@@ hal_buffer_view_buffer */
static int hal_buffer_view_buffer(vm_state* s, vm_ref view, vm_ref* out) {
  const int status = hal_check(s, view, &hal_view_type);
  if (status == 0) *out = vm_share(hal_view_of(view)->buffer);
  return status;
}

/*@@ hal_buffer_view_element_type */
static int hal_buffer_view_element_type(vm_state* s, vm_ref view, uint32_t* type) {
  const int status = hal_check(s, view, &hal_view_type);
  if (status == 0) *type = hal_view_of(view)->element_type;
  return status;
}

/*@@ hal_buffer_view_encoding_type */
static int hal_buffer_view_encoding_type(vm_state* s, vm_ref view, uint32_t* encoding) {
  const int status = hal_check(s, view, &hal_view_type);
  if (status == 0) *encoding = hal_view_of(view)->encoding;
  return status;
}

/*@@ hal_buffer_view_rank */
static int hal_buffer_view_rank(vm_state* s, vm_ref view, uint32_t* rank) {
  const int status = hal_check(s, view, &hal_view_type);
  if (status == 0) *rank = hal_view_of(view)->rank;
  return status;
}

/*@@ hal_buffer_view_dim */
static int hal_buffer_view_dim(vm_state* s, vm_ref view, uint32_t index, uint64_t* extent) {
  const int status = hal_check(s, view, &hal_view_type);
  if (status == 0) *extent = index < hal_view_of(view)->rank ? hal_view_of(view)->shape[index] : 0;
  return status;
}

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
  (void)access;
  (void)flags;
  int status = hal_check(s, device, &hal_device_type);
  if (status == 0) status = hal_check(s, bytes, &vm_buffer_type);
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

/*@@ hal_kernel hal_code */
typedef int (*hal_kernel_function)(vm_state* s, vm_ref local, vm_ref constants, vm_ref bindings, uint32_t x,
                                   uint32_t y, uint32_t z, uint32_t size_x, uint32_t size_y, uint32_t size_z,
                                   uint32_t count_x, uint32_t count_y, uint32_t count_z);
typedef struct hal_kernel {
  const char* name;
  hal_kernel_function run;
  uint32_t bindings;
  uint32_t constants;
  uint32_t local_memory; /* bytes */
} hal_kernel;

/* The kernels of an executable, whose bytes in the module were the constant `constant`. */
typedef struct hal_code {
  uint32_t constant;
  uint32_t count;
  const hal_kernel* kernels;
} hal_code;

/*@@ hal_find_code */
static const hal_code* hal_find_code(uint32_t constant);

/*@@ hal_executable */
typedef struct hal_executable {
  vm_object object;
  const hal_code* code;
} hal_executable;

/*@@ hal_executable_type */
static const vm_type hal_executable_type = {"hal.executable", hal_nothing};

/*@@ hal_code_of */
static inline const hal_code* hal_code_of(vm_ref executable) {
  return ((hal_executable*)(void*)executable)->code;
}

/*@@ hal_executable_create */
static int hal_executable_create(vm_state* s, vm_ref device, uint64_t affinity, vm_ref format, vm_ref data,
                                 vm_ref constants, vm_ref* out) {
  (void)affinity;
  const hal_code* code = NULL;
  int status = hal_check(s, device, &hal_device_type);
  if (status == 0) status = hal_check(s, format, &vm_buffer_type);
  if (status == 0) status = hal_check(s, data, &vm_buffer_type);
  if (status != 0) return status;
  for (uint32_t i = 0; i < sizeof s->constants / sizeof s->constants[0] && code == NULL; ++i)
    if (s->constants[i] == data) code = hal_find_code(i);
  if (!hal_text_is(format, "vmvx-bytecode-fb")) return vm_fail(s, 5, "the device has no code of this format");
  if (code == NULL)
    return vm_fail(s, 3, "the executable is not one that vm-cc found among the module's constants");
  if (constants != NULL && vm_is_buffer(constants) && vm_buffer_of(constants)->length != 0)
    return vm_fail(s, 3, "the executable takes no constants");
  const vm_ref made = vm_create(s, &hal_executable_type, sizeof(hal_executable));
  if (made == NULL) return vm_no_room(s, sizeof(hal_executable));
  ((hal_executable*)(void*)made)->code = code;
  *out = made;
  return 0;
}

/*@@ hal_executable_create_5 */
static int hal_executable_create_5(vm_state* s, vm_ref device, vm_ref format, vm_ref data, vm_ref constants,
                                   vm_ref* out) {
  return hal_executable_create(s, device, 0, format, data, constants, out);
}

/*@@ hal_executable_lookup_function */
static int hal_executable_lookup_function(vm_state* s, vm_ref executable, vm_ref name, uint64_t* id) {
  int status = hal_check(s, executable, &hal_executable_type);
  if (status == 0) status = hal_check(s, name, &vm_buffer_type);
  if (status != 0) return status;
  const hal_code* const code = hal_code_of(executable);
  for (uint32_t i = 0; i < code->count; ++i) {
    if (!hal_text_is(name, code->kernels[i].name)) continue;
    *id = i;
    return 0;
  }
  return vm_fail(s, 5, "the executable has no function of this name");
}

/*@@ hal_flush_begin hal_flush_end */
/* While a kernel runs, small numbers count as zero, as on other devices; on processors without a case here
 * they do not. */
#if defined(__SSE2__)
static inline uint32_t hal_flush_begin(void) {
  uint32_t before;
  __asm__ volatile("stmxcsr %0" : "=m"(before));
  const uint32_t flushes = before | 0x8040u;
  __asm__ volatile("ldmxcsr %0" : : "m"(flushes));
  return before;
}

static inline void hal_flush_end(uint32_t before) { __asm__ volatile("ldmxcsr %0" : : "m"(before)); }
#elif defined(__aarch64__)
static inline uint64_t hal_flush_begin(void) {
  uint64_t before;
  __asm__ volatile("mrs %0, fpcr" : "=r"(before));
  __asm__ volatile("msr fpcr, %0" : : "r"(before | 0x01080000u));
  return before;
}

static inline void hal_flush_end(uint64_t before) { __asm__ volatile("msr fpcr, %0" : : "r"(before)); }
#elif defined(__arm__) && defined(__ARM_FP)
static inline uint32_t hal_flush_begin(void) {
  uint32_t before;
  __asm__ volatile("vmrs %0, fpscr" : "=r"(before));
  __asm__ volatile("vmsr fpscr, %0" : : "r"(before | 0x01000000u));
  return before;
}

static inline void hal_flush_end(uint32_t before) { __asm__ volatile("vmsr fpscr, %0" : : "r"(before)); }
#else
static inline uint32_t hal_flush_begin(void) { return 0; }

static inline void hal_flush_end(uint32_t before) { (void)before; }
#endif

/*@@ hal_launch */
/* Runs all workgroups. The buffers of the arguments are made for the dispatch. */
static int hal_fill_launch(vm_state* s, const hal_kernel* kernel, const uint32_t* constants,
                           const hal_range* bindings, vm_ref* local, vm_ref* values, vm_ref* list) {
  int status = vm_buffer_alloc(s, kernel->local_memory, 0, local);
  if (status == 0) status = vm_buffer_alloc(s, (uint64_t)kernel->constants * 4, 0, values);
  if (status == 0) status = vm_list_alloc(s, VM_NONE, &vm_buffer_type, kernel->bindings, list);
  if (status == 0) status = vm_list_resize(s, *list, kernel->bindings);
  if (status != 0) return status;
  if (kernel->constants != 0) memcpy(vm_buffer_of(*values)->data, constants, (size_t)kernel->constants * 4);
  vm_buffer_of(*values)->is_writable = 0;
  vm_buffer_of(*values)->writable = 0;
  for (uint32_t i = 0; i < kernel->bindings; ++i) {
    const vm_ref made = vm_create(s, &vm_buffer_type, sizeof(vm_buffer));
    if (made == NULL) return vm_no_room(s, sizeof(vm_buffer));
    vm_buffer_of(made)->data = bindings[i].data;
    vm_buffer_of(made)->length = bindings[i].length;
    vm_buffer_of(made)->is_writable = bindings[i].is_writable;
    vm_buffer_of(made)->writable = bindings[i].is_writable ? bindings[i].length : 0;
    vm_list_of(*list)->elements[i].ref = made;
  }
  return 0;
}

static int hal_launch(vm_state* s, const hal_kernel* kernel, const uint32_t counts[3],
                      const uint32_t* constants, const hal_range* bindings) {
  vm_ref local = NULL;
  vm_ref values = NULL;
  vm_ref list = NULL;
  int status = hal_fill_launch(s, kernel, constants, bindings, &local, &values, &list);
  for (uint32_t z = 0; z < counts[2] && status == 0; ++z)
    for (uint32_t y = 0; y < counts[1] && status == 0; ++y)
      for (uint32_t x = 0; x < counts[0] && status == 0; ++x) {
        vm_retain(local);
        vm_retain(values);
        vm_retain(list);
        const uint32_t before = (uint32_t)hal_flush_begin();
        status = kernel->run(s, local, values, list, x, y, z, 1, 1, 1, counts[0], counts[1], counts[2]);
        hal_flush_end(before);
      }
  vm_release(s, list);
  vm_release(s, values);
  vm_release(s, local);
  return status;
}

/*@@ hal_command hal_binding */
typedef struct hal_binding {
  vm_ref buffer; /* null: a slot of the table */
  uint32_t slot;
  uint64_t offset;
  uint64_t length;
  uint32_t usage;
} hal_binding;

enum { HAL_FILL, HAL_COPY, HAL_UPDATE, HAL_DISPATCH, HAL_DISPATCH_INDIRECT };

typedef struct hal_command {
  struct hal_command* next;
  uint32_t kind;
  vm_ref object; /* an executable, or the bytes of an update */
  uint32_t function;
  uint32_t counts[3];
  uint64_t pattern;
  uint32_t width; /* of the pattern */
  uint32_t constant_count;
  uint32_t binding_count;
  uint32_t* constants;
  hal_binding* bindings;
} hal_command;

typedef struct hal_command_buffer {
  vm_object object;
  hal_command* first;
  hal_command* last;
  uint32_t modes;
  uint32_t categories;
  uint32_t capacity;   /* slots */
  int64_t open_groups; /* for debuggers */
  int is_final;
} hal_command_buffer;

/*@@ hal_command_buffer_type */
static void hal_command_buffer_destroy(vm_state* s, vm_ref object) {
  hal_command* command = ((hal_command_buffer*)(void*)object)->first;
  while (command != NULL) {
    hal_command* const next = command->next;
    for (uint32_t i = 0; i < command->binding_count; ++i) vm_release(s, command->bindings[i].buffer);
    vm_release(s, command->object);
    vm_free(s, command);
    command = next;
  }
}

static const vm_type hal_command_buffer_type = {"hal.command_buffer", hal_command_buffer_destroy};

/*@@ hal_command_buffer_create */
static int hal_command_buffer_create(vm_state* s, vm_ref device, uint32_t modes, uint32_t categories,
                                     uint64_t affinity, uint32_t capacity, vm_ref* out) {
  (void)affinity;
  const int status = hal_check(s, device, &hal_device_type);
  if (status != 0) return status;
  if ((modes & 0x10) && !(modes & 1)) return vm_fail(s, 3, "inline command buffers must be one-shot");
  if ((modes & 0x10) && capacity != 0)
    return vm_fail(s, 3, "inline command buffers cannot have indirect bindings");
  const vm_ref made = vm_create(s, &hal_command_buffer_type, sizeof(hal_command_buffer));
  if (made == NULL) return vm_no_room(s, sizeof(hal_command_buffer));
  ((hal_command_buffer*)(void*)made)->modes = modes;
  ((hal_command_buffer*)(void*)made)->categories = categories;
  ((hal_command_buffer*)(void*)made)->capacity = capacity;
  *out = made;
  return 0;
}

/*@@ hal_recording */
/* The command buffer, if it is still recording. */
static int hal_recording(vm_state* s, vm_ref object, hal_command_buffer** commands) {
  const int status = hal_check(s, object, &hal_command_buffer_type);
  if (status != 0) return status;
  *commands = (hal_command_buffer*)(void*)object;
  return (*commands)->is_final ? vm_fail(s, 9, "the command buffer is not in a recording state") : 0;
}

/*@@ hal_add */
/* Adds a command with room for bindings and constants. */
static int hal_add(vm_state* s, vm_ref object, uint32_t kind, uint32_t binding_count, uint32_t constant_count,
                   hal_command** out) {
  hal_command_buffer* commands = NULL;
  const int status = hal_recording(s, object, &commands);
  if (status != 0) return status;
  const uint32_t category = kind == HAL_DISPATCH || kind == HAL_DISPATCH_INDIRECT ? 2 : 1;
  if (!(commands->categories & category) && !(commands->modes & 0x20))
    return vm_fail_with(s, 9, "the command needs category $, but the command buffer has $", category,
                        commands->categories, 0);
  const size_t bindings_at = (sizeof(hal_command) + 15) & ~(size_t)15;
  const size_t constants_at = bindings_at + binding_count * sizeof(hal_binding);
  hal_command* const command = (hal_command*)vm_allocate(s, constants_at + (size_t)constant_count * 4);
  if (command == NULL) return vm_no_room(s, constants_at);
  command->kind = kind;
  command->binding_count = binding_count;
  command->constant_count = constant_count;
  command->bindings = (hal_binding*)(void*)((unsigned char*)command + bindings_at);
  command->constants = (uint32_t*)(void*)((unsigned char*)command + constants_at);
  if (commands->last != NULL)
    commands->last->next = command;
  else
    commands->first = command;
  commands->last = command;
  *out = command;
  return 0;
}

/*@@ hal_check_usage */
static int hal_check_usage(vm_state* s, vm_ref buffer, uint32_t usage) {
  if ((hal_buffer_of(buffer)->usage & usage) == usage) return 0;
  return vm_fail_with(s, 7, "the buffer was allocated with usage $, but the command needs $",
                      hal_buffer_of(buffer)->usage, usage, 0);
}

/*@@ hal_bind */
/* Binds a buffer of this usage, or a slot. Slots are checked when the table is known. */
static int hal_bind(vm_state* s, vm_ref object, hal_binding* binding, vm_ref buffer, uint32_t slot,
                    uint64_t offset, uint64_t length, uint32_t usage) {
  const hal_command_buffer* const commands = (const hal_command_buffer*)(const void*)object;
  hal_range range = {NULL, 0, 0};
  int status = 0;
  if (!(commands->modes & 0x20)) {
    if (buffer == NULL && slot >= commands->capacity)
      status = vm_fail_with(s, 11, "slot $ is out of range of the binding capacity $", slot,
                            commands->capacity, 0);
    if (buffer != NULL) status = hal_range_of(s, buffer, offset, length, &range);
    if (buffer != NULL && status == 0) status = hal_check_usage(s, buffer, usage);
  }
  if (status != 0) return status;
  binding->buffer = vm_share(buffer);
  binding->slot = slot;
  binding->offset = offset;
  binding->length = length;
  binding->usage = usage;
  return 0;
}

/*@@ hal_command_buffer_finalize */
static int hal_command_buffer_finalize(vm_state* s, vm_ref object) {
  hal_command_buffer* commands = NULL;
  const int status = hal_recording(s, object, &commands);
  if (status != 0) return status;
  if (commands->open_groups != 0) return vm_fail(s, 9, "debug groups begin and end in different numbers");
  commands->is_final = 1;
  return 0;
}

/*@@ hal_command_buffer_execution_barrier */
/* Commands run one after another. */
static int hal_command_buffer_execution_barrier(vm_state* s, vm_ref commands, uint32_t from, uint32_t to,
                                                uint64_t flags) {
  (void)from;
  (void)to;
  (void)flags;
  hal_command_buffer* recording = NULL;
  return hal_recording(s, commands, &recording);
}

/*@@ hal_command_buffer_execution_barrier_5 */
static int hal_command_buffer_execution_barrier_5(vm_state* s, vm_ref commands, uint32_t from, uint32_t to,
                                                  uint32_t flags) {
  return hal_command_buffer_execution_barrier(s, commands, from, to, flags);
}

/*@@ hal_command_buffer_begin_debug_group */
static int hal_command_buffer_begin_debug_group(vm_state* s, vm_ref object, vm_ref label) {
  hal_command_buffer* commands = NULL;
  (void)label;
  const int status = hal_recording(s, object, &commands);
  if (status == 0) ++commands->open_groups;
  return status;
}

/*@@ hal_command_buffer_end_debug_group */
static int hal_command_buffer_end_debug_group(vm_state* s, vm_ref object) {
  hal_command_buffer* commands = NULL;
  const int status = hal_recording(s, object, &commands);
  if (status == 0) --commands->open_groups;
  return status;
}

/*@@ hal_command_buffer_advise_buffer */
static int hal_command_buffer_advise_buffer(vm_state* s, vm_ref commands, vm_ref buffer, uint64_t flags,
                                            uint64_t a, uint64_t b, uint32_t slot) {
  (void)buffer;
  (void)flags;
  (void)a;
  (void)b;
  (void)slot;
  hal_command_buffer* recording = NULL;
  return hal_recording(s, commands, &recording);
}

/*@@ hal_command_buffer_fill_buffer */
static int hal_command_buffer_fill_buffer(vm_state* s, vm_ref commands, vm_ref target, uint64_t offset,
                                          uint64_t length, uint32_t slot, uint64_t pattern, uint32_t width,
                                          uint64_t flags) {
  (void)flags;
  hal_command* command = NULL;
  if (length == 0) return hal_check(s, commands, &hal_command_buffer_type);
  int status = hal_add(s, commands, HAL_FILL, 1, 0, &command);
  if (status == 0) status = hal_check_fill(s, offset, length, width);
  if (status != 0) return status;
  command->pattern = pattern;
  command->width = width;
  return hal_bind(s, commands, &command->bindings[0], target, slot, offset, length, 2);
}

/*@@ hal_command_buffer_fill_buffer_5 */
static int hal_command_buffer_fill_buffer_5(vm_state* s, vm_ref commands, vm_ref target, uint64_t offset,
                                            uint64_t length, uint32_t slot, uint32_t pattern,
                                            uint32_t width) {
  return hal_command_buffer_fill_buffer(s, commands, target, offset, length, slot, pattern, width, 0);
}

/*@@ hal_command_buffer_update_buffer */
/* The bytes are those of the time of the call. */
static int hal_command_buffer_update_buffer(vm_state* s, vm_ref commands, vm_ref source,
                                            uint64_t source_offset, vm_ref target, uint64_t target_offset,
                                            uint64_t length, uint32_t slot, uint64_t flags) {
  (void)flags;
  hal_command* command = NULL;
  vm_ref copy = NULL;
  int status = vm_buffer_clone(s, source, source_offset, length, 0, &copy);
  if (status != 0) return status;
  status = hal_add(s, commands, HAL_UPDATE, 1, 0, &command);
  if (status != 0) {
    vm_release(s, copy);
    return status;
  }
  command->object = copy;
  return hal_bind(s, commands, &command->bindings[0], target, slot, target_offset, length, 2);
}

/*@@ hal_command_buffer_update_buffer_5 */
static int hal_command_buffer_update_buffer_5(vm_state* s, vm_ref commands, vm_ref source,
                                              uint64_t source_offset, vm_ref target, uint64_t target_offset,
                                              uint64_t length, uint32_t slot) {
  return hal_command_buffer_update_buffer(s, commands, source, source_offset, target, target_offset, length,
                                          slot, 0);
}

/*@@ hal_command_buffer_copy_buffer */
static int hal_command_buffer_copy_buffer(vm_state* s, vm_ref commands, uint32_t source_slot,
                                          uint32_t target_slot, vm_ref source, uint64_t source_offset,
                                          vm_ref target, uint64_t target_offset, uint64_t length,
                                          uint64_t flags) {
  (void)flags;
  hal_command* command = NULL;
  if (length == 0) return hal_check(s, commands, &hal_command_buffer_type);
  int status = hal_add(s, commands, HAL_COPY, 2, 0, &command);
  if (status == 0)
    status = hal_bind(s, commands, &command->bindings[0], source, source_slot, source_offset, length, 1);
  if (status == 0)
    status = hal_bind(s, commands, &command->bindings[1], target, target_slot, target_offset, length, 2);
  if (status != 0 || source == NULL || target == NULL ||
      hal_buffer_of(source)->memory != hal_buffer_of(target)->memory)
    return status;
  const uint64_t from = hal_buffer_of(source)->offset + source_offset;
  const uint64_t to = hal_buffer_of(target)->offset + target_offset;
  return from < to + length && to < from + length
             ? vm_fail(s, 3, "the source and target ranges overlap in one buffer")
             : 0;
}

/*@@ HAL_MAX_BINDINGS */
#define HAL_MAX_BINDINGS 32

/*@@ hal_record_dispatch */
static int hal_record_dispatch(vm_state* s, vm_ref commands, vm_ref executable, uint64_t function,
                               uint32_t kind, uint32_t indirect, uint32_t constant_count,
                               const vm_item* constants, uint32_t binding_count, const vm_item* bindings,
                               hal_command** out) {
  int status = hal_check(s, executable, &hal_executable_type);
  if (status != 0) return status;
  const hal_code* const code = hal_code_of(executable);
  if (function >= code->count)
    return vm_fail_with(s, 11, "there is no function $; the executable has $", function, code->count, 0);
  const hal_kernel* const kernel = &code->kernels[function];
  if (binding_count > HAL_MAX_BINDINGS)
    return vm_fail_with(s, 11, "$ bindings exceed the limit of $", binding_count, HAL_MAX_BINDINGS, 0);
  if (kernel->constants != constant_count)
    return vm_fail_with(s, 3, "the dispatch has $ constants, but the function takes $", constant_count,
                        kernel->constants, 0);
  if (kernel->bindings != binding_count)
    return vm_fail_with(s, 3, "the dispatch has $ bindings, but the function takes $", binding_count,
                        kernel->bindings, 0);
  hal_command* command = NULL;
  status = hal_add(s, commands, kind, binding_count + indirect, constant_count, &command);
  if (status != 0) return status;
  command->object = vm_share(executable);
  command->function = (uint32_t)function;
  for (uint32_t i = 0; i < constant_count; ++i) command->constants[i] = constants[i].i;
  for (uint32_t i = 0; i < binding_count; ++i) {
    const vm_item* const each = bindings + 5 * (size_t)i;
    status = hal_bind(s, commands, &command->bindings[i], each[2].r, each[1].i, each[3].l, each[4].l, 0xC00);
    if (status != 0) return status;
  }
  *out = command;
  return 0;
}

/*@@ hal_command_buffer_dispatch */
static int hal_command_buffer_dispatch(vm_state* s, vm_ref commands, vm_ref executable, uint64_t function,
                                       uint32_t x, uint32_t y, uint32_t z, uint64_t flags,
                                       uint32_t constant_count, const vm_item* constants,
                                       uint32_t binding_count, const vm_item* bindings) {
  (void)flags;
  hal_command* command = NULL;
  const int status = hal_record_dispatch(s, commands, executable, function, HAL_DISPATCH, 0, constant_count,
                                         constants, binding_count, bindings, &command);
  if (status != 0) return status;
  command->counts[0] = x;
  command->counts[1] = y;
  command->counts[2] = z;
  return 0;
}

/*@@ hal_command_buffer_dispatch_5 */
static int hal_command_buffer_dispatch_5(vm_state* s, vm_ref commands, vm_ref executable, uint32_t function,
                                         uint32_t x, uint32_t y, uint32_t z, uint64_t flags,
                                         uint32_t constant_count, const vm_item* constants,
                                         uint32_t binding_count, const vm_item* bindings) {
  return hal_command_buffer_dispatch(s, commands, executable, function, x, y, z, flags, constant_count,
                                     constants, binding_count, bindings);
}

/*@@ hal_command_buffer_dispatch_indirect */
/* The counts are read when the command runs. */
static int hal_command_buffer_dispatch_indirect(vm_state* s, vm_ref commands, vm_ref executable,
                                                uint64_t function, uint32_t slot, vm_ref counts,
                                                uint64_t offset, uint64_t flags, uint32_t constant_count,
                                                const vm_item* constants, uint32_t binding_count,
                                                const vm_item* bindings) {
  (void)flags;
  hal_command* command = NULL;
  int status = hal_record_dispatch(s, commands, executable, function, HAL_DISPATCH_INDIRECT, 1,
                                   constant_count, constants, binding_count, bindings, &command);
  if (status == 0 && offset % 4 != 0)
    status = vm_fail(s, 3, "the counts of workgroups are not at a multiple of 4 bytes");
  if (status == 0)
    status = hal_bind(s, commands, &command->bindings[binding_count], counts, slot, offset, 12, 0x100);
  return status;
}

/*@@ hal_command_buffer_dispatch_indirect_5 */
static int hal_command_buffer_dispatch_indirect_5(vm_state* s, vm_ref commands, vm_ref executable,
                                                  uint32_t function, uint32_t slot, vm_ref counts,
                                                  uint64_t offset, uint64_t flags, uint32_t constant_count,
                                                  const vm_item* constants, uint32_t binding_count,
                                                  const vm_item* bindings) {
  return hal_command_buffer_dispatch_indirect(s, commands, executable, function, slot, counts, offset, flags,
                                              constant_count, constants, binding_count, bindings);
}

/*@@ hal_resolve */
/* The bytes of a binding. An entry of the table is a buffer, an offset and a length. */
static int hal_resolve(vm_state* s, const hal_binding* binding, uint32_t entry_count, const vm_item* entries,
                       int writes, hal_range* range) {
  vm_ref buffer = binding->buffer;
  uint64_t offset = binding->offset;
  if (buffer == NULL) {
    if (binding->slot >= entry_count)
      return vm_fail_with(s, entry_count == 0 ? 3 : 11, "there is no slot $ in a binding table of $",
                          binding->slot, entry_count, 0);
    const vm_item* const entry = entries + 3 * (size_t)binding->slot;
    buffer = entry[0].r;
    hal_range slot = {NULL, 0, 0};
    int status = hal_range_of(s, buffer, entry[1].l, entry[2].l, &slot);
    if (status == 0) status = hal_check_usage(s, buffer, binding->usage);
    if (status != 0) return status;
    if (offset > slot.length || binding->length > slot.length - offset)
      return vm_fail_with(s, 11, "$ bytes at offset $ are not within a slot of $ bytes", binding->length,
                          offset, slot.length);
    offset += entry[1].l;
  }
  return writes ? hal_writable_range_of(s, buffer, offset, binding->length, range)
                : hal_range_of(s, buffer, offset, binding->length, range);
}

/*@@ hal_run_dispatch */
static int hal_run_dispatch(vm_state* s, const hal_command* command, uint32_t entry_count,
                            const vm_item* entries) {
  const hal_kernel* const kernel = &hal_code_of(command->object)->kernels[command->function];
  hal_range ranges[HAL_MAX_BINDINGS];
  uint32_t counts[3];
  memcpy(counts, command->counts, sizeof counts);
  for (uint32_t i = 0; i < kernel->bindings; ++i) {
    const int status = hal_resolve(s, &command->bindings[i], entry_count, entries, 0, &ranges[i]);
    if (status != 0) return status;
  }
  if (command->kind == HAL_DISPATCH_INDIRECT) {
    hal_range found = {NULL, 0, 0};
    const int status = hal_resolve(s, &command->bindings[kernel->bindings], entry_count, entries, 0, &found);
    if (status != 0) return status;
    memcpy(counts, found.data, sizeof counts);
  }
  return hal_launch(s, kernel, counts, command->constants, ranges);
}

/*@@ hal_run_command */
static int hal_run_command(vm_state* s, const hal_command* command, uint32_t entry_count,
                           const vm_item* entries) {
  hal_range from = {NULL, 0, 0};
  hal_range to = {NULL, 0, 0};
  int status = 0;
  switch (command->kind) {
    case HAL_FILL:
      status = hal_resolve(s, &command->bindings[0], entry_count, entries, 1, &to);
      if (status == 0) status = hal_check_fill(s, (uintptr_t)to.data, to.length, command->width);
      if (status == 0) hal_fill(&to, command->pattern, command->width);
      return status;
    case HAL_COPY:
      status = hal_resolve(s, &command->bindings[0], entry_count, entries, 0, &from);
      if (status == 0) status = hal_resolve(s, &command->bindings[1], entry_count, entries, 1, &to);
      if (status == 0 && to.length != 0) memmove(to.data, from.data, (size_t)to.length);
      return status;
    case HAL_UPDATE:
      status = hal_resolve(s, &command->bindings[0], entry_count, entries, 1, &to);
      if (status == 0 && to.length != 0)
        memcpy(to.data, vm_buffer_of(command->object)->data, (size_t)to.length);
      return status;
    default:
      return hal_run_dispatch(s, command, entry_count, entries);
  }
}

/*@@ hal_queue_execute_indirect */
static int hal_queue_execute_indirect(vm_state* s, vm_ref device, uint64_t affinity, vm_ref wait,
                                      vm_ref signal, vm_ref commands, uint64_t flags, uint32_t entry_count,
                                      const vm_item* entries) {
  (void)affinity;
  (void)flags;
  int status = hal_begin(s, device, wait, signal);
  if (status != 0) return status;
  status = hal_check(s, commands, &hal_command_buffer_type);
  if (status != 0) return hal_signal(signal, status);
  const hal_command_buffer* const recorded = (const hal_command_buffer*)(const void*)commands;
  if (!recorded->is_final) status = vm_fail(s, 9, "the command buffer is not finalized");
  if ((recorded->modes & 0x10) && hal_is_fence(wait))
    status = vm_fail(s, 3, "an inline command buffer waits for nothing, but it is executed after a fence");
  for (const hal_command* command = recorded->first; command != NULL && status == 0; command = command->next)
    status = hal_run_command(s, command, entry_count, entries);
  return hal_signal(signal, status);
}

/*@@ hal_queue_execute_indirect_5 */
static int hal_queue_execute_indirect_5(vm_state* s, vm_ref device, uint64_t affinity, vm_ref wait,
                                        vm_ref signal, vm_ref commands, uint32_t entry_count,
                                        const vm_item* entries) {
  return hal_queue_execute_indirect(s, device, affinity, wait, signal, commands, 0, entry_count, entries);
}

/*@@ hal_queue_execute */
static int hal_queue_execute(vm_state* s, vm_ref device, uint64_t affinity, vm_ref wait, vm_ref signal,
                             vm_ref commands, uint64_t flags) {
  return hal_queue_execute_indirect(s, device, affinity, wait, signal, commands, flags, 0, NULL);
}

/*@@ hal_queue_execute_list */
static int hal_queue_execute_list(vm_state* s, vm_ref device, uint64_t affinity, vm_ref wait, vm_ref signal,
                                  uint32_t count, const vm_item* list) {
  int status = hal_queue_barrier(s, device, affinity, wait, count == 0 ? signal : NULL, 0);
  for (uint32_t i = 0; i < count && status == 0; ++i)
    status = hal_queue_execute(s, device, affinity, NULL, i + 1 == count ? signal : NULL, list[i].r, 0);
  return status != 0 ? hal_signal(signal, status) : 0;
}

/*@@ hal_storage */
/* A vm.buffer over the bytes of a buffer. */
static int hal_storage(vm_state* s, vm_ref buffer, vm_ref* out) {
  hal_range range = {NULL, 0, 0};
  const int status = hal_range_of(s, buffer, 0, UINT64_MAX, &range);
  if (status != 0) return status;
  const vm_ref made = vm_create(s, &vm_buffer_type, sizeof(vm_buffer));
  if (made == NULL) return vm_no_room(s, sizeof(vm_buffer));
  vm_buffer_of(made)->data = range.data;
  vm_buffer_of(made)->length = range.length;
  vm_buffer_of(made)->writable = range.is_writable ? range.length : 0;
  vm_buffer_of(made)->is_writable = range.is_writable;
  vm_buffer_of(made)->owner = vm_share(hal_buffer_of(buffer)->memory);
  *out = made;
  return 0;
}

/*@@ hal_inline_buffer_allocate */
static int hal_inline_buffer_allocate(vm_state* s, uint32_t alignment, uint64_t length, vm_ref* buffer,
                                      vm_ref* storage) {
  if ((alignment & (alignment - 1)) != 0 || alignment > 64)
    return vm_fail_with(s, 3, "expected an alignment of at most 64 bytes, found $", alignment, 0, 0);
  int status = hal_allocate(s, length, 0, 0, buffer);
  if (status != 0) return status;
  memset(hal_memory_of(*buffer)->data, 0, (size_t)length);
  status = hal_storage(s, *buffer, storage);
  if (status != 0) vm_clear(s, buffer);
  return status;
}

/*@@ hal_inline_buffer_allocate_initialized */
static int hal_inline_buffer_allocate_initialized(vm_state* s, uint32_t alignment, vm_ref source,
                                                  uint64_t offset, uint64_t length, vm_ref* buffer,
                                                  vm_ref* storage) {
  int status = hal_check(s, source, &vm_buffer_type);
  if (status == 0) status = vm_range(s, vm_buffer_of(source), offset, length, 1);
  if (status == 0) status = hal_inline_buffer_allocate(s, alignment, length, buffer, storage);
  if (status == 0 && length != 0)
    memcpy(hal_memory_of(*buffer)->data, vm_buffer_of(source)->data + offset, (size_t)length);
  return status;
}

/*@@ hal_inline_buffer_wrap */
static int hal_inline_buffer_wrap(vm_state* s, vm_ref source, uint64_t offset, uint64_t length, vm_ref* out) {
  int status = hal_check(s, source, &vm_buffer_type);
  if (status == 0) status = vm_range(s, vm_buffer_of(source), offset, length, 1);
  if (status != 0) return status;
  const vm_buffer* const from = vm_buffer_of(source);
  return hal_wrap(s, from->data + offset, length, from->is_writable, source, 0x3E, 0x3000C03, out);
}

/*@@ hal_loader_query_support */
static int hal_loader_query_support(vm_state* s, vm_ref format, uint32_t* supported) {
  const int status = hal_check(s, format, &vm_buffer_type);
  if (status == 0) *supported = (uint32_t)hal_text_is(format, "vmvx-bytecode-fb");
  return status;
}

/*@@ hal_loader_load */
static int hal_loader_load(vm_state* s, vm_ref format, vm_ref data, vm_ref constants, vm_ref* out) {
  vm_ref device = NULL;
  int status = hal_devices_get(s, 0, &device);
  if (status == 0) status = hal_executable_create(s, device, 0, format, data, constants, out);
  vm_release(s, device);
  return status;
}

/*@@ hal_loader_dispatch */
/* The bindings are vm.buffers with an offset and a length. */
static int hal_loader_dispatch(vm_state* s, vm_ref executable, uint32_t function, uint32_t x, uint32_t y,
                               uint32_t z, uint32_t constant_count, const vm_item* constants,
                               uint32_t binding_count, const vm_item* bindings) {
  hal_range ranges[HAL_MAX_BINDINGS];
  uint32_t values[64];
  const uint32_t counts[3] = {x, y, z};
  int status = hal_check(s, executable, &hal_executable_type);
  if (status != 0) return status;
  const hal_code* const code = hal_code_of(executable);
  if (function >= code->count)
    return vm_fail_with(s, 11, "there is no function $; the executable has $", function, code->count, 0);
  const hal_kernel* const kernel = &code->kernels[function];
  if (kernel->constants != constant_count || constant_count > 64)
    return vm_fail_with(s, 3, "the dispatch has $ constants, but the function takes $", constant_count,
                        kernel->constants, 0);
  if (kernel->bindings != binding_count || binding_count > HAL_MAX_BINDINGS)
    return vm_fail_with(s, 3, "the dispatch has $ bindings, but the function takes $", binding_count,
                        kernel->bindings, 0);
  for (uint32_t i = 0; i < constant_count; ++i) values[i] = constants[i].i;
  for (uint32_t i = 0; i < binding_count; ++i) {
    const vm_item* const each = bindings + 3 * (size_t)i;
    status = hal_check(s, each[0].r, &vm_buffer_type);
    if (status == 0) status = vm_range(s, vm_buffer_of(each[0].r), each[1].l, each[2].l, 1);
    if (status != 0) return status;
    ranges[i].data = vm_buffer_of(each[0].r)->data + each[1].l;
    ranges[i].length = each[2].l;
    ranges[i].is_writable = vm_buffer_of(each[0].r)->is_writable;
  }
  return hal_launch(s, kernel, counts, values, ranges);
}

/*@@ hal_tensor_view */
/* A view over the caller's bytes. */
static int hal_tensor_view(vm_state* s, const vm_tensor* tensor, vm_ref* out) {
  vm_item shape[VM_MAX_RANK];
  vm_ref buffer = NULL;
  if (tensor == NULL) return 0;
  if (tensor->rank > VM_MAX_RANK)
    return vm_fail_with(s, 11, "a view of $ dimensions exceeds the limit of $", tensor->rank, VM_MAX_RANK, 0);
  for (uint32_t i = 0; i < tensor->rank; ++i) shape[i].l = tensor->shape[i];
  int status = hal_wrap(s, (unsigned char*)tensor->data, tensor->bytes, 1, NULL, 0x3E, 0x3000C03, &buffer);
  if (status == 0)
    status = hal_buffer_view_create(s, buffer, 0, tensor->bytes, tensor->element_type, 1, tensor->rank, shape,
                                    out);
  vm_release(s, buffer);
  return status;
}

/*@@ hal_view_tensor */
/* The bytes of a result, which the state keeps until the next call. Takes ownership of the view. */
static int hal_view_tensor(vm_state* s, vm_ref view, void** kept, vm_tensor* tensor) {
  hal_range range = {NULL, 0, 0};
  memset(tensor, 0, sizeof *tensor);
  *kept = view;
  if (view == NULL) return 0;
  int status = hal_check(s, view, &hal_view_type);
  if (status == 0) status = hal_range_of(s, hal_view_of(view)->buffer, 0, UINT64_MAX, &range);
  if (status != 0) return status;
  tensor->data = range.data;
  tensor->bytes = (size_t)range.length;
  tensor->element_type = hal_view_of(view)->element_type;
  tensor->rank = hal_view_of(view)->rank;
  for (uint32_t i = 0; i < tensor->rank; ++i) tensor->shape[i] = (size_t)hal_view_of(view)->shape[i];
  return 0;
}

/*@@ hal_drop_results */
static void hal_drop_results(vm_state* s) {
  for (size_t i = 0; i < sizeof s->results / sizeof s->results[0]; ++i) {
    vm_release(s, (vm_ref)s->results[i]);
    s->results[i] = NULL;
  }
}

/*@@ hal_end_of */
/* The status of the work that signals the fence at the end of a function. */
static int hal_end_of(vm_state* s, vm_ref fence) {
  const int status = hal_wait(s, fence);
  vm_release(s, fence);
  return status;
}

/*@@ hal_command_buffer_copy_buffer_5 */
static int hal_command_buffer_copy_buffer_5(vm_state* s, vm_ref commands, uint32_t source_slot,
                                            uint32_t target_slot, vm_ref source, uint64_t source_offset,
                                            vm_ref target, uint64_t target_offset, uint64_t length) {
  return hal_command_buffer_copy_buffer(s, commands, source_slot, target_slot, source, source_offset, target,
                                        target_offset, length, 0);
}
