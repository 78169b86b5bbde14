/* The program of --main: calls one function with values from the command line and prints as vm-run does. */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "small_floats.c"

typedef union vm_value {
  int32_t i32;
  int64_t i64;
  float f32;
  double f64;
  vm_tensor tensor;
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
static void vm_arena_was_zero(vm_state* s);
#define VM_ARENA_BYTES 1024
#define VM_TENSORS

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

/* Small C libraries print no numbers of 64 bits. */
static void vm_put_number(FILE* to, uint64_t value) {
  char text[24];
  char* at = text + sizeof text - 1;
  *at = '\0';
  do {
    *--at = (char)('0' + (int)(value % 10));
    value /= 10;
  } while (value != 0);
  fputs(at, to);
}

static void vm_put_signed(uint64_t value) {
  if (value >> 63) putchar('-');
  vm_put_number(stdout, value >> 63 ? 0 - value : value);
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
      vm_put_number(stderr, s->numbers[number++]);
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

#ifdef VM_TENSORS
#define VM_MAX_PRINTED 1024 /* elements of a tensor */

/* The types of elements: their names, and how elements are written. */
static const struct {
  const char* name;
  uint32_t type;
  char kind; /* s: signed or signless, u: unsigned, f: float, b: boolean, x: bytes */
} vm_types[] = {
    {"i8", 0x10000008, 's'},         {"i16", 0x10000010, 's'},        {"i32", 0x10000020, 's'},
    {"i64", 0x10000040, 's'},        {"si8", 0x11000008, 's'},        {"si16", 0x11000010, 's'},
    {"si32", 0x11000020, 's'},       {"si64", 0x11000040, 's'},       {"ui8", 0x12000008, 'u'},
    {"ui16", 0x12000010, 'u'},       {"ui32", 0x12000020, 'u'},       {"ui64", 0x12000040, 'u'},
    {"i1", 0x13000008, 'b'},         {"f16", 0x21000010, 'f'},        {"f32", 0x21000020, 'f'},
    {"f64", 0x21000040, 'f'},        {"bf16", 0x22000010, 'f'},       {"cf64", 0x23000040, 'x'},
    {"cf128", 0x23000080, 'x'},      {"f8E5M2", 0x24000008, 'f'},     {"f8E4M3FN", 0x25000008, 'f'},
    {"f8E5M2FNUZ", 0x26000008, 'f'}, {"f8E4M3FNUZ", 0x27000008, 'f'}, {"f8E8M0FNU", 0x28000008, 'f'},
    {"*8", 0x00000008, 'x'},         {"*16", 0x00000010, 'x'},        {"*32", 0x00000020, 'x'},
    {"*64", 0x00000040, 'x'}};

/* '\0' if elements of the type have no text. Types without a name are opaque, as "*16". */
static char vm_kind(uint32_t element_type, const char** name) {
  for (size_t i = 0; i < sizeof vm_types / sizeof vm_types[0]; ++i) {
    if (vm_types[i].type != element_type) continue;
    *name = vm_types[i].name;
    return vm_types[i].kind;
  }
  *name = NULL;
  return (element_type & 0xFF) != 0 && (element_type & 0xFF) % 8 == 0 ? 'x' : '\0';
}

/* The element type of a name such as "f32"; 0 if there is none. */
static uint32_t vm_element_type(const char* name) {
  for (size_t i = 0; i < sizeof vm_types / sizeof vm_types[0]; ++i)
    if (strcmp(vm_types[i].name, name) == 0) return vm_types[i].type;
  return 0;
}

/* "2x3xf32" or "f32". Allocates the bytes, which are zero. */
static int vm_parse_type(const char* text, vm_tensor* tensor) {
  size_t count = 1;
  memset(tensor, 0, sizeof *tensor);
  for (;;) {
    char* end = NULL;
    const unsigned long long extent = strtoull(text, &end, 10);
    if (end == text || *end != 'x') break;
    if (tensor->rank == VM_MAX_RANK || (extent != 0 && count > SIZE_MAX / 8 / extent)) return 0;
    tensor->shape[tensor->rank++] = (size_t)extent;
    count *= (size_t)extent;
    text = end + 1;
  }
  tensor->element_type = vm_element_type(text);
  if (tensor->element_type == 0) return 0;
  tensor->bytes = count * (tensor->element_type & 0xFF) / 8;
  tensor->data = calloc(1, tensor->bytes + 64);
  return tensor->data != NULL;
}

/* Hexadecimal digits, two for each byte. */
static int vm_parse_bytes(const char* text, size_t count, unsigned char* to) {
  for (size_t i = 0; i < 2 * count; ++i) {
    static const char digits[] = "0123456789ABCDEFabcdef";
    const char* const digit = text[i] != '\0' ? strchr(digits, text[i]) : NULL;
    if (digit == NULL) return 0;
    const int value = (int)(digit - digits);
    to[i / 2] = (unsigned char)(to[i / 2] << 4 | (value < 16 ? value : value - 6));
  }
  return text[2 * count] == '\0';
}

/* `to` is zero. */
static int vm_parse_element(const char* text, uint32_t element_type, unsigned char* to) {
  const char* name = NULL;
  const uint32_t bits = element_type & 0xFF;
  const char kind = vm_kind(element_type, &name);
  uint64_t integer = 0;
  char* end = NULL;
  if (kind == 'f') {
    const vm_small_float* const format = vm_small_float_of(element_type);
    int is_zero = 0;
    errno = 0;
    if (bits == 32) {
      const float value = strtof(text, &end);
      memcpy(to, &value, sizeof value);
      is_zero = value == 0;
    } else if (format != NULL) {
      const uint32_t code = vm_small_code(format, strtod(text, &end));
      memcpy(to, &code, bits / 8);
    } else {
      const double value = strtod(text, &end);
      memcpy(to, &value, sizeof value);
      is_zero = value == 0;
    }
    const int vanishes = errno == ERANGE && is_zero;
    return end != NULL && end != text && *end == '\0' && !vanishes;
  }
  if (kind == 'b' && (strcmp(text, "true") == 0 || strcmp(text, "True") == 0)) text = "1";
  if (kind == 'b' && (strcmp(text, "false") == 0 || strcmp(text, "False") == 0)) text = "0";
  if (kind == 'x') return vm_parse_bytes(text, bits / 8, to);
  if (!vm_parse_integer(text, 64, &integer)) return 0;
  if (bits < 64) {
    const int negative = *text == '-';
    const uint64_t most = UINT64_C(1) << bits;
    const uint64_t least = UINT64_C(1) << (bits - 1);
    if (negative ? 0 - integer > least || kind == 'u' : integer >= most) return 0;
  }
  memcpy(to, &integer, bits / 8);
  return 1;
}

/* Elements between blanks, commas and brackets: all, or one that fills the tensor, or none. */
static int vm_parse_elements(const char* text, vm_tensor* tensor) {
  const size_t width = (tensor->element_type & 0xFF) / 8;
  const size_t count = tensor->bytes / width;
  unsigned char* const data = (unsigned char*)tensor->data;
  size_t found = 0;
  for (;;) {
    char token[64];
    text += strspn(text, ", []\t\n\v\f\r");
    const size_t length = strcspn(text, ", []\t\n\v\f\r");
    if (length == 0) break;
    if (length >= sizeof token || (found == count && found != 0)) return 0;
    memcpy(token, text, length);
    token[length] = '\0';
    if (count != 0 && !vm_parse_element(token, tensor->element_type, data + found * width)) return 0;
    text += length;
    ++found;
  }
  if (found == 1)
    for (size_t i = 1; i < count; ++i) memcpy(data + i * width, data, width);
  return found <= 1 || found == count;
}

/* The element type of an npy file: "<f4". */
static uint32_t vm_npy_type(const char* text) {
  static const struct {
    const char* npy;
    uint32_t type;
  } types[] = {{"|b1", 0x13000008}, {"|i1", 0x11000008}, {"<i2", 0x11000010}, {"<i4", 0x11000020},
               {"<i8", 0x11000040}, {"|u1", 0x12000008}, {"<u2", 0x12000010}, {"<u4", 0x12000020},
               {"<u8", 0x12000040}, {"<f2", 0x21000010}, {"<f4", 0x21000020}, {"<f8", 0x21000040}};
  for (size_t i = 0; i < sizeof types / sizeof types[0]; ++i)
    if (strncmp(text, types[i].npy, 3) == 0) return types[i].type;
  return 0;
}

/* The first array of an npy file. */
static int vm_read_npy(FILE* file, vm_tensor* tensor) {
  unsigned char start[12];
  char header[4096];
  memset(tensor, 0, sizeof *tensor);
  if (fread(start, 1, 10, file) != 10 || memcmp(start, "\x93NUMPY", 6) != 0) return 0;
  size_t length = start[8] | (size_t)start[9] << 8;
  if (start[6] > 1) {
    if (fread(start + 10, 1, 2, file) != 2) return 0;
    length |= (size_t)start[10] << 16 | (size_t)start[11] << 24;
  }
  if (length >= sizeof header || fread(header, 1, length, file) != length) return 0;
  header[length] = '\0';
  const char* const type = strstr(header, "'descr': '");
  const char* shape = strstr(header, "'shape': (");
  if (type == NULL || shape == NULL || strstr(header, "'fortran_order': False") == NULL) return 0;
  tensor->element_type = vm_npy_type(type + 10);
  size_t count = 1;
  for (shape += 10; *shape != ')' && *shape != '\0';) {
    char* end = NULL;
    const unsigned long long extent = strtoull(shape, &end, 10);
    if (end == shape || tensor->rank == VM_MAX_RANK || (extent != 0 && count > SIZE_MAX / 8 / extent))
      return 0;
    tensor->shape[tensor->rank++] = (size_t)extent;
    count *= (size_t)extent;
    shape = end + strspn(end, ", ");
  }
  if (tensor->element_type == 0) return 0;
  tensor->bytes = count * (tensor->element_type & 0xFF) / 8;
  tensor->data = calloc(1, tensor->bytes + 64);
  return tensor->data != NULL && fread(tensor->data, 1, tensor->bytes, file) == tensor->bytes;
}

/* "@file.npy", "2x2xf32=@file" with the bytes of the tensor, or "2x2xf32=1,2,3,4". */
static int vm_parse_tensor(const char* text, vm_tensor* tensor) {
  char type[256];
  if (*text == '@') {
    FILE* const file = fopen(text + 1, "rb");
    const int good = file != NULL && vm_read_npy(file, tensor);
    if (file != NULL) fclose(file);
    return good;
  }
  const size_t length = strcspn(text, "=");
  if (length >= sizeof type) return 0;
  memcpy(type, text, length);
  type[length] = '\0';
  if (!vm_parse_type(type, tensor)) return 0;
  if (text[length] == '\0') return 1;
  if (text[length + 1] != '@') return vm_parse_elements(text + length + 1, tensor);
  FILE* const file = fopen(text + length + 2, "rb");
  if (file == NULL) return 0;
  vm_tensor array;
  int good = vm_read_npy(file, &array);
  if (good) {
    good = array.bytes == tensor->bytes && array.rank == tensor->rank &&
           memcmp(array.shape, tensor->shape, sizeof array.shape) == 0;
    if (good) memcpy(tensor->data, array.data, tensor->bytes);
  } else {
    rewind(file);
    good = fread(tensor->data, 1, tensor->bytes, file) == tensor->bytes;
  }
  fclose(file);
  return good;
}

static void vm_print_element(uint32_t element_type, const unsigned char* from) {
  const char* name = NULL;
  const uint32_t bits = element_type & 0xFF;
  const char kind = vm_kind(element_type, &name);
  uint64_t integer = 0;
  if (kind != 'x') memcpy(&integer, from, bits / 8);
  if (kind == 'f') {
    const vm_small_float* const format = vm_small_float_of(element_type);
    double value = 0;
    float single = 0;
    if (bits == 64) memcpy(&value, from, sizeof value);
    if (bits == 32) memcpy(&single, from, sizeof single);
    if (bits == 32) value = (double)single;
    if (format != NULL) value = vm_small_value(format, (uint32_t)integer);
    printf("%.6G", value);
  } else if (kind == 'u') {
    vm_put_number(stdout, integer);
  } else if (kind == 's') {
    const uint64_t sign = UINT64_C(1) << (bits - 1);
    vm_put_signed((integer ^ sign) - sign);
  } else {
    for (uint32_t i = 0; i < bits / 8; ++i) printf("%02X", from[i]);
  }
}

/* Level by level; `left` elements may still be printed. */
static const unsigned char* vm_print_level(const vm_tensor* tensor, uint32_t level, const unsigned char* from,
                                           size_t* left) {
  if (level + 1 < tensor->rank) {
    for (size_t i = 0; i < tensor->shape[level]; ++i) {
      putchar('[');
      from = vm_print_level(tensor, level + 1, from, left);
      putchar(']');
    }
    return from;
  }
  const size_t length = tensor->rank == 0 ? 1 : tensor->shape[level];
  const size_t count = length < *left ? length : *left;
  for (size_t i = 0; i < count; ++i, from += (tensor->element_type & 0xFF) / 8) {
    if (i != 0) putchar(' ');
    vm_print_element(tensor->element_type, from);
  }
  if (count < length) printf("...");
  *left -= count;
  return from;
}

/* Whether the tensor was printed. */
static int vm_print_tensor(const vm_tensor* tensor) {
  const char* name = NULL;
  size_t left = VM_MAX_PRINTED;
  if (tensor->element_type == 0) return printf("(null)\n") > 0;
  if (vm_kind(tensor->element_type, &name) == '\0') return 0;
  printf("hal.buffer_view\n");
  for (uint32_t i = 0; i < tensor->rank; ++i) printf("%lux", (unsigned long)tensor->shape[i]);
  if (name != NULL)
    printf("%s=", name);
  else
    printf("*%u=", (unsigned)(tensor->element_type & 0xFF));
  vm_print_level(tensor, 0, (const unsigned char*)tensor->data, &left);
  return putchar('\n') != EOF;
}
#endif

/* Whether the text is a value of the type, a character of the calling convention. */
static int vm_parse(const char* text, char type, vm_value* value) {
  char* end = NULL;
  uint64_t integer = 0;
#ifdef VM_TENSORS
  if (type == 'r') return vm_parse_tensor(text, &value->tensor);
#endif
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

/* Whether the value was printed. */
static int vm_print_value(char type, const vm_value* value) {
#ifdef VM_TENSORS
  if (type == 'r') return vm_print_tensor(&value->tensor);
#endif
  if (type == 'i') return printf("i32=%ld\n", (long)value->i32) > 0;
  if (type == 'I') {
    printf("i64=");
    vm_put_signed((uint64_t)value->i64);
    return putchar('\n') == '\n';
  }
  return type == 'f' ? printf("f32=%g\n", (double)value->f32) > 0 : printf("f64=%g\n", value->f64) > 0;
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
  vm_arena_was_zero(&vm_program_state);
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
    fprintf(stderr, "%s: INVALID_ARGUMENT; --input=%s: input %u of the function: expected %s\n", vm_name,
            inputs[i], (unsigned)i,
            function->arguments[i] == 'r'   ? "a tensor, such as 2x2xf32=1,2,3,4 or @file.npy"
            : function->arguments[i] == 'i' ? "an integer of 32 bits"
            : function->arguments[i] == 'I' ? "an integer of 64 bits"
                                            : "a number");
    return 1;
  }
  printf("EXEC @%s\n", name);
  status = function->call(&vm_program_state, in, out);
  if (status != 0) return vm_print_failure(&vm_program_state, status, name);
  for (size_t i = 0; i < strlen(function->results); ++i) {
    printf("result[%u]: ", (unsigned)i);
    if (vm_print_value(function->results[i], &out[i])) continue;
    fflush(stdout);
    fprintf(stderr, "%s: UNIMPLEMENTED; result %u has elements that this program cannot print\n", vm_name,
            (unsigned)i);
    return 1;
  }
  if (fflush(stdout) != 0) {
    fprintf(stderr, "%s: UNAVAILABLE; standard output cannot be written\n", vm_name);
    return 1;
  }
  return 0;
}
