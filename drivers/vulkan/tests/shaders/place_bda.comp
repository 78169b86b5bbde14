#version 460
#extension GL_GOOGLE_include_directive : require
#include "root.glsl"
// place.comp, by address.
layout(push_constant) uniform Root { ROOT };
void main() {
  uint i = (gl_WorkGroupID.z * gl_NumWorkGroups.y + gl_WorkGroupID.y) * gl_NumWorkGroups.x + gl_WorkGroupID.x;
  BINDING(0).words[i] = gl_WorkGroupID.x + 256 * gl_WorkGroupID.y + 65536 * gl_WorkGroupID.z;
}
