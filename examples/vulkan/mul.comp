#version 450
// A kernel written by hand for the program elementwise_mul: each workgroup multiplies `count` elements.
// Bindings are storage buffers of set 0 in the order of the dispatch's bindings; constants are push constants
// in the order of the dispatch's constants.
layout(local_size_x = 4) in;
layout(set = 0, binding = 0) readonly buffer Left { float left[]; };
layout(set = 0, binding = 1) readonly buffer Right { float right[]; };
layout(set = 0, binding = 2) writeonly buffer Product { float product[]; };
layout(push_constant) uniform Constants { uint count; };
void main() {
  uint first = gl_WorkGroupID.x * count;
  for (uint i = first + gl_LocalInvocationID.x; i < first + count; i += gl_WorkGroupSize.x)
    product[i] = left[i] * right[i];
}
