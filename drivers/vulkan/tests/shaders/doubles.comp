#version 450
// Needs 64-bit floats.
layout(local_size_x = 1) in;
layout(set = 0, binding = 0) buffer Words { double values[]; };
void main() { values[0] *= 2.0LF; }
