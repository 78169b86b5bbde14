#version 450
// Two sets, an array of buffers and a uniform buffer: out[0..3] = one word of each, in the order of the contract.
layout(local_size_x = 1) in;
layout(set = 0, binding = 3) readonly buffer A { uint words[]; } a;
layout(set = 0, binding = 1) readonly buffer B { uint words[]; } b[2];
layout(set = 1, binding = 0) uniform C { uint word; } c;
layout(set = 1, binding = 5) writeonly buffer Out { uint words[]; } result;
void main() {
  result.words[0] = a.words[0];
  result.words[1] = b[0].words[0];
  result.words[2] = b[1].words[0];
  result.words[3] = c.word;
}
