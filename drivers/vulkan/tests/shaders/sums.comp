#version 450
#extension GL_KHR_shader_subgroup_arithmetic : require
// For the program elementwise_mul: product[i] = left[i] * the sum of right in i's subgroup. It depends on the size of
// subgroups, of which nothing in it tells the size.
layout(local_size_x = 4) in;
layout(set = 0, binding = 0) readonly buffer Left { float left[]; };
layout(set = 0, binding = 1) readonly buffer Right { float right[]; };
layout(set = 0, binding = 2) writeonly buffer Product { float product[]; };
layout(push_constant) uniform Constants { uint count; };
void main() {
  uint i = gl_WorkGroupID.x * count + gl_LocalInvocationID.x;
  product[i] = left[i] * subgroupAdd(right[i]);
}
