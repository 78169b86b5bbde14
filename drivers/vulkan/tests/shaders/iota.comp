#version 450
// out[i] = base + i * step, i the number of the workgroup.
layout(local_size_x = 1) in;
layout(set = 0, binding = 0) writeonly buffer Out { uint words[]; };
layout(push_constant) uniform Constants { uint base; uint step; };
void main() {
  uint i = (gl_WorkGroupID.z * gl_NumWorkGroups.y + gl_WorkGroupID.y) * gl_NumWorkGroups.x + gl_WorkGroupID.x;
  words[i] = base + i * step;
}
