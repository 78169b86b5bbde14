#version 450
// Copies eight words and fills eight others, like a kernel that was compiled for storage of whole words: it ignores
// the ends of its bindings.
layout(local_size_x = 1) in;
layout(set = 0, binding = 0) readonly buffer In { uint given[]; };
layout(set = 0, binding = 1) writeonly buffer Out { uint copied[]; };
layout(set = 0, binding = 2) writeonly buffer Filled { uint filled[]; };
void main() {
  for (uint i = 0; i < 8; ++i) copied[i] = given[i];
  for (uint i = 0; i < 8; ++i) filled[i] = 0xFFFFFFFF;
}
