/* Parts of the C that vm-cc --runtime=hal writes: the instructions over the services of halyard/program.h.
 * The form of the file is that of ../support/base.c; a part here replaces the part of that name there.
 * Functions return 0, VM_WAITS, or VM_FAILED after they have set s->error. */
#include "program_support.h"

/*@@ VM_COLD */
/* Inlined, their texts would be in the frames of functions that call themselves. */
#if defined(__GNUC__)
#define VM_COLD __attribute__((noinline, cold))
#else
#define VM_COLD
#endif

/*@@ vm_state vm_trace */
enum { VM_FAILED = 1, VM_WAITS = -1, VM_TRACE_LINES = 64 };

/* A call that an error has passed. */
typedef struct vm_trace {
  const char* function;
  const char* source;
  uint32_t pc;
} vm_trace;

/* One attempt at a call from outside of the module. */
typedef struct vm_state {
  halyard_module_call_t* call;
  const halyard_module_services_t* host;
  const halyard_program_services_t* ops;
  unsigned char* globals;
  halyard_object_t* refs;
  const halyard_object_t* constants;
  const volatile uint32_t* stop;
  halyard_status_t error;
  uint64_t stack; /* bytes of the registers of bytecode, of all nested calls */
  uint64_t stack_bytes;
  uintptr_t stack_end;
  int resuming;    /* functions take what they have kept, until the one that waited goes on */
  int is_unplaced; /* the error has no place yet: it belongs to the caller */
  uint32_t trace_count;
  vm_trace trace[VM_TRACE_LINES];
} vm_state;

/*@@ vm_ref */
typedef halyard_object_t vm_ref;

/*@@ vm_status */
static int vm_status(vm_state* s, halyard_status_t status) {
  if (status == NULL) return 0;
  s->error = status;
  return VM_FAILED;
}

/*@@ vm_at */
/* Adds the place of the failure. */
VM_COLD static int vm_at(vm_state* s, const char* function, uint32_t pc, const char* source) {
  char place[1024];
  snprintf(place, sizeof place, "at %s+%08X%s%s%s", function, (unsigned)pc, *source != 0 ? " (" : "", source,
           *source != 0 ? ")" : "");
  s->error = s->host->status_note(s->error, place);
  return VM_FAILED;
}

/*@@ vm_through */
/* Notes that the failure passes a call. Of a long trace, the lines in the middle are left out. */
VM_COLD static int vm_through(vm_state* s, const char* function, uint32_t pc, uint32_t return_pc,
                              const char* source) {
  if (s->is_unplaced) {
    s->is_unplaced = 0;
    return vm_at(s, function, pc, source);
  }
  const uint32_t half = VM_TRACE_LINES / 2;
  const uint32_t n = s->trace_count++;
  vm_trace* const line = &s->trace[n < half ? n : half + (n - half) % half];
  line->function = function;
  line->source = *source != 0 ? source : "-";
  line->pc = return_pc;
  return VM_FAILED;
}

/*@@ vm_begin */
static void vm_begin(vm_state* s, halyard_module_call_t* call) {
  s->call = call;
  s->host = call->services;
  s->ops = call->program->services;
  s->globals = call->program->globals;
  s->refs = call->program->global_objects;
  s->constants = call->program->constants;
  s->stop = call->stop;
  s->error = NULL;
  s->stack = 0;
  s->stack_bytes = call->program->stack_bytes;
  s->stack_end = 0;
  s->resuming = call->resumed != 0;
  s->is_unplaced = 0;
  s->trace_count = 0;
}

