/* Functions of programs whose memory is planned. */
#include "vmvx.c"

/*@@ vm_memory */
/* What the program keeps between calls. */
static inline unsigned char* vm_memory(vm_state* s) { return (unsigned char*)s->memory; }

/*@@ vm_given */
/* The bytes of a parameter that the caller gave. */
static inline const unsigned char* vm_given(const vm_state* s, size_t index) {
  return (const unsigned char*)s->parameters[index];
}

/*@@ vm_outside */
static int vm_outside(vm_state* s, uint64_t length, uint32_t width, uint64_t offset, uint64_t bytes) {
  s->numbers[0] = length;
  s->numbers[1] = width;
  s->numbers[2] = offset;
  s->numbers[3] = bytes;
  return vm_fail_in_parts(s, 11, "$ elements of $ bytes at element $ are not within a buffer of $ bytes");
}

/*@@ vm_fail_of */
/* A failed check of an argument. */
static int vm_fail_of(vm_state* s, const char* name, int code, const char* text, uint64_t a, uint64_t b) {
  s->names[0] = name;
  return vm_fail_with(s, code, text, a, b, 0);
}

/*@@ vm_fill */
static void vm_fill(unsigned char* to, size_t bytes, uint64_t pattern, uint32_t width) {
  vm_repeat(to, bytes / width, pattern, width);
}

/*@@ vm_reserve */
/* Adds a buffer to what is used of the arena; 0 if it has no room. */
static int vm_reserve(size_t* used, uint64_t bytes, size_t limit) {
  const size_t begin = *used;
  if (begin > limit || bytes > limit - begin) return 0;
  const size_t end = begin + (((size_t)bytes + 15) & ~(size_t)15);
  *used = end < begin || end > limit ? limit : end;
  return 1;
}

/*@@ vm_bytes */
/* A buffer for a microkernel. */
static vm_buffer vm_bytes(const unsigned char* data, uint64_t length, int is_writable) {
  union {
    const unsigned char* constant;
    unsigned char* data;
  } bytes = {data}; /* written only if it is writable */
  vm_buffer made = {{&vm_buffer_type, NULL, 1}, bytes.data,  length,
                    is_writable ? length : 0,   is_writable, NULL};
  return made;
}
