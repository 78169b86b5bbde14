/* Objects: reference counts, the arena, buffers, ref globals. */
#include "static_kernels.c"

/*@@ vm_ref vm_object vm_type */
typedef struct vm_object vm_object;
typedef vm_object* vm_ref;
typedef struct vm_type {
  const char* name;
  void (*destroy)(vm_state* s, vm_ref object); /* releases what the object holds, not its own memory */
} vm_type;
struct vm_object {
  const vm_type* type;
  vm_ref next; /* of those that are to be destroyed */
  uint32_t references;
};

/*@@ vm_block */
/* Blocks of the arena: the free ones are linked in the order of their addresses, and the first that is large
 * enough is taken. */
typedef struct vm_block {
  size_t bytes; /* with this header */
  struct vm_block* next;
} vm_block;
#define VM_GRAIN ((size_t)16)

/*@@ vm_arena_begin */
static void vm_arena_begin(vm_state* s, void* arena, size_t bytes) {
  const size_t misfit = (VM_GRAIN - ((uintptr_t)arena & (VM_GRAIN - 1))) & (VM_GRAIN - 1);
  s->free = NULL;
  if (arena == NULL || bytes < misfit + 2 * VM_GRAIN) return;
  vm_block* block = (vm_block*)(void*)((unsigned char*)arena + misfit);
  block->bytes = (bytes - misfit) & ~(VM_GRAIN - 1);
  block->next = NULL;
  s->free = block;
  s->untouched = (uintptr_t)block + VM_GRAIN;
}

/*@@ vm_allocate */
/* NULL if no free block is large enough. The bytes are zero, and aligned to 16. */
static void* vm_allocate(vm_state* s, size_t bytes) {
  vm_block* before = NULL;
  vm_block* block = (vm_block*)s->free;
  if (bytes > SIZE_MAX - 3 * VM_GRAIN) return NULL;
  const size_t wanted = ((bytes + VM_GRAIN - 1) & ~(VM_GRAIN - 1)) + VM_GRAIN;
  for (; block != NULL && block->bytes < wanted; block = block->next) before = block;
  if (block == NULL) return NULL;
  vm_block* rest = block->next;
  if (block->bytes - wanted >= 2 * VM_GRAIN) {
    rest = (vm_block*)(void*)((unsigned char*)block + wanted);
    rest->bytes = block->bytes - wanted;
    rest->next = block->next;
    block->bytes = wanted;
  }
  if (before != NULL)
    before->next = rest;
  else
    s->free = rest;
  unsigned char* const memory = (unsigned char*)block + VM_GRAIN;
  size_t used = block->bytes - VM_GRAIN; /* bytes that need not be zero */
  const uintptr_t end = (uintptr_t)memory + used;
  if (s->arena_was_zero && s->untouched < end)
    used = s->untouched > (uintptr_t)memory ? (size_t)(s->untouched - (uintptr_t)memory) : 0;
  if (s->untouched < end + VM_GRAIN)
    s->untouched = end + VM_GRAIN; /* the header of the block after this one */
  memset(memory, 0, used);
  return memory;
}

/*@@ vm_free */
static void vm_free(vm_state* s, void* memory) {
  if (memory == NULL) return;
  vm_block* block = (vm_block*)(void*)((unsigned char*)memory - VM_GRAIN);
  vm_block* before = NULL;
  vm_block* after = (vm_block*)s->free;
  for (; after != NULL && after < block; after = after->next) before = after;
  block->next = after;
  if (after != NULL && (unsigned char*)block + block->bytes == (unsigned char*)after) {
    block->bytes += after->bytes;
    block->next = after->next;
  }
  if (before == NULL) {
    s->free = block;
    return;
  }
  before->next = block;
  if ((unsigned char*)before + before->bytes == (unsigned char*)block) {
    before->bytes += block->bytes;
    before->next = block->next;
  }
}

/*@@ vm_retain */
static inline void vm_retain(vm_ref object) {
  if (object != NULL) ++object->references;
}

