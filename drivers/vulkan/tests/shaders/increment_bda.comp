#version 460
#extension GL_GOOGLE_include_directive : require
#include "root.glsl"
// increment.comp, by address.
layout(push_constant) uniform Root { ROOT };
void main() { BINDING(0).words[gl_WorkGroupID.x] += 1; }
