// The records shared by native executables and their host, in their memory layout. Specified by
// exec-cpu-library.md, sections 4, 5 and 8; the host is 64-bit.
#pragma once

#include <cstddef>
#include <cstdint>

namespace halyard::local::abi {

// ---- Passed to the library

using ImportFunction = int (*)(void* parameters, void* context, void* reserved);
using ImportThunk = int (*)(ImportFunction function, void* parameters, void* context, void* reserved);

struct Environment {
  const uint32_t* constants;  // the executable's
  ImportThunk thunk;          // null if there are no imports
  const ImportFunction* functions;
  void* const* contexts;
  uint64_t processor[8];
};
static_assert(sizeof(Environment) == 96);

struct DispatchState {
  uint32_t workgroup_size_x, workgroup_size_y;
  uint16_t workgroup_size_z;
  uint16_t constant_count;
  uint32_t workgroup_count_x, workgroup_count_y;
  uint16_t workgroup_count_z;
  uint8_t concurrency;  // maximum number of workgroups that run in parallel
  uint8_t binding_count;
  const uint32_t* constants;
  void* const* bindings;
  const size_t* binding_sizes;  // bytes
};
static_assert(sizeof(DispatchState) == 48);

struct WorkgroupState {
  uint32_t x, y;
  uint16_t z;
  uint16_t reserved;
  uint32_t processor;
  void* local_memory;
  uint32_t local_memory_size;  // bytes
};
static_assert(sizeof(WorkgroupState) == 32);

using EntryFunction = int (*)(const Environment*, const DispatchState*, const WorkgroupState*);

// ---- Published by the library

struct LibraryHeader {
  uint32_t revision;
  const char* name;
  uint32_t features;
  uint32_t sanitizer;
};
static_assert(sizeof(LibraryHeader) == 24);

struct ImportTable {
  uint32_t count;
  const char* const* symbols;
};
struct ConstantTable {
  uint32_t count;
  uint32_t reserved;
};
struct SourceTable {
  uint32_t count;
  const void* files;
};

struct SourceLocation {
  uint32_t line;
  uint32_t path_size;
  const char* path;
};
static_assert(sizeof(SourceLocation) == 16);

struct ExportAttributes5 {
  uint16_t local_memory_pages;
  uint8_t constant_count;
  uint8_t binding_count;
  uint32_t reserved;
  uint64_t zero[8];
};
static_assert(sizeof(ExportAttributes5) == 72);

struct ExportTable5 {
  uint32_t count;
  const EntryFunction* functions;
  const ExportAttributes5* attributes;
  const char* const* names;
  const char* const* tags;
  const SourceLocation* source_locations;
  const void* stage_locations;
};
static_assert(sizeof(ExportTable5) == 56);

constexpr uint64_t kSequential = 1;  // flag: workgroups must run one after the other

struct ExportAttributes6 {
  uint64_t flags;
  uint16_t local_memory_pages;
  uint8_t constant_count;
  uint8_t binding_count;
  uint32_t workgroup_size_x, workgroup_size_y;
  uint16_t workgroup_size_z;
  uint16_t parameter_count;
  uint64_t zero[5];
};
static_assert(sizeof(ExportAttributes6) == 64);

struct ExportTable6 {
  uint32_t count;
  const EntryFunction* functions;
  const ExportAttributes6* attributes;
  const void* parameters;
  const void* occupancy;
  const char* const* names;
  const char* const* tags;
  const char* const* parameter_names;
  const SourceLocation* source_locations;
  const void* stage_locations;
};
static_assert(sizeof(ExportTable6) == 80);

template <typename ExportTable>
struct Library {
  const LibraryHeader* header;
  ImportTable imports;
  ExportTable exports;
  ConstantTable constants;
  SourceTable sources;
};
using Library5 = Library<ExportTable5>;
using Library6 = Library<ExportTable6>;
static_assert(sizeof(Library5) == 104 && sizeof(Library6) == 128);

constexpr const char* kLibraryQuery = "iree_hal_executable_library_query";
using LibraryQuery = const LibraryHeader* const*(uint32_t revision, const Environment* environment);

// ---- Plugins

struct PluginHeader {
  uint32_t version;
  const char* name;
  const char* description;
  uint32_t features;
  uint32_t sanitizer;
  uint64_t reserved[8];
};
static_assert(sizeof(PluginHeader) == 96);

struct PluginOption {
  const char* key;
  size_t key_size;
  const char* value;
  size_t value_size;
};

// Parallel arrays. A function that is not null is already resolved.
struct ResolveParameters {
  size_t count;
  const char* const* names;
  ImportFunction* functions;
  void** contexts;
};
static_assert(sizeof(ResolveParameters) == 32);

// 0 is success; small numbers are status codes; other values are failures without details.
using PluginStatus = uintptr_t;

struct Plugin {
  const PluginHeader* header;
  PluginStatus (*load)(const Environment* environment, size_t option_count, const PluginOption* options,
                       void** self);
  void (*unload)(void* self);
  PluginStatus (*resolve)(void* self, const ResolveParameters* parameters, uint32_t* resolution);
};
static_assert(sizeof(Plugin) == 32);

constexpr uint32_t kPluginVersion = 1;
constexpr const char* kPluginQuery = "iree_hal_executable_plugin_query";
using PluginQuery = const Plugin*(uint32_t version, void* reserved);

}  // namespace halyard::local::abi
