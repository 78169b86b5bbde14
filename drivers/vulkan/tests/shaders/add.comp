#version 450
// out[x] = a[x] + b[x], x the workgroup.
layout(local_size_x = 1) in;
layout(set = 0, binding = 0) readonly buffer A { uint a[]; };
layout(set = 0, binding = 1) readonly buffer B { uint b[]; };
layout(set = 0, binding = 2) writeonly buffer Out { uint sums[]; };
void main() { sums[gl_WorkGroupID.x] = a[gl_WorkGroupID.x] + b[gl_WorkGroupID.x]; }
