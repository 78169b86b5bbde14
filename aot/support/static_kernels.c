/* Kernels in object files, which a query function of their library lists. Pointers have the size of the
 * target; everything else is as in files of any target. */
#include "flush.c"

/*@@ hal_static_query */
typedef struct hal_static_environment {
  const uint32_t* constants;
  int (*thunk)(void);
  const void* const* functions;
  const void* const* contexts;
  uint64_t processor[8]; /* 0: no features beyond those of the compiler's target */
} hal_static_environment;

typedef struct hal_static_call {
  uint32_t size_x;
  uint32_t size_y;
  uint16_t size_z;
  uint16_t constant_count;
  uint32_t count_x;
  uint32_t count_y;
  uint16_t count_z;
  uint8_t concurrency;
  uint8_t binding_count;
  const uint32_t* constants;
  const void* const* bindings;
  const size_t* lengths;
} hal_static_call;

typedef struct hal_static_workgroup {
  uint32_t x;
  uint32_t y;
  uint16_t z;
  uint16_t reserved;
  uint32_t processor;
  void* local;
  uint32_t local_bytes;
} hal_static_workgroup;

typedef int (*hal_static_entry)(const hal_static_environment*, const hal_static_call*,
                                const hal_static_workgroup*);

typedef struct hal_static_header {
  uint32_t revision;
  const char* name;
  uint32_t features;
  uint32_t sanitizer;
} hal_static_header;

/* The attributes of an entry in revision 5 and 6. */
typedef struct hal_static_attributes_5 {
  uint16_t local_pages; /* of 4096 bytes */
  uint8_t constant_count;
  uint8_t binding_count;
  uint32_t reserved;
  uint64_t reserved_words[8];
} hal_static_attributes_5;

typedef struct hal_static_attributes_6 {
  uint64_t flags;
  uint16_t local_pages;
  uint8_t constant_count;
  uint8_t binding_count;
  uint32_t size_x;
  uint32_t size_y;
  uint16_t size_z;
  uint16_t parameter_count;
  uint64_t reserved_words[5];
} hal_static_attributes_6;

typedef struct hal_static_library_5 {
  const hal_static_header* header;
  uint32_t import_count;
  const char* const* imports;
  uint32_t count;
  const hal_static_entry* entries;
  const hal_static_attributes_5* attributes;
  const char* const* names;
  const void* unused[3];
  uint32_t constant_count;
} hal_static_library_5;

typedef struct hal_static_library_6 {
  const hal_static_header* header;
  uint32_t import_count;
  const char* const* imports;
  uint32_t count;
  const hal_static_entry* entries;
  const hal_static_attributes_6* attributes;
  const void* parameters;
  const void* occupancy;
  const char* const* names;
  const void* unused[4];
  uint32_t constant_count;
} hal_static_library_6;

/* Gives the address of a library, which begins with the address of its header. */
typedef const void* (*hal_static_query)(uint32_t revision, const hal_static_environment* environment);

/*@@ hal_static_library hal_static_open */
/* The same of both revisions. */
typedef struct hal_static_library {
  uint32_t revision;
  uint32_t count;
  const hal_static_entry* entries;
  const void* attributes;
  const char* const* names;
} hal_static_library;

static int hal_static_open(vm_state* s, hal_static_query query, hal_static_library* out) {
  static const hal_static_environment environment;
  uint32_t constants = 0;
  uint32_t imports = 0;
  const void* found = query(6, &environment);
  if (found == NULL) found = query(5, &environment);
  if (found == NULL) return vm_fail(s, 9, "the kernels of an object file have another revision than 5 and 6");
  const hal_static_header* const header = *(const hal_static_header* const*)found;
  out->revision = header->revision;
  if (header->revision == 6) {
    const hal_static_library_6* const library = (const hal_static_library_6*)found;
    out->count = library->count;
    out->entries = library->entries;
    out->attributes = library->attributes;
    out->names = library->names;
    constants = library->constant_count;
    imports = library->import_count;
  } else if (header->revision == 5) {
    const hal_static_library_5* const library = (const hal_static_library_5*)found;
    out->count = library->count;
    out->entries = library->entries;
    out->attributes = library->attributes;
    out->names = library->names;
    constants = library->constant_count;
    imports = library->import_count;
  } else {
    return vm_fail_with(s, 9, "the kernels of an object file have revision $; expected 5 or 6",
                        header->revision, 0, 0);
  }
  if (imports != 0) return vm_fail(s, 5, "the kernels of an object file import functions");
  if (constants != 0)
    return vm_fail_with(s, 9, "the kernels of an object file require $ constants; the program has none",
                        constants, 0, 0);
  return 0;
}