/*@@ vm_release */
/* Objects may be nested arbitrarily deep, so they are destroyed in a loop. */
static void vm_release(vm_state* s, vm_ref object) {
  if (object == NULL || --object->references != 0) return;
  object->next = (vm_ref)s->doomed;
  s->doomed = object;
  if (s->destroying) return;
  s->destroying = 1;
  while (s->doomed != NULL) {
    const vm_ref each = (vm_ref)s->doomed;
    s->doomed = each->next;
    each->type->destroy(s, each);
    vm_free(s, each);
  }
  s->destroying = 0;
}

/*@@ vm_share */
static inline vm_ref vm_share(vm_ref object) {
  vm_retain(object);
  return object;
}

/*@@ vm_take */
static inline vm_ref vm_take(vm_ref* from) {
  const vm_ref object = *from;
  *from = NULL;
  return object;
}

/*@@ vm_put */
/* Takes ownership of `object`. */
static inline void vm_put(vm_state* s, vm_ref* to, vm_ref object) {
  const vm_ref old = *to;
  *to = object;
  vm_release(s, old);
}

/*@@ vm_clear */
static inline void vm_clear(vm_state* s, vm_ref* ref) { vm_put(s, ref, NULL); }

/*@@ vm_assign */
static inline void vm_assign(vm_state* s, vm_ref* from, int moves, vm_ref* to) {
  if (from != to) vm_put(s, to, moves ? vm_take(from) : vm_share(*from));
}

/*@@ vm_create */
/* An object with one reference and `bytes` bytes of its own; NULL if the arena has no room. */
static vm_ref vm_create(vm_state* s, const vm_type* type, size_t bytes) {
  const vm_ref object = (vm_ref)vm_allocate(s, bytes);
  if (object == NULL) return NULL;
  object->type = type;
  object->references = 1;
  return object;
}

/*@@ vm_no_room */
static int vm_no_room(vm_state* s, uint64_t bytes) {
  return vm_fail_with(s, 8, "the arena has no room for $ bytes; give the program a larger arena", bytes, 0,
                      0);
}

/*@@ vm_wrong_type */
static int vm_wrong_type(vm_state* s, vm_ref object, const char* expected) {
  s->names[0] = expected;
  s->names[1] = object != NULL ? object->type->name : "null";
  return vm_fail_in_parts(s, 3, "expected @, found @");
}

/*@@ vm_check_type */
/* A type that no ref has is NULL. */
static int vm_check_type(vm_state* s, vm_ref object, const vm_type* type) {
  if (object == NULL || object->type == type) return 0;
  return vm_wrong_type(s, object, type != NULL ? type->name : "a type that no ref has");
}

/*@@ vm_cast */
static int vm_cast(vm_state* s, vm_ref* from, int moves, const vm_type* type, vm_ref* to) {
  const int status = vm_check_type(s, *from, type);
  if (status == 0) vm_assign(s, from, moves, to);
  return status;
}

/*@@ vm_select_ref */
static int vm_select_ref(vm_state* s, uint32_t condition, const vm_type* type, vm_ref* x, int moves_x,
                         vm_ref* y, int moves_y, vm_ref* to) {
  vm_ref* const other = condition != 0 ? y : x;
  const int moves_other = condition != 0 ? moves_y : moves_x;
  const int status = condition != 0 ? vm_cast(s, x, moves_x, type, to) : vm_cast(s, y, moves_y, type, to);
  if (status == 0 && moves_other && other != to) vm_clear(s, other);
  return status;
}

/*@@ vm_check_global */
static int vm_check_global(vm_state* s, uint32_t ordinal) {
  if (ordinal < VM_REF_GLOBALS) return 0;
  return vm_fail_with(s, 11, "there is no ref global $; the module has $", ordinal, VM_REF_GLOBALS, 0);
}

/*@@ vm_load_global */
static int vm_load_global(vm_state* s, uint32_t ordinal, const vm_type* type, vm_ref* to, int moves) {
  int status = vm_check_global(s, ordinal);
  if (status != 0) return status;
  vm_ref global = (vm_ref)s->refs[ordinal];
  status = vm_check_type(s, global, type);
  if (status != 0) return status;
  if (moves)
    s->refs[ordinal] = NULL;
  else
    vm_retain(global);
  vm_put(s, to, global);
  return 0;
}

