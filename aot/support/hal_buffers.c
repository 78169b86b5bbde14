/* The device of a program, which runs work when it is submitted, in this thread, with kernels that are
 * functions of the program; its memory, buffers and views, which are in the arena. Arguments are borrowed,
 * results are owned by the caller. */
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

/*@@ hal_device */
typedef struct hal_device {
  vm_object object;
  void* allocator; /* made when it is first needed */
} hal_device;

/*@@ hal_plain */
/* The one object of its kind, made when it is first needed. */
static int hal_plain(vm_state* s, void** kept, const vm_type* type, size_t bytes, vm_ref* out) {
  if (*kept == NULL) *kept = vm_create(s, type, bytes);
  if (*kept == NULL) return vm_no_room(s, bytes);
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
  if (range->length != 0) vm_repeat(range->data, (size_t)(range->length / width), pattern, width);
}

/*@@ hal_devices_count */
static int hal_devices_count(vm_state* s, uint32_t* count) {
  *count = (uint32_t)(sizeof s->devices / sizeof s->devices[0]);
  return 0;
}

/*@@ hal_devices_get */
/* Devices differ as objects alone: work of all runs in one order. */
static int hal_devices_get(vm_state* s, uint32_t index, vm_ref* out) {
  return index < sizeof s->devices / sizeof s->devices[0]
             ? hal_plain(s, &s->devices[index], &hal_device_type, sizeof(hal_device), out)
             : 0;
}

/*@@ hal_device_allocator */
static int hal_device_allocator(vm_state* s, vm_ref device, vm_ref* out) {
  const int status = hal_check(s, device, &hal_device_type);
  return status != 0 ? status
                     : hal_plain(s, &((hal_device*)(void*)device)->allocator, &hal_allocator_type,
                                 sizeof(vm_object), out);
}

/*@@ hal_allocator_select */
/* The first candidate; a candidate is a device and an affinity. */
static int hal_allocator_select(vm_state* s, uint32_t type, uint32_t usage, uint64_t flags, uint32_t count,
                                const vm_item* candidates, vm_ref* device, uint64_t* affinity) {
  (void)type;
  (void)usage;
  (void)flags;
  if (count == 0) return vm_fail(s, 3, "allocator.select has no candidates; expected one or more devices");
  const int status = hal_check(s, candidates[0].r, &hal_device_type);
  if (status != 0) return status;
  *device = vm_share(candidates[0].r);
  *affinity = candidates[1].l;
  return 0;
}

/*@@ hal_text_is */
static int hal_text_is(vm_ref text, const char* expected) {
  const vm_buffer* const buffer = vm_buffer_of(text);
  return buffer->length == strlen(expected) && memcmp(buffer->data, expected, (size_t)buffer->length) == 0;
}

/*@@ hal_is_format */
/* Whether the device runs executables of a format. */
static int hal_is_format(vm_ref format) {
#ifdef VM_STATIC_KERNELS
  if (hal_text_is(format, "static")) return 1;
#endif
  return hal_text_is(format, "vmvx-bytecode-fb");
}

/*@@ hal_matches */
/* As halyard/wildcards.hpp: '*' stands for any characters, '?' for one, and a pattern with more than 16 of
 * them matches nothing. If a character does not match, the last '*' takes one more. */
static int hal_matches(const unsigned char* pattern, uint64_t length, const char* name) {
  uint64_t at = 0;
  uint64_t after_star = UINT64_MAX;
  const char* taken = name;
  uint32_t wildcards = 0;
  for (uint64_t i = 0; i < length; ++i) wildcards += pattern[i] == '*' || pattern[i] == '?';
  if (wildcards > 16) return 0;
  while (*name != '\0') {
    if (at < length && pattern[at] == '*') {
      after_star = ++at;
      taken = name;
    } else if (at < length && (pattern[at] == '?' || pattern[at] == (unsigned char)*name)) {
      ++at;
      ++name;
    } else if (after_star != UINT64_MAX) {
      at = after_star;
      name = ++taken;
    } else {
      return 0;
    }
  }
  while (at < length && pattern[at] == '*') ++at;
  return at == length;
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
    *value = (uint64_t)hal_is_format(key);
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

/*@@ hal_buffer_view_trace */
/* Nobody receives traces. */
static int hal_buffer_view_trace(vm_state* s, vm_ref key, uint32_t count, const vm_item* views) {
  (void)s;
  (void)key;
  (void)count;
  (void)views;
  return 0;
}
