#version 450
// out[i] = x + 256 * y + 65536 * z, i the number of the workgroup, and x, y, z its coordinates.
layout(local_size_x = 1) in;
layout(set = 0, binding = 0) writeonly buffer Out { uint words[]; };
void main() {
  uint i = (gl_WorkGroupID.z * gl_NumWorkGroups.y + gl_WorkGroupID.y) * gl_NumWorkGroups.x + gl_WorkGroupID.x;
  words[i] = gl_WorkGroupID.x + 256 * gl_WorkGroupID.y + 65536 * gl_WorkGroupID.z;
}
