#version 460
#extension GL_GOOGLE_include_directive : require
#define LOCAL_SIZE layout(local_size_x = 4, local_size_y = 3, local_size_z = 2) in
#include "root.glsl"
// spread.comp, by address.
layout(push_constant) uniform Root { ROOT uint base; };
void main() {
  uint i = (gl_WorkGroupID.z * gl_NumWorkGroups.y + gl_WorkGroupID.y) * gl_NumWorkGroups.x + gl_WorkGroupID.x;
  uint j = i * 24 + gl_LocalInvocationIndex;
  BINDING(0).words[j] += base + j;
}