/*@@ vm_end */
/* The status of a call that has failed, or waits. */
VM_COLD static halyard_status_t vm_end(vm_state* s, int status) {
  if (status == VM_WAITS) {
    s->call->deferred = 1;
    return NULL;
  }
  if (s->trace_count == 0) return s->error;
  const uint32_t half = VM_TRACE_LINES / 2;
  const uint32_t count = s->trace_count;
  char text[VM_TRACE_LINES * 320];
  size_t size = 0;
  for (uint32_t i = 0; i < count; ++i) {
    const size_t left = sizeof text - size;
    if (count > VM_TRACE_LINES && i == half) {
      size += (size_t)snprintf(text + size, left, "\n     ... %u more", (unsigned)(count - VM_TRACE_LINES));
      i = count - half;
    }
    const vm_trace* const line = &s->trace[i < half ? i : half + (i - half) % half];
    const int written = snprintf(text + size, sizeof text - size, "\n[%2u] bytecode %s:%u %s",
                                 (unsigned)(count - 1 - i), line->function, (unsigned)line->pc, line->source);
    if (written < 0 || (size_t)written >= sizeof text - size) break;
    size += (size_t)written;
  }
  text[size < sizeof text ? size : sizeof text - 1] = 0;
  return s->host->status_note(s->error, text);
}

/*@@ vm_too_deep */
/* The failure is that of the call, not of the function that it calls. */
VM_COLD static int vm_too_deep(vm_state* s) {
  s->is_unplaced = 1;
  return vm_status(s, s->ops->too_deep(s->call));
}

/*@@ vm_stopped */
static int vm_stopped(vm_state* s) { return vm_status(s, s->host->call_stopped(s->call)); }

/*@@ vm_keep */
static int vm_keep(vm_state* s, uint32_t objects, size_t bytes, halyard_kept_t* kept) {
  return vm_status(s, s->host->call_keep(s->call, objects, (uint32_t)bytes, kept));
}

/*@@ vm_restore */
static int vm_restore(vm_state* s, halyard_kept_t* kept) {
  return vm_status(s, s->host->call_take(s->call, kept));
}

/*@@ vm_of_i32 */
static inline halyard_value_t vm_of_i32(uint32_t x) {
  return (halyard_value_t){.kind = HALYARD_VALUE_I32, .i32 = (int32_t)x};
}

/*@@ vm_of_i64 */
static inline halyard_value_t vm_of_i64(uint64_t x) {
  return (halyard_value_t){.kind = HALYARD_VALUE_I64, .i64 = (int64_t)x};
}

/*@@ vm_of_f32 */
static inline halyard_value_t vm_of_f32(float x) {
  return (halyard_value_t){.kind = HALYARD_VALUE_F32, .f32 = x};
}

/*@@ vm_of_f64 */
static inline halyard_value_t vm_of_f64(double x) {
  return (halyard_value_t){.kind = HALYARD_VALUE_F64, .f64 = x};
}

/*@@ vm_of_ref */
static inline halyard_value_t vm_of_ref(vm_ref x) {
  return (halyard_value_t){.kind = x != NULL ? HALYARD_VALUE_OBJECT : HALYARD_VALUE_NULL, .object = x};
}

/*@@ vm_import */
/* `flags`: HALYARD_CALL_MAY_WAIT and its like. */
static int vm_import(vm_state* s, uint32_t import, uint32_t flags, const halyard_value_t* arguments,
                     uint32_t argument_count, const uint32_t* spans, uint32_t span_count,
                     halyard_value_t* results, uint32_t result_count, const char* place) {
  halyard_import_call_t call = {.struct_size = sizeof call,
                                .import = import,
                                .flags = flags | (s->resuming ? (uint32_t)HALYARD_CALL_RESUMED : 0),
                                .argument_count = argument_count,
                                .result_count = result_count,
                                .span_count = span_count,
                                .arguments = arguments,
                                .results = results,
                                .spans = spans,
                                .place = place};
  s->resuming = 0;
  const int status = vm_status(s, s->host->import_call(s->call, &call));
  return status == 0 && call.deferred != 0 ? VM_WAITS : status;
}

/*@@ vm_is_resolved */
static inline uint32_t vm_is_resolved(vm_state* s, uint32_t import) {
  return s->host->import_is_resolved(s->call, import);
}

/*@@ vm_program_failure */
static int vm_program_failure(vm_state* s, uint32_t status, const char* message) {
  return vm_status(s, s->ops->fail(status, message));
}