/*@@ vm_store_global */
static int vm_store_global(vm_state* s, uint32_t ordinal, const vm_type* type, vm_ref* from, int moves) {
  int status = vm_check_global(s, ordinal);
  if (status == 0) status = vm_check_type(s, *from, type);
  if (status != 0) return status;
  const vm_ref old = (vm_ref)s->refs[ordinal];
  s->refs[ordinal] = moves ? vm_take(from) : vm_share(*from);
  vm_release(s, old);
  return 0;
}

/*@@ vm_buffer vm_buffer_type */
typedef struct vm_buffer {
  vm_object object;
  unsigned char* data;
  uint64_t length;
  uint64_t writable; /* the length, or 0 if the buffer is read-only */
  int is_writable;
  vm_ref owner; /* of the bytes; null if they follow this struct or are constants */
} vm_buffer;

static void vm_buffer_destroy(vm_state* s, vm_ref object) {
  vm_release(s, ((vm_buffer*)(void*)object)->owner);
}

static const vm_type vm_buffer_type = {"vm.buffer", vm_buffer_destroy};

/*@@ vm_is_buffer */
static inline int vm_is_buffer(vm_ref object) { return object != NULL && object->type == &vm_buffer_type; }

/*@@ vm_buffer_of */
static inline vm_buffer* vm_buffer_of(vm_ref object) { return (vm_buffer*)(void*)object; }

/*@@ vm_constants_begin */
static int vm_constants_begin(vm_state* s) {
  for (size_t i = 0; i < sizeof s->constants / sizeof s->constants[0]; ++i) {
    const vm_ref made = vm_create(s, &vm_buffer_type, sizeof(vm_buffer));
    if (made == NULL) return vm_no_room(s, sizeof(vm_buffer));
    union {
      const unsigned char* constant;
      unsigned char* data;
    } bytes = {vm_rodata[i].data}; /* never written: the buffer is read-only */
    vm_buffer_of(made)->data = bytes.data;
    vm_buffer_of(made)->length = vm_rodata[i].length;
    s->constants[i] = made;
  }
  return 0;
}

/*@@ vm_constant */
static inline vm_ref vm_constant(vm_state* s, uint32_t index) {
  return vm_share((vm_ref)s->constants[index]);
}

/*@@ vm_range */
/* `offset` and `length` count elements of `width` bytes. */
static int vm_range(vm_state* s, const vm_buffer* buffer, uint64_t offset, uint64_t length, uint32_t width) {
  const uint64_t size = buffer->length / width;
  if (offset <= size && length <= size - offset) return 0;
  s->numbers[0] = length;
  s->numbers[1] = width;
  s->numbers[2] = offset;
  s->numbers[3] = buffer->length;
  return vm_fail_in_parts(s, 11, "$ elements of $ bytes at element $ are not within a buffer of $ bytes");
}

/*@@ vm_check_buffer */
static int vm_check_buffer(vm_state* s, vm_ref object) {
  return vm_is_buffer(object) ? 0 : vm_wrong_type(s, object, "a vm.buffer");
}

/*@@ vm_check_writable */
static int vm_check_writable(vm_state* s, const vm_buffer* buffer) {
  return buffer->is_writable ? 0 : vm_fail(s, 7, "the buffer is read-only");
}

/*@@ vm_span */
/* The bytes of a buffer; none if the ref is not one. They are there as long as the ref. */
typedef struct vm_span {
  unsigned char* data;
  uint64_t length;
  uint64_t writable;
} vm_span;

/*@@ vm_span_of */
static inline vm_span vm_span_of(vm_ref object) {
  vm_span span = {NULL, 0, 0};
  if (vm_is_buffer(object)) {
    span.data = vm_buffer_of(object)->data;
    span.length = vm_buffer_of(object)->length;
    span.writable = vm_buffer_of(object)->writable;
  }
  return span;
}

/*@@ vm_is_in */
static inline int vm_is_in(vm_span span, uint64_t offset, uint32_t width) {
  return offset < span.length / width;
}

