#version 450
// words[x] = words[x] + 1, x the workgroup.
layout(local_size_x = 1) in;
layout(set = 0, binding = 0) buffer Words { uint words[]; };
void main() { words[gl_WorkGroupID.x] += 1; }
