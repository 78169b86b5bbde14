/* The module io_parameters, over parameters that are part of the program. */
#include "check.c"

/*@@ io_range io_range_of io_find io_is_name */
/* A range of a parameter, for one row of the tables of a call. */
typedef struct io_range {
  vm_parameter parameter;
  uint64_t from;
  uint64_t to; /* in a buffer */
  uint64_t length;
} io_range;

/* The bytes of a name; none if the ref is null. */
static int io_is_name(vm_ref name, const char* expected, uint64_t length) {
  const uint64_t found = name != NULL ? vm_buffer_of(name)->length : 0;
  return found == length && (length == 0 || memcmp(vm_buffer_of(name)->data, expected, (size_t)length) == 0);
}

/* Finds a parameter of the program or, if the caller gives parameters, of the caller. */
static int io_find(const vm_state* s, vm_ref scope, const unsigned char* key, uint32_t length,
                   vm_parameter* out) {
  int found = 0;
  for (size_t i = 0; i < sizeof vm_parameters / sizeof vm_parameters[0]; ++i) {
    const vm_parameter* const each = &vm_parameters[i];
    if (each->key_length != length || !io_is_name(scope, each->scope, each->scope_length) ||
        (length != 0 && memcmp(each->key, key, length) != 0))
      continue;
    *out = *each;
    found = 1;
  }
#ifdef VM_GIVEN_PARAMETERS
  for (size_t i = 0; i < s->parameter_count && !found; ++i) {
    const char* const own_scope = s->parameters[i].scope != NULL ? s->parameters[i].scope : "";
    const char* const own_key = s->parameters[i].key != NULL ? s->parameters[i].key : "";
    if (strlen(own_key) != length || !io_is_name(scope, own_scope, strlen(own_scope)) ||
        (length != 0 && memcmp(own_key, key, length) != 0) ||
        (s->parameters[i].data == NULL && s->parameters[i].length != 0))
      continue;
    out->data = s->parameters[i].data;
    out->length = s->parameters[i].length;
    out->pattern_length = 0;
    found = 1;
  }
#else
  (void)s;
#endif
  return found;
}

static int io_range_of(vm_state* s, vm_ref scope, vm_ref table, vm_ref keys, vm_ref spans, uint64_t row,
                       io_range* out) {
  uint32_t key[2];
  uint64_t span[3];
  memcpy(key, vm_buffer_of(table)->data + row * sizeof key, sizeof key);
  memcpy(span, vm_buffer_of(spans)->data + row * sizeof span, sizeof span);
  if (key[0] > vm_buffer_of(keys)->length || key[1] > vm_buffer_of(keys)->length - key[0])
    return vm_fail_with(s, 11, "key $ lies outside of the $ bytes of key data", row,
                        vm_buffer_of(keys)->length, 0);
  if (!io_find(s, scope, key[1] != 0 ? vm_buffer_of(keys)->data + key[0] : NULL, key[1], &out->parameter))
    return vm_fail_with(s, 5, "the program has no parameter of this scope with the key $ of a call", row, 0,
                        0);
  out->from = span[0];
  out->to = span[1];
  out->length = span[2];
  if (span[0] > out->parameter.length || span[2] > out->parameter.length - span[0])
    return vm_fail_with(s, 11, "$ bytes at offset $ are not within the $ bytes of a parameter", span[2],
                        span[0], out->parameter.length);
  return 0;
}

/*@@ io_count */
/* The rows of the tables of a call. */
static int io_count(vm_state* s, vm_ref device, vm_ref scope, vm_ref table, vm_ref keys, vm_ref spans,
                    uint64_t* count) {
  int status = hal_check(s, device, &hal_device_type);
  if (status == 0 && scope != NULL) status = hal_check(s, scope, &vm_buffer_type);
  if (status == 0) status = hal_check(s, table, &vm_buffer_type);
  if (status == 0) status = hal_check(s, keys, &vm_buffer_type);
  if (status == 0) status = hal_check(s, spans, &vm_buffer_type);
  if (status != 0) return status;
  int has_scope = 0;
  for (size_t i = 0; i < sizeof vm_parameters / sizeof vm_parameters[0]; ++i)
    has_scope |= vm_parameters[i].length != UINT64_MAX &&
                 io_is_name(scope, vm_parameters[i].scope, vm_parameters[i].scope_length);
#ifdef VM_GIVEN_PARAMETERS
  for (size_t i = 0; i < s->parameter_count; ++i) {
    const char* const own_scope = s->parameters[i].scope != NULL ? s->parameters[i].scope : "";
    has_scope |= io_is_name(scope, own_scope, strlen(own_scope));
  }
#endif
  if (!has_scope) return vm_fail(s, 5, "the program has no parameters of this scope");
  *count = vm_buffer_of(spans)->length / 24;
  if (vm_buffer_of(spans)->length % 24 != 0)
    return vm_fail_with(s, 3, "expected spans of 24 bytes each, found $ bytes in all",
                        vm_buffer_of(spans)->length, 0, 0);
  if (vm_buffer_of(table)->length / 8 < *count)
    return vm_fail_with(s, 3, "expected a key of 8 bytes for each of $ spans, found a table of $ bytes",
                        *count, vm_buffer_of(table)->length, 0);
  return 0;
}

