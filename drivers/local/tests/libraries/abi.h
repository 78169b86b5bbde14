/* The records of native executables as a library sees them, in revision REVISION (5 or 6). Includes no
 * header, so that a library is self-contained. */
#ifndef ABI_H_
#define ABI_H_

#ifndef REVISION
#define REVISION 6
#endif

typedef __UINT8_TYPE__ u8;
typedef __UINT16_TYPE__ u16;
typedef __UINT32_TYPE__ u32;
typedef __UINT64_TYPE__ u64;
typedef __SIZE_TYPE__ size;

typedef int import_function(void* parameters, void* context, void* reserved);

struct environment {
  const u32* constants;
  int (*thunk)(import_function* function, void* parameters, void* context, void* reserved);
  import_function* const* functions;
  void* const* contexts;
  u64 processor[8];
};

struct dispatch {
  u32 size_x, size_y;
  u16 size_z, constant_count;
  u32 count_x, count_y;
  u16 count_z;
  u8 concurrency, binding_count;
  const u32* constants;
  void* const* bindings;
  const size* binding_sizes;
};

struct workgroup {
  u32 x, y;
  u16 z, reserved;
  u32 processor;
  void* local_memory;
  u32 local_memory_size;
};

typedef int entry_function(const struct environment*, const struct dispatch*, const struct workgroup*);

struct header {
  u32 revision;
  const char* name;
  u32 features, sanitizer;
};

#if REVISION == 5
struct attributes {
  u16 local_memory_pages;
  u8 constant_count, binding_count;
  u32 reserved;
  u64 zero[8];
};
#else
struct attributes {
  u64 flags;
  u16 local_memory_pages;
  u8 constant_count, binding_count;
  u32 size_x, size_y;
  u16 size_z, parameter_count;
  u64 zero[5];
};
#endif

struct source_location {
  u32 line, path_size;
  const char* path; /* not zero-terminated */
};

struct exports {
  u32 count;
  entry_function* const* functions;
  const struct attributes* attributes;
#if REVISION != 5
  const void *parameters, *occupancy;
#endif
  const char* const* names;
  const char* const* tags;
#if REVISION != 5
  const char* const* parameter_names;
#endif
  const struct source_location* source_locations;
  const void* stage_locations;
};

struct library {
  const struct header* header;
  struct {
    u32 count;
    const char* const* symbols;
  } imports;
  struct exports exports;
  struct {
    u32 count;
  } constants;
  struct {
    u32 count;
    const void* files;
  } sources;
};

#define PUBLIC __attribute__((visibility("default")))

#endif
