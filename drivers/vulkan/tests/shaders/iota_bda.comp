#version 460
#extension GL_GOOGLE_include_directive : require
#include "root.glsl"
// iota.comp, by address.
layout(push_constant) uniform Root { ROOT uint base; uint step; };
void main() {
  uint i = (gl_WorkGroupID.z * gl_NumWorkGroups.y + gl_WorkGroupID.y) * gl_NumWorkGroups.x + gl_WorkGroupID.x;
  BINDING(0).words[i] = base + i * step;
}
