#version 450
// words[0] = executable constants 0 and 1, words[2] = the subgroup's size.
#extension GL_KHR_shader_subgroup_basic : require
layout(local_size_x = 1) in;
layout(set = 0, binding = 0) writeonly buffer Words { uint words[]; };
layout(constant_id = 0) const uint first = 7;
layout(constant_id = 1) const uint second = 8;
void main() {
  words[0] = first;
  words[1] = second;
  words[2] = gl_SubgroupSize;
}