/*@@ vm_is_writable_in */
static inline int vm_is_writable_in(vm_span span, uint64_t offset, uint32_t width) {
  return offset < span.writable / width;
}

/*@@ vm_element */
static inline unsigned char* vm_element(vm_span span, uint64_t offset, uint32_t width) {
  return span.data + (size_t)offset * width;
}

/*@@ vm_load_failed */
static int vm_load_failed(vm_state* s, vm_ref object, uint64_t offset, uint32_t width) {
  const int status = vm_check_buffer(s, object);
  return status != 0 ? status : vm_range(s, vm_buffer_of(object), offset, 1, width);
}

/*@@ vm_store_failed */
static int vm_store_failed(vm_state* s, vm_ref object, uint64_t offset, uint32_t width) {
  int status = vm_check_buffer(s, object);
  if (status == 0) status = vm_check_writable(s, vm_buffer_of(object));
  return status != 0 ? status : vm_range(s, vm_buffer_of(object), offset, 1, width);
}

/*@@ vm_buffer_alloc */
static int vm_buffer_alloc(vm_state* s, uint64_t length, uint32_t alignment, vm_ref* to) {
  if ((alignment & (alignment - 1)) != 0)
    return vm_fail_with(s, 3, "expected an alignment of 0 or a power of two, found $ bytes", alignment, 0, 0);
  const size_t slack = alignment > 16 ? alignment - 16 : 0;
  const size_t header = (sizeof(vm_buffer) + 15) & ~(size_t)15;
  if (length > SIZE_MAX - header - slack) return vm_no_room(s, length);
  const vm_ref made = vm_create(s, &vm_buffer_type, header + slack + (size_t)length);
  if (made == NULL) return vm_no_room(s, length);
  vm_buffer* const buffer = vm_buffer_of(made);
  unsigned char* const first = (unsigned char*)buffer + header;
  const size_t past = slack != 0 ? (uintptr_t)first & (alignment - 1) : 0;
  buffer->data = past != 0 ? first + (alignment - past) : first;
  buffer->length = length;
  buffer->writable = length;
  buffer->is_writable = 1;
  vm_put(s, to, made);
  return 0;
}

/*@@ vm_buffer_clone */
static int vm_buffer_clone(vm_state* s, vm_ref source, uint64_t offset, uint64_t length, uint32_t alignment,
                           vm_ref* to) {
  int status = vm_check_buffer(s, source);
  if (status == 0) status = vm_range(s, vm_buffer_of(source), offset, length, 1);
  if (status != 0) return status;
  vm_ref made = NULL;
  status = vm_buffer_alloc(s, length, alignment, &made);
  if (status != 0) return status;
  if (length != 0) memcpy(vm_buffer_of(made)->data, vm_buffer_of(source)->data + offset, (size_t)length);
  vm_put(s, to, made);
  return 0;
}

/*@@ vm_buffer_length */
static int vm_buffer_length(vm_state* s, vm_ref object, uint64_t* length) {
  const int status = vm_check_buffer(s, object);
  if (status == 0) *length = vm_buffer_of(object)->length;
  return status;
}

/*@@ vm_buffer_copy */
static int vm_buffer_copy(vm_state* s, vm_ref source, uint64_t source_offset, vm_ref target,
                          uint64_t target_offset, uint64_t length) {
  int status = vm_check_buffer(s, source);
  if (status == 0) status = vm_check_buffer(s, target);
  if (status == 0) status = vm_range(s, vm_buffer_of(source), source_offset, length, 1);
  if (status == 0) status = vm_check_writable(s, vm_buffer_of(target));
  if (status == 0) status = vm_range(s, vm_buffer_of(target), target_offset, length, 1);
  if (status == 0 && length != 0)
    memmove(vm_buffer_of(target)->data + target_offset, vm_buffer_of(source)->data + source_offset,
            (size_t)length);
  return status;
}

