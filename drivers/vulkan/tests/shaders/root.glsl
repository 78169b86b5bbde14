// The declarations of kernels whose bindings are addresses: docs/vulkan.md.
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#ifndef LOCAL_SIZE
#define LOCAL_SIZE layout(local_size_x = 1) in
#endif
LOCAL_SIZE;
layout(buffer_reference, std430, buffer_reference_align = 4) buffer Words { uint words[]; };
layout(buffer_reference, std430, buffer_reference_align = 8) readonly buffer Table { uint64_t address[]; };
#define ROOT                \
  uint64_t binding_table;   \
  uint64_t constant_table;  \
  uint binding_base;        \
  uint constant_base;       \
  uint flags;               \
  uint reserved;
#define BINDING(i) Words(Table(binding_table).address[binding_base + (i)])