/*@@ io_copy */
static void io_copy(const io_range* range, unsigned char* to) {
  const vm_parameter* const from = &range->parameter;
  if (from->pattern_length == 0 && range->length != 0)
    memcpy(to, from->data + range->from, (size_t)range->length);
  if (from->pattern_length != 0)
    for (uint64_t i = 0; i < range->length; ++i) to[i] = from->data[(range->from + i) % from->pattern_length];
}

/*@@ io_make */
/* A buffer with a range of a parameter: its bytes themselves, if the program will not write to them. */
static int io_make(vm_state* s, const io_range* range, uint32_t type, uint32_t usage, vm_ref* out) {
  const vm_parameter* const from = &range->parameter;
  union {
    const unsigned char* constant;
    unsigned char* data;
  } bytes = {from->data + (from->pattern_length == 0 ? range->from : 0)}; /* read-only */
  if ((usage & 0x80000u) && from->pattern_length == 0 && range->length != 0 &&
      ((uintptr_t)bytes.data & 63) == 0)
    return hal_wrap(s, bytes.data, range->length, 0, NULL, type, usage, out);
  const int status = hal_allocate(s, range->length, type, (usage == 0 ? 0xC03 : usage) | 2, out);
  if (status == 0) io_copy(range, hal_memory_of(*out)->data);
  return status;
}

/*@@ io_parameters_load */
static int io_parameters_load(vm_state* s, vm_ref device, uint64_t affinity, vm_ref wait, vm_ref signal,
                              vm_ref scope, uint64_t target_affinity, uint32_t type, uint32_t usage,
                              vm_ref table, vm_ref keys, vm_ref spans, vm_ref* out) {
  (void)affinity;
  (void)target_affinity;
  uint64_t count = 0;
  io_range range = {{NULL, 0, NULL, 0, NULL, 0, 0}, 0, 0, 0};
  vm_ref list = NULL;
  int status = io_count(s, device, scope, table, keys, spans, &count);
  for (uint64_t i = 0; i < count && status == 0; ++i) {
    status = io_range_of(s, scope, table, keys, spans, i, &range);
    if (status == 0 && range.to != 0)
      status = vm_fail_with(s, 11, "buffer offset $ given for a buffer that load allocates; expected 0",
                            range.to, 0, 0);
  }
  if (status == 0) status = hal_begin(s, device, wait, NULL);
  if (status == 0 && count > UINT32_MAX) status = vm_fail(s, 8, "a call has too many spans");
  if (status == 0) status = vm_list_alloc(s, VM_NONE, &hal_buffer_type, (uint32_t)count, &list);
  if (status == 0) status = vm_list_resize(s, list, (uint32_t)count);
  for (uint32_t i = 0; i < count && status == 0; ++i) {
    status = io_range_of(s, scope, table, keys, spans, i, &range);
    if (status == 0) status = io_make(s, &range, type, usage, &vm_list_of(list)->elements[i].ref);
  }
  if (status == 0)
    *out = list;
  else
    vm_release(s, list);
  return hal_signal(signal, status);
}

/*@@ io_parameters_gather */
/* Nothing is written before all ranges are checked. */
static int io_parameters_gather(vm_state* s, vm_ref device, uint64_t affinity, vm_ref wait, vm_ref signal,
                                vm_ref scope, vm_ref target, vm_ref table, vm_ref keys, vm_ref spans) {
  (void)affinity;
  uint64_t count = 0;
  io_range range = {{NULL, 0, NULL, 0, NULL, 0, 0}, 0, 0, 0};
  hal_range to = {NULL, 0, 0};
  int status = io_count(s, device, scope, table, keys, spans, &count);
  for (uint64_t i = 0; i < count && status == 0; ++i) {
    status = io_range_of(s, scope, table, keys, spans, i, &range);
    if (status == 0) status = hal_writable_range_of(s, target, range.to, range.length, &to);
  }
  if (status == 0) status = hal_begin(s, device, wait, NULL);
  for (uint64_t i = 0; i < count && status == 0; ++i) {
    status = io_range_of(s, scope, table, keys, spans, i, &range);
    if (status == 0) status = hal_writable_range_of(s, target, range.to, range.length, &to);
    if (status == 0) io_copy(&range, to.data);
  }
  return hal_signal(signal, status);
}

/*@@ io_parameters_scatter */
/* Parameters are read-only. */
static int io_parameters_scatter(vm_state* s, vm_ref device, uint64_t affinity, vm_ref wait, vm_ref signal,
                                 vm_ref source, vm_ref scope, vm_ref table, vm_ref keys, vm_ref spans) {
  (void)affinity;
  uint64_t count = 0;
  io_range range = {{NULL, 0, NULL, 0, NULL, 0, 0}, 0, 0, 0};
  hal_range from = {NULL, 0, 0};
  int status = io_count(s, device, scope, table, keys, spans, &count);
  for (uint64_t i = 0; i < count && status == 0; ++i) {
    status = io_range_of(s, scope, table, keys, spans, i, &range);
    if (status == 0) status = hal_range_of(s, source, range.to, range.length, &from);
    if (status == 0) status = vm_fail(s, 7, "parameters are part of the program and cannot be written");
  }
  if (status == 0) status = hal_begin(s, device, wait, NULL);
  return hal_signal(signal, status);
}