/*@@ vm_division_by_zero */
static int vm_division_by_zero(vm_state* s) { return vm_status(s, s->ops->division_by_zero(s->call)); }

/*@@ vm_globals */
static inline unsigned char* vm_globals(vm_state* s) { return s->globals; }

/*@@ vm_outside_globals */
static int vm_outside_globals(vm_state* s, uint32_t offset, uint32_t size) {
  return vm_status(s, s->ops->global_out_of_range(s->call, offset, size));
}

/*@@ vm_release */
static inline void vm_release(vm_state* s, vm_ref object) {
  if (object != NULL) s->host->object_release(object);
}

/*@@ vm_retain_in vm_share */
static inline vm_ref vm_retain_in(vm_state* s, vm_ref object) {
  if (object != NULL) s->host->object_retain(object);
  return object;
}
#define vm_share(object) vm_retain_in(s, object)

/*@@ vm_take */
static inline vm_ref vm_take(vm_ref* from) {
  const vm_ref taken = *from;
  *from = NULL;
  return taken;
}

/*@@ vm_put */
/* Stores a reference that the caller owns. */
static inline void vm_put(vm_state* s, vm_ref* to, vm_ref object) {
  const vm_ref old = *to;
  *to = object;
  vm_release(s, old);
}

/*@@ vm_clear */
static inline void vm_clear(vm_state* s, vm_ref* ref) { vm_put(s, ref, NULL); }

/*@@ vm_assign */
static inline void vm_assign(vm_state* s, vm_ref* from, int moves, vm_ref* to) {
  if (from == to) return;
  vm_put(s, to, moves ? vm_take(from) : vm_retain_in(s, *from));
}

/*@@ vm_constant */
static inline vm_ref vm_constant(vm_state* s, uint32_t index) { return vm_retain_in(s, s->constants[index]); }

/*@@ vm_check_type */
static int vm_check_type(vm_state* s, vm_ref object, uint32_t type) {
  return object == NULL ? 0 : vm_status(s, s->ops->type_check(s->call, type, object));
}

/*@@ vm_cast */
static int vm_cast(vm_state* s, vm_ref* from, int moves, uint32_t type, vm_ref* to) {
  const int status = vm_check_type(s, *from, type);
  if (status == 0) vm_assign(s, from, moves, to);
  return status;
}

/*@@ vm_select_ref */
static int vm_select_ref(vm_state* s, uint32_t condition, uint32_t type, vm_ref* x, int moves_x, vm_ref* y,
                         int moves_y, vm_ref* to) {
  vm_ref* const other = condition != 0 ? y : x;
  const int moves_other = condition != 0 ? moves_y : moves_x;
  const int status = condition != 0 ? vm_cast(s, x, moves_x, type, to) : vm_cast(s, y, moves_y, type, to);
  if (status == 0 && moves_other && other != to) vm_clear(s, other);
  return status;
}

/*@@ vm_check_global */
static int vm_check_global(vm_state* s, uint32_t ordinal) {
  return ordinal < VM_REF_GLOBALS ? 0 : vm_status(s, s->ops->global_object_out_of_range(s->call, ordinal));
}

/*@@ vm_load_global */
static int vm_load_global(vm_state* s, uint32_t ordinal, uint32_t type, vm_ref* to, int moves) {
  int status = vm_check_global(s, ordinal);
  if (status == 0) status = vm_check_type(s, s->refs[ordinal], type);
  if (status != 0) return status;
  vm_put(s, to, moves ? vm_take(&s->refs[ordinal]) : vm_retain_in(s, s->refs[ordinal]));
  return 0;
}

/*@@ vm_store_global */
static int vm_store_global(vm_state* s, uint32_t ordinal, uint32_t type, vm_ref* from, int moves) {
  int status = vm_check_global(s, ordinal);
  if (status == 0) status = vm_check_type(s, *from, type);
  if (status != 0) return status;
  vm_put(s, &s->refs[ordinal], moves ? vm_take(from) : vm_retain_in(s, *from));
  return 0;
}