/*@@ vm_buffer_compare */
static int vm_buffer_compare(vm_state* s, vm_ref x, uint64_t x_offset, vm_ref y, uint64_t y_offset,
                             uint64_t length, uint32_t* equal) {
  int status = vm_check_buffer(s, x);
  if (status == 0) status = vm_check_buffer(s, y);
  if (status == 0) status = vm_range(s, vm_buffer_of(x), x_offset, length, 1);
  if (status == 0) status = vm_range(s, vm_buffer_of(y), y_offset, length, 1);
  if (status != 0) return status;
  *equal = 1;
  for (uint64_t i = 0; i < length && *equal; ++i)
    *equal = vm_buffer_of(x)->data[x_offset + i] == vm_buffer_of(y)->data[y_offset + i];
  return 0;
}

/*@@ vm_repeat */
/* Fills `count` elements of `width` bytes: 1, 2, 4 or 8. */
static void vm_repeat(unsigned char* to, size_t count, uint64_t pattern, uint32_t width) {
  if (width == 1)
    memset(to, (int)(pattern & 0xFF), count);
  else if (width == 2)
    for (size_t i = 0; i < count; ++i) memcpy(to + 2 * i, &pattern, 2);
  else if (width == 4)
    for (size_t i = 0; i < count; ++i) memcpy(to + 4 * i, &pattern, 4);
  else
    for (size_t i = 0; i < count; ++i) memcpy(to + 8 * i, &pattern, 8);
}

/*@@ vm_buffer_fill */
static int vm_buffer_fill(vm_state* s, vm_ref object, uint64_t offset, uint64_t length, uint64_t pattern,
                          uint32_t width) {
  int status = vm_check_buffer(s, object);
  if (status == 0) status = vm_check_writable(s, vm_buffer_of(object));
  if (status == 0) status = vm_range(s, vm_buffer_of(object), offset, length, width);
  if (status != 0 || length == 0) return status;
  vm_repeat(vm_element(vm_span_of(object), offset, width), (size_t)length, pattern, width);
  return 0;
}

/*@@ vm_buffer_hash */
/* SipHash-2-4 with the key 00 01 .. 0F. */
static inline uint64_t vm_rotate(uint64_t x, int by) { return x << by | x >> (64 - by); }

static void vm_hash_round(uint64_t v[4]) {
  v[0] += v[1];
  v[1] = vm_rotate(v[1], 13) ^ v[0];
  v[0] = vm_rotate(v[0], 32);
  v[2] += v[3];
  v[3] = vm_rotate(v[3], 16) ^ v[2];
  v[0] += v[3];
  v[3] = vm_rotate(v[3], 21) ^ v[0];
  v[2] += v[1];
  v[1] = vm_rotate(v[1], 17) ^ v[2];
  v[2] = vm_rotate(v[2], 32);
}

static int vm_buffer_hash(vm_state* s, vm_ref object, uint64_t offset, uint64_t length, uint64_t* hash) {
  int status = vm_check_buffer(s, object);
  if (status == 0) status = vm_range(s, vm_buffer_of(object), offset, length, 1);
  if (status != 0) return status;
  const unsigned char* const bytes = vm_buffer_of(object)->data + offset;
  const uint64_t key[2] = {UINT64_C(0x0706050403020100), UINT64_C(0x0F0E0D0C0B0A0908)};
  uint64_t v[4] = {key[0] ^ UINT64_C(0x736F6D6570736575), key[1] ^ UINT64_C(0x646F72616E646F6D),
                   key[0] ^ UINT64_C(0x6C7967656E657261), key[1] ^ UINT64_C(0x7465646279746573)};
  for (uint64_t at = 0; at <= length; at += 8) {
    uint64_t word = 0;
    const uint64_t left = length - at;
    memcpy(&word, bytes + at, left < 8 ? (size_t)left : 8);
    if (left < 8) word |= length << 56;
    v[3] ^= word;
    vm_hash_round(v);
    vm_hash_round(v);
    v[0] ^= word;
  }
  v[2] ^= 0xFF;
  for (int i = 0; i < 4; ++i) vm_hash_round(v);
  *hash = v[0] ^ v[1] ^ v[2] ^ v[3];
  return 0;
}
