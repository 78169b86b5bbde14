/* The program of --main: calls one function with values from the command line and prints as vm-run does. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "support.h"

typedef union vm_value {
  int32_t i32;
  int64_t i64;
  float f32;
  double f64;
} vm_value;

typedef struct vm_function {
  const char* name;
  const char* arguments;
  const char* results;
  int (*call)(vm_state* s, const vm_value* in, vm_value* out);
} vm_function;

static const vm_function vm_functions[] = {{"f", "", "", NULL}};
static const char vm_name[] = "f";
static int vm_init(vm_state* s, void* arena, size_t arena_bytes);
#define VM_ARENA_BYTES 1024

/*@@ main */
#define VM_MAX_VALUES 256
static const size_t vm_function_count = sizeof vm_functions / sizeof vm_functions[0];
static vm_state vm_program_state;
static union {
  unsigned char bytes[VM_ARENA_BYTES];
  double aligned;
} vm_program_arena;

static const char* vm_code_name(int code) {
  static const char* const names[] = {
      "OK",        "CANCELLED",       "UNKNOWN",           "INVALID_ARGUMENT",   "DEADLINE_EXCEEDED",
      "NOT_FOUND", "ALREADY_EXISTS",  "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION",
      "ABORTED",   "OUT_OF_RANGE",    "UNIMPLEMENTED",     "INTERNAL",           "UNAVAILABLE",
      "DATA_LOSS", "UNAUTHENTICATED", "DEFERRED",          "INCOMPATIBLE"};
  return code >= 0 && code < (int)(sizeof names / sizeof names[0]) ? names[code] : "UNKNOWN";
}

/* Prints a failure with the numbers and names in its message. */
static int vm_print_failure(const vm_state* s, int code, const char* function) {
  const char* at = s->message != NULL ? s->message : "";
  size_t number = 0;
  size_t name = 0;
  fflush(stdout);
  fprintf(stderr, "%s: %s; ", vm_name, vm_code_name(code));
  for (; *at != '\0'; ++at) {
    if (*at == '$' && s->has_parts && number < sizeof s->numbers / sizeof s->numbers[0])
      fprintf(stderr, "%" PRIu64, s->numbers[number++]);
    else if (*at == '@' && s->has_parts && name < sizeof s->names / sizeof s->names[0])
      fprintf(stderr, "%s", s->names[name++]);
    else
      fputc(*at, stderr);
  }
  fprintf(stderr, "; in the call of function '%s'\n", function);
  return 1;
}

/* Whether the text is one integer of this many bits, with or without a sign; decimal, 0x or octal, as in C.
 */
static int vm_parse_integer(const char* text, int bits, uint64_t* value) {
  const int negative = *text == '-';
  const char* const digits = text + (*text == '-' || *text == '+');
  const uint64_t limit = bits == 32 ? UINT32_MAX : UINT64_MAX;
  const uint64_t lowest = UINT64_C(1) << (bits - 1);
  char* end = NULL;
  if (*digits < '0' || *digits > '9') return 0;
  errno = 0;
  const unsigned long long magnitude = strtoull(digits, &end, 0);
  if (*end != '\0' || errno != 0 || magnitude > (negative ? lowest : limit)) return 0;
  *value = negative ? 0 - (uint64_t)magnitude : (uint64_t)magnitude;
  return 1;
}

/* Whether the text is a value of the type, a character of the calling convention. */
static int vm_parse(const char* text, char type, vm_value* value) {
  char* end = NULL;
  uint64_t integer = 0;
  if (strcmp(text, "(null)") == 0 || strcmp(text, "(ignored)") == 0) return 1;
  if (type == 'i' || type == 'I') {
    if (!vm_parse_integer(text, type == 'i' ? 32 : 64, &integer)) return 0;
    if (type == 'i')
      value->i32 = (int32_t)(uint32_t)integer;
    else
      value->i64 = (int64_t)integer;
    return 1;
  }
  errno = 0;
  if (type == 'f')
    value->f32 = strtof(text, &end);
  else
    value->f64 = strtod(text, &end);
  const int vanishes = errno == ERANGE && (type == 'f' ? value->f32 == 0 : value->f64 == 0);
  return end != text && *end == '\0' && strchr(" \t\n\v\f\r", *text) == NULL && !vanishes;
}

static void vm_print_value(char type, const vm_value* value) {
  switch (type) {
    case 'i':
      printf("i32=%" PRId32 "\n", value->i32);
      break;
    case 'I':
      printf("i64=%" PRId64 "\n", value->i64);
      break;
    case 'f':
      printf("f32=%g\n", (double)value->f32);
      break;
    default:
      printf("f64=%g\n", value->f64);
      break;
  }
}

static const vm_function* vm_find(const char* name) {
  for (size_t i = 0; i < vm_function_count; ++i)
    if (strcmp(vm_functions[i].name, name) == 0) return &vm_functions[i];
  fprintf(stderr, "%s: NOT_FOUND; there is no function '%s'; the functions are", vm_name, name);
  for (size_t i = 0; i < vm_function_count; ++i) fprintf(stderr, " '%s'", vm_functions[i].name);
  fputc('\n', stderr);
  return NULL;
}

int main(int argc, char** argv) {
  static vm_value in[VM_MAX_VALUES];
  static vm_value out[VM_MAX_VALUES];
  const char* inputs[VM_MAX_VALUES];
  size_t count = 0;
  const char* name = vm_function_count == 1 ? vm_functions[0].name : "";
  for (int i = 1; i < argc; ++i) {
    if (strncmp(argv[i], "--function=", 11) == 0) {
      name = argv[i] + 11;
    } else if (strncmp(argv[i], "--input=", 8) == 0 && count < VM_MAX_VALUES) {
      inputs[count++] = argv[i] + 8;
    } else {
      fprintf(stderr,
              "%s: INVALID_ARGUMENT; '%s' is not a flag of this program; it takes --function=NAME and "
              "--input=VALUE\n",
              vm_name, argv[i]);
      return 1;
    }
  }
  int status = vm_init(&vm_program_state, vm_program_arena.bytes, sizeof vm_program_arena.bytes);
  if (status != 0) return vm_print_failure(&vm_program_state, status, "__init");
  const vm_function* const function = vm_find(name);
  if (function == NULL) return 1;
  if (count != strlen(function->arguments)) {
    fprintf(
        stderr,
        "%s: INVALID_ARGUMENT; expected %u arguments, found %u; function '%s' takes one --input for each\n",
        vm_name, (unsigned)strlen(function->arguments), (unsigned)count, name);
    return 1;
  }
  for (size_t i = 0; i < count; ++i) {
    if (vm_parse(inputs[i], function->arguments[i], &in[i])) continue;
    fprintf(stderr,
            "%s: INVALID_ARGUMENT; --input=%s: input %u of the function: expected a number that fits %s\n",
            vm_name, inputs[i], (unsigned)i,
            function->arguments[i] == 'i'   ? "an integer of 32 bits"
            : function->arguments[i] == 'I' ? "an integer of 64 bits"
                                            : "a float");
    return 1;
  }
  printf("EXEC @%s\n", name);
  status = function->call(&vm_program_state, in, out);
  if (status != 0) return vm_print_failure(&vm_program_state, status, name);
  for (size_t i = 0; i < strlen(function->results); ++i) {
    printf("result[%u]: ", (unsigned)i);
    vm_print_value(function->results[i], &out[i]);
  }
  if (fflush(stdout) != 0) {
    fprintf(stderr, "%s: UNAVAILABLE; standard output cannot be written\n", vm_name);
    return 1;
  }
  return 0;
}