/*@@ vm_span */
/* The bytes of a buffer; none if the ref is not one. They are there as long as the ref. */
typedef struct vm_span {
  unsigned char* data;
  uint64_t length;
  uint64_t writable;
} vm_span;

/*@@ vm_span_in vm_span_of */
static inline vm_span vm_span_in(vm_state* s, vm_ref object) {
  halyard_buffer_bytes_t bytes = {NULL, 0, 0, 0};
  if (object != NULL) s->ops->buffer_span(object, &bytes);
  return (vm_span){bytes.data, bytes.length, bytes.is_mutable != 0 ? bytes.length : 0};
}
#define vm_span_of(object) vm_span_in(s, object)

/*@@ vm_load_failed */
static int vm_load_failed(vm_state* s, vm_ref buffer, uint64_t offset, uint32_t width) {
  return vm_status(s, s->ops->buffer_load(s->call, buffer, offset, width));
}

/*@@ vm_store_failed */
static int vm_store_failed(vm_state* s, vm_ref buffer, uint64_t offset, uint32_t width) {
  return vm_status(s, s->ops->buffer_store(s->call, buffer, offset, width));
}

/*@@ vm_put_made */
/* Stores the object that a service has made. */
static int vm_put_made(vm_state* s, halyard_status_t status, vm_ref made, vm_ref* to) {
  if (status != NULL) return vm_status(s, status);
  vm_put(s, to, made);
  return 0;
}

/*@@ vm_buffer_alloc */
static int vm_buffer_alloc(vm_state* s, uint64_t length, uint32_t alignment, vm_ref* to) {
  vm_ref made = NULL;
  const halyard_status_t status = s->ops->buffer_alloc(s->call, length, alignment, &made);
  return vm_put_made(s, status, made, to);
}

/*@@ vm_buffer_clone */
static int vm_buffer_clone(vm_state* s, vm_ref source, uint64_t offset, uint64_t length, uint32_t alignment,
                           vm_ref* to) {
  vm_ref made = NULL;
  const halyard_status_t status = s->ops->buffer_clone(s->call, source, offset, length, alignment, &made);
  return vm_put_made(s, status, made, to);
}

/*@@ vm_buffer_length */
static int vm_buffer_length(vm_state* s, vm_ref buffer, uint64_t* length) {
  return vm_status(s, s->ops->buffer_length(s->call, buffer, length));
}

/*@@ vm_buffer_copy */
static int vm_buffer_copy(vm_state* s, vm_ref source, uint64_t source_offset, vm_ref target,
                          uint64_t target_offset, uint64_t length) {
  return vm_status(s, s->ops->buffer_copy(s->call, source, source_offset, target, target_offset, length));
}

/*@@ vm_buffer_compare */
static int vm_buffer_compare(vm_state* s, vm_ref x, uint64_t x_offset, vm_ref y, uint64_t y_offset,
                             uint64_t length, uint32_t* equal) {
  return vm_status(s, s->ops->buffer_compare(s->call, x, x_offset, y, y_offset, length, equal));
}

/*@@ vm_buffer_fill */
static int vm_buffer_fill(vm_state* s, vm_ref buffer, uint64_t offset, uint64_t length, uint64_t pattern,
                          uint32_t width) {
  return vm_status(s, s->ops->buffer_fill(s->call, buffer, offset, length, pattern, width));
}

/*@@ vm_buffer_hash */
static int vm_buffer_hash(vm_state* s, vm_ref buffer, uint64_t offset, uint64_t length, uint64_t* hash) {
  return vm_status(s, s->ops->buffer_hash(s->call, buffer, offset, length, hash));
}

/*@@ vm_list_alloc */
static int vm_list_alloc(vm_state* s, uint32_t type, uint32_t capacity, vm_ref* to) {
  vm_ref made = NULL;
  const halyard_status_t status = s->ops->list_alloc(s->call, type, capacity, &made);
  return vm_put_made(s, status, made, to);
}

/*@@ vm_list_reserve */
static int vm_list_reserve(vm_state* s, vm_ref list, uint32_t capacity) {
  return vm_status(s, s->ops->list_reserve(s->call, list, capacity));
}

