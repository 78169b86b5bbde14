#version 450
// Each of the 24 invocations of a workgroup adds base and the word's number to its own word.
layout(local_size_x = 4, local_size_y = 3, local_size_z = 2) in;
layout(set = 0, binding = 0) buffer Out { uint words[]; };
layout(push_constant) uniform Constants { uint base; };
void main() {
  uint i = (gl_WorkGroupID.z * gl_NumWorkGroups.y + gl_WorkGroupID.y) * gl_NumWorkGroups.x + gl_WorkGroupID.x;
  uint j = i * 24 + gl_LocalInvocationIndex;
  words[j] += base + j;
}