/*@@ hal_static_counts hal_static_counts_of */
typedef struct hal_static_counts {
  uint32_t bindings;
  uint32_t constants;
  uint32_t local_bytes;
} hal_static_counts;

static hal_static_counts hal_static_counts_of(const hal_static_library* library, uint32_t function) {
  hal_static_counts counts = {0, 0, 0};
  if (library->attributes == NULL) return counts;
  if (library->revision == 6) {
    const hal_static_attributes_6* const each =
        (const hal_static_attributes_6*)library->attributes + function;
    counts.bindings = each->binding_count;
    counts.constants = each->constant_count;
    counts.local_bytes = each->local_pages * 4096u;
  } else {
    const hal_static_attributes_5* const each =
        (const hal_static_attributes_5*)library->attributes + function;
    counts.bindings = each->binding_count;
    counts.constants = each->constant_count;
    counts.local_bytes = each->local_pages * 4096u;
  }
  return counts;
}

/*@@ hal_static_run */
/* Runs all workgroups of a dispatch. `local` has the bytes that the entry needs. */
static int hal_static_run(vm_state* s, hal_static_entry entry, const uint32_t grid[3],
                          const uint32_t* constants, uint32_t constant_count, const void* const* bindings,
                          const size_t* lengths, uint32_t binding_count, void* local, uint32_t local_bytes) {
  static const hal_static_environment environment;
  const hal_static_call call = {1,
                                1,
                                1,
                                (uint16_t)constant_count,
                                grid[0],
                                grid[1],
                                (uint16_t)grid[2],
                                1,
                                (uint8_t)binding_count,
                                constants,
                                bindings,
                                lengths};
  hal_static_workgroup workgroup = {0, 0, 0, 0, 0, local, local_bytes};
  int status = 0;
  if (grid[2] > UINT16_MAX) return vm_fail_with(s, 11, "$ workgroups in z exceed 65535", grid[2], 0, 0);
  for (uint32_t z = 0; z < grid[2] && status == 0; ++z)
    for (uint32_t y = 0; y < grid[1] && status == 0; ++y)
      for (uint32_t x = 0; x < grid[0] && status == 0; ++x) {
        workgroup.x = x;
        workgroup.y = y;
        workgroup.z = (uint16_t)z;
        const uint32_t before = (uint32_t)hal_flush_begin();
        status = entry(&environment, &call, &workgroup);
        hal_flush_end(before);
      }
  if (status == 0) return 0;
  return vm_fail(s, 13, "a kernel of an object file failed");
}

/*@@ hal_static_dispatch */
/* A dispatch of a planned program. Local memory is what the arena has after `local_begin` bytes. */
static int hal_static_dispatch(vm_state* s, hal_static_query query, uint32_t function, uint32_t x, uint32_t y,
                               uint32_t z, uint32_t constant_count, const uint32_t* constants,
                               uint32_t binding_count, const void* const* bindings, const size_t* lengths,
                               size_t local_begin) {
  hal_static_library library = {0, 0, NULL, NULL, NULL};
  const uint32_t grid[3] = {x, y, z};
  unsigned char* local = NULL;
  const int status = hal_static_open(s, query, &library);
  if (status != 0) return status;
  if (function >= library.count)
    return vm_fail_with(s, 11, "there is no function $; the executable has $", function, library.count, 0);
  const hal_static_counts counts = hal_static_counts_of(&library, function);
  if (library.attributes != NULL && counts.constants != constant_count)
    return vm_fail_with(s, 3, "the dispatch has $ constants, but the function takes $", constant_count,
                        counts.constants, 0);
  if (library.attributes != NULL && counts.bindings != binding_count)
    return vm_fail_with(s, 3, "the dispatch has $ bindings, but the function takes $", binding_count,
                        counts.bindings, 0);
  if (counts.local_bytes != 0) {
    const size_t misfit = s->arena != NULL ? (64 - (((uintptr_t)s->arena + local_begin) & 63)) & 63 : 0;
    if (local_begin > s->arena_bytes || s->arena_bytes - local_begin < misfit ||
        s->arena_bytes - local_begin - misfit < counts.local_bytes)
      return vm_fail_with(s, 8, "a kernel needs $ bytes of local memory after the $ bytes of the arena",
                          counts.local_bytes, local_begin, 0);
    local = (unsigned char*)s->arena + local_begin + misfit;
  }
  return hal_static_run(s, library.entries[function], grid, constants, constant_count, bindings, lengths,
                        binding_count, local, counts.local_bytes);
}
