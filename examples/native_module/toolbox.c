/* toolbox: a native module that shows each feature, simplest first. To build it without CMake:
 *
 *   cc -shared -fPIC $(pkg-config --cflags halyard-module) toolbox.c -lm -o libtoolbox.so
 *
 * toolbox.vmasm beside it is a program that imports it. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "halyard/module.h"

typedef const halyard_module_services_t* host_t;

/* A plain function has the C types of its calling convention: "0iii_i". */
static int32_t clamp(int32_t value, int32_t low, int32_t high) {
  return value < low ? low : value > high ? high : value;
}

/* "0II_II" with HOST and STATUS: it can fail, and its results go through pointers. */
static halyard_status_t divide(host_t host, int64_t dividend, int64_t divisor, int64_t* quotient,
                               int64_t* remainder) {
  if (divisor == 0)
    return host->status_create(HALYARD_INVALID_ARGUMENT, "the divisor is 0; expected another");
  if (divisor == -1) { /* INT64_MIN / -1 overflows: it wraps */
    *quotient = (int64_t)(0 - (uint64_t)dividend);
    *remainder = 0;
    return NULL;
  }
  *quotient = dividend / divisor;
  *remainder = dividend % divisor;
  return NULL;
}

/* "0r_i": the bytes of a vm.buffer, which is borrowed for the call. */
static halyard_status_t crc32(host_t host, halyard_object_t buffer, int32_t* result) {
  halyard_buffer_bytes_t bytes;
  const halyard_status_t wrong = host->buffer_bytes(buffer, &bytes);
  if (wrong) return wrong;
  uint32_t crc = UINT32_MAX;
  for (uint64_t i = 0; i < bytes.length; ++i) {
    crc ^= bytes.data[i];
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (crc & 1 ? 0xEDB88320u : 0);
  }
  *result = (int32_t)~crc;
  return NULL;
}

/* "0CID_I": a variable number of arguments needs a frame function. */
static halyard_status_t sum(void* state, halyard_module_call_t* call) {
  (void)state;
  uint64_t total = 0;
  for (uint32_t i = 0; i < call->argument_count; ++i) total += (uint64_t)call->arguments[i].i64;
  call->results[0].i64 = (int64_t)total;
  return NULL;
}

/* State: one for each context, made from the text after '@' in --module=libtoolbox.so@100. */
struct toolbox {
  host_t host;
  halyard_type_t counter;
  int64_t first;
};

static halyard_status_t create_state(const halyard_module_state_args_t* args, void** state) {
  char* end = NULL;
  errno = 0;
  const int64_t first = strtoll(args->argument, &end, 10);
  if (errno != 0 || *end != 0)
    return args->services->status_create(
        HALYARD_INVALID_ARGUMENT,
        "the argument of toolbox is the first number; expected one of 64 bits, as in 5");
  struct toolbox* const toolbox = malloc(sizeof *toolbox);
  if (!toolbox) return args->services->status_create(HALYARD_RESOURCE_EXHAUSTED, "no memory for the toolbox");
  toolbox->host = args->services;
  toolbox->counter = args->types[0];
  toolbox->first = first;
  *state = toolbox;
  return NULL;
}

/* Objects of the module's own: "!toolbox.counter" to programs, an int64_t here. */
static halyard_status_t counter_create(void* state, halyard_object_t* counter) {
  const struct toolbox* const toolbox = state;
  int64_t* const value = malloc(sizeof *value);
  if (!value) return toolbox->host->status_create(HALYARD_RESOURCE_EXHAUSTED, "no memory for a counter");
  *value = toolbox->first;
  const halyard_status_t failed = toolbox->host->object_create(toolbox->counter, value, counter);
  if (failed) free(value);
  return failed;
}

static halyard_status_t counter_next(void* state, halyard_object_t counter, int64_t* result) {
  const struct toolbox* const toolbox = state;
  void* value = NULL;
  const halyard_status_t wrong = toolbox->host->object_pointer(toolbox->counter, counter, &value);
  if (!wrong) *result = (*(int64_t*)value)++;
  return wrong;
}

static const halyard_module_type_t types[] = {{"toolbox.counter", free}};

static const halyard_module_export_t exports[] = {
    HALYARD_PLAIN("hypot", "0FF_F", hypot, 0), /* not even a function of ours */
    HALYARD_PLAIN("clamp", "0iii_i", clamp, 0),
    HALYARD_PLAIN("divide", "0II_II", divide, HALYARD_PLAIN_HOST | HALYARD_PLAIN_STATUS),
    HALYARD_PLAIN("crc32", "0r_i", crc32, HALYARD_PLAIN_HOST | HALYARD_PLAIN_STATUS),
    HALYARD_FRAME("sum", "0CID_I", sum),
    HALYARD_PLAIN("counter.create", "0v_r", counter_create, HALYARD_PLAIN_STATE | HALYARD_PLAIN_STATUS),
    HALYARD_PLAIN("counter.next", "0r_I", counter_next, HALYARD_PLAIN_STATE | HALYARD_PLAIN_STATUS),
};

static const halyard_module_definition_t definition = {
    .struct_size = sizeof definition,
    .abi_version = HALYARD_MODULE_ABI_V1,
    .name = "toolbox",
    .version = 1,
    .export_size = sizeof exports[0],
    .exports = exports,
    .export_count = sizeof exports / sizeof exports[0],
    .create_state = create_state,
    .destroy_state = free,
    .types = types,
    .type_count = sizeof types / sizeof types[0],
    .type_size = sizeof types[0],
};

HALYARD_MODULE("toolbox", "1.0", &definition)
