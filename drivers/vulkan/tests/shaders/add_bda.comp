#version 460
#extension GL_GOOGLE_include_directive : require
#include "root.glsl"
// add.comp, by address.
layout(push_constant) uniform Root { ROOT };
void main() {
  uint x = gl_WorkGroupID.x;
  BINDING(2).words[x] = BINDING(0).words[x] + BINDING(1).words[x];
}
