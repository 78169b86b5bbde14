/* What the files here need to compile alone, as the tests do. Not part of any program. */
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define VM_STATIC_KERNELS
#define VM_GLOBAL_BYTES 16
#define VM_MAX_DEPTH 1000
#define VM_REF_GLOBALS 4

static const struct {
  const unsigned char* data;
  size_t length;
} vm_rodata[4];

typedef struct vm_parameter {
  const char* scope;
  size_t scope_length;
  const char* key;
  size_t key_length;
  const unsigned char* data;
  uint64_t length;
  size_t pattern_length; /* of data, which is repeated; 0: data has all bytes */
} vm_parameter;

static const vm_parameter vm_parameters[1];

#define VM_MAX_RANK 16
typedef struct vm_tensor {
  void* data;
  size_t bytes;
  uint32_t element_type;
  uint32_t rank;
  size_t shape[VM_MAX_RANK];
} vm_tensor;

typedef struct vm_state {
  const char* message;
  const char* names[2];
  char text[64];
  int has_parts;
  uint64_t numbers[4];
  void* user;
  uint32_t depth;
  uint32_t stopped;
  uint64_t globals[2];
  void* refs[4];
  void* constants[4];
  void* free;
  uintptr_t untouched;
  int arena_was_zero;
  void* doomed;
  int destroying;
  void* devices[2];
  void* results[4];
  void* arena;
  size_t arena_bytes;
  uint64_t memory[2];
  const void* parameters[4];
} vm_state;