/*@@ vm_list_size */
static int vm_list_size(vm_state* s, vm_ref list, uint32_t* size) {
  return vm_status(s, s->ops->list_size(s->call, list, size));
}

/*@@ vm_list_resize */
static int vm_list_resize(vm_state* s, vm_ref list, uint32_t size) {
  return vm_status(s, s->ops->list_resize(s->call, list, size));
}

/*@@ vm_list_get_i32 */
static int vm_list_get_i32(vm_state* s, vm_ref list, uint32_t index, int legacy, uint32_t* value) {
  (void)legacy; /* the host knows the version */
  uint64_t bits = 0;
  const int status = vm_status(s, s->ops->list_get(s->call, list, index, HALYARD_VALUE_I32, &bits));
  *value = (uint32_t)bits;
  return status;
}

/*@@ vm_list_get_i64 */
static int vm_list_get_i64(vm_state* s, vm_ref list, uint32_t index, int legacy, uint64_t* value) {
  (void)legacy; /* the host knows the version */
  return vm_status(s, s->ops->list_get(s->call, list, index, HALYARD_VALUE_I64, value));
}

/*@@ vm_list_get_f32 */
static int vm_list_get_f32(vm_state* s, vm_ref list, uint32_t index, int legacy, float* value) {
  (void)legacy; /* the host knows the version */
  uint64_t bits = 0;
  const int status = vm_status(s, s->ops->list_get(s->call, list, index, HALYARD_VALUE_F32, &bits));
  *value = vm_f32((uint32_t)bits);
  return status;
}

/*@@ vm_list_get_f64 */
static int vm_list_get_f64(vm_state* s, vm_ref list, uint32_t index, int legacy, double* value) {
  (void)legacy; /* the host knows the version */
  uint64_t bits = 0;
  const int status = vm_status(s, s->ops->list_get(s->call, list, index, HALYARD_VALUE_F64, &bits));
  *value = vm_f64(bits);
  return status;
}

/*@@ vm_list_set_i32 */
static int vm_list_set_i32(vm_state* s, vm_ref list, uint32_t index, int legacy, uint32_t value) {
  (void)legacy; /* the host knows the version */
  return vm_status(s, s->ops->list_set(s->call, list, index, HALYARD_VALUE_I32, value));
}

/*@@ vm_list_set_i64 */
static int vm_list_set_i64(vm_state* s, vm_ref list, uint32_t index, int legacy, uint64_t value) {
  (void)legacy; /* the host knows the version */
  return vm_status(s, s->ops->list_set(s->call, list, index, HALYARD_VALUE_I64, value));
}

/*@@ vm_list_set_f32 */
static int vm_list_set_f32(vm_state* s, vm_ref list, uint32_t index, int legacy, float value) {
  (void)legacy; /* the host knows the version */
  return vm_status(s, s->ops->list_set(s->call, list, index, HALYARD_VALUE_F32, vm_bits_f32(value)));
}

/*@@ vm_list_set_f64 */
static int vm_list_set_f64(vm_state* s, vm_ref list, uint32_t index, int legacy, double value) {
  (void)legacy; /* the host knows the version */
  return vm_status(s, s->ops->list_set(s->call, list, index, HALYARD_VALUE_F64, vm_bits_f64(value)));
}

/*@@ vm_list_get_ref */
static int vm_list_get_ref(vm_state* s, vm_ref list, uint32_t index, uint32_t type, vm_ref* to, int moves) {
  vm_ref element = NULL;
  const halyard_status_t status =
      s->ops->list_get_object(s->call, list, index, type, moves ? 1u : 0u, &element);
  return vm_put_made(s, status, element, to);
}

/*@@ vm_list_set_ref */
static int vm_list_set_ref(vm_state* s, vm_ref list, uint32_t index, vm_ref* from, int moves) {
  const int status = vm_status(s, s->ops->list_set_object(s->call, list, index, *from));
  if (status == 0 && moves) vm_clear(s, from);
  return status;
}
